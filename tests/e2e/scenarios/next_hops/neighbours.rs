//! Neighbours that do not answer.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_tests::{process::until, sandbox::Sandbox, topology::Node};

use super::{
    fork, hop, pair,
    resolver::{LIMIT, Resolving},
};

/// Makes the kernel of `a` give a neighbour up within a second.
fn impatient(a: &Node) -> Result<()> {
    for family in ["ipv4", "ipv6"] {
        let neighbours = format!("net.{family}.neigh.eth0");
        a.sysctls(&[
            (&format!("{neighbours}.retrans_time_ms"), "100"),
            (&format!("{neighbours}.base_reachable_time_ms"), "500"),
            (&format!("{neighbours}.delay_first_probe_time"), "0"),
        ])?;
    }
    Ok(())
}

pub(super) fn a_silent_neighbour_is_none(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "silent")?;
    impatient(&a)?;
    let wanted = ["192.0.2.99", "2001:db8::99"];
    let mut resolving = Resolving::start(&a, &wanted)?;
    for address in wanted {
        resolving.expect(address, Err(&format!("neighbour {address} on eth0 does not answer")))?;
    }
    resolving.expect_nothing_more()?;
    b.ip("address add 192.0.2.99/24 dev eth0\naddress add 2001:db8::99/64 dev eth0")?;
    for address in wanted {
        resolving.expect(address, Ok(hop((&a, "eth0"), address, (&b, "eth0"))?))?;
    }
    Ok(())
}

pub(super) fn a_neighbour_that_falls_silent(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "quiet")?;
    impatient(&a)?;
    let wanted = ["192.0.2.2", "2001:db8::2"];
    let mut resolving = Resolving::start(&a, &wanted)?;
    for address in wanted {
        resolving.expect(address, Ok(hop((&a, "eth0"), address, (&b, "eth0"))?))?;
    }
    // Nothing sends to it: only that it is kept fresh can show that it is gone.
    b.ip("address del 192.0.2.2/24 dev eth0\naddress del 2001:db8::2/64 dev eth0")?;
    for address in wanted {
        resolving.expect(address, Err(&format!("neighbour {address} on eth0 does not answer")))?;
    }
    Ok(())
}

/// Whether `b` answers ARP requests for its addresses, arp_ignore of the kernel's ip-sysctl document.
fn set_answers(b: &Node, answers: bool) -> Result<()> {
    b.sysctls(&[("net.ipv4.conf.eth0.arp_ignore", if answers { "0" } else { "8" })])
}

/// Makes `b` send an ARP request, from which the kernel of `a` learns its MAC.
fn ask_for_a(b: &Node) {
    let _ = b.ip("neighbour flush dev eth0");
    let _ = b.run("ping", ["-c", "1", "-W", "1", "192.0.2.1"]);
}

pub(super) fn a_silent_gateway_that_asks(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "asks")?;
    impatient(&a)?;
    let address = "198.51.100.7";
    let mut resolving = Resolving::start(&a, &[address])?;
    let hop = hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?;
    resolving.expect(address, Ok(hop))?;
    set_answers(&b, false)?;
    resolving.expect(address, Err("neighbour 192.0.2.2 on eth0 does not answer"))?;
    let has_mac = || -> Result<bool> {
        Ok(!a.ip_json("neighbour show to 192.0.2.2 dev eth0")?[0]["lladdr"].is_null())
    };
    for _ in 0..3 {
        until("an entry with the MAC of the request", LIMIT, || {
            ask_for_a(&b);
            Ok(has_mac()?.then_some(()))
        })?;
        until("an entry that has failed again", LIMIT, || Ok((!has_mac()?).then_some(())))?;
        resolving.expect_nothing_more()?;
    }
    // One request is enough for it to be asked, once it answers.
    set_answers(&b, true)?;
    ask_for_a(&b);
    resolving.expect(address, Ok(hop))
}

pub(super) fn a_gateway_gives_way(sandbox: &Sandbox) -> Result<()> {
    let (net, a, over_b, over_c) = fork(sandbox, "gives-way")?;
    let b = &net.nodes()[1];
    impatient(&a)?;
    a.sysctls(&[("net.ipv4.fib_multipath_use_neigh", "1")])?;
    a.ip("route replace 198.51.100.0/24 nexthop via 192.0.2.2 nexthop via 192.0.3.2")?;
    let wanted: Vec<_> = (1..=16).map(|last| format!("198.51.100.{last}")).collect();
    let mut resolving = Resolving::start(&a, &wanted.iter().map(|a| &**a).collect::<Vec<_>>())?;
    let mut behind_b = Vec::new();
    for address in &wanted {
        // The kernel's choice, which is a hash.
        let is_over_b = a.ip_json(&format!("route get {address}"))?[0]["gateway"] == "192.0.2.2";
        resolving.expect(address, Ok(if is_over_b { over_b } else { over_c }))?;
        behind_b.extend(is_over_b.then_some(address));
    }
    ensure!(!behind_b.is_empty(), "all by one gateway");
    set_answers(b, false)?;
    let silent = Err("neighbour 192.0.2.2 on eth0 does not answer");
    behind_b.iter().try_for_each(|address| resolving.expect(address, silent))?;
    let since = Instant::now();
    behind_b.iter().try_for_each(|address| resolving.expect(address, Ok(over_c)))?;
    // All routes are looked up every 30 s; this takes milliseconds.
    ensure!(since.elapsed() < Duration::from_secs(10), "after {:?}", since.elapsed());
    resolving.expect_nothing_more()
}
