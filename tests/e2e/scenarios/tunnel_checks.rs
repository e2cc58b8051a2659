//! Checks through the tunnel fail where clients' packets would, and pass where they arrive.

use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::capture::Capture;
use lb_tests::daemon::{Binaries, Receiver, answers};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node};
use lb_tests::traffic::Curl;
use spillway_proto::v1::BackendState;

pub(crate) const CASES: &[Case] =
    &[Case::waits("checks_go_as_clients_packets_do", checks_go_as_clients_packets_do)];

fn checks_go_as_clients_packets_do(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "through")?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let name = "[[health_check]]\nname = \"page\"\n";
    let text = text.replace(name, &format!("{name}via = \"tunnel\"\n"));
    // A page that is logged.
    fixture.balancer.apply(&text.replace("/healthz", "/"))?;
    fixture.wait_up(&[])?;

    // Each backend is asked by each VIP, and nobody by its own address.
    let number = fixture.number("eu1")?;
    let node = fixture.fabric.backends[number].node.clone();
    let capture = Capture::start(&fixture.fabric.balancer, "eth0", "")?;
    wait_asked(&fixture)?;
    let frames = capture.stop()?;
    frames.assert_faultless()?;
    for tunnel in Tunnel::ALL {
        ensure!(frames.count(&tunnel.filter())? > 0, "{}: no tunnel", tunnel.vip());
    }
    let own = fixture.fabric.backends[number].v4.into();
    ensure!(fixture.logged(own)?[number] == 0, "somebody asked {own} itself");

    // A VIP that a backend does not have: its own address would have said that all is well.
    let vip = Tunnel::Ipip.vip();
    node.ip(&format!("address del {vip}/32 dev lo"))?;
    let why = format!("check page of {vip}: no connection within 300 ms, but the host answers");
    wait_why(&fixture, own, &why)?;
    let url = format!("http://{own}/healthz");
    Curl::new(&fixture.fabric.client).get(&url).context("the server itself answers")?;
    node.ip(&format!("address add {vip}/32 dev lo"))?;
    fixture.wait_up(&[])?;

    // A receiver that does not let it in.
    let binaries = Binaries::find()?;
    let sources = [Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()];
    let vips = Tunnel::ALL.map(Tunnel::vip);
    fixture.receivers[number].running.kill()?;
    fixture.receivers[number] = Receiver::start(sandbox, &binaries, &node, &sources, &vips[1..])?;
    wait_why(&fixture, own, &why)?;
    fixture.receivers[number].running.kill()?;
    fixture.receivers[number] = Receiver::start(sandbox, &binaries, &node, &sources, &vips)?;
    fixture.wait_up(&[])?;

    // Another form of tunnel.
    for pool in ["v4", "v6"] {
        fixture.balancer.cli(&["pool", "update", pool, "--encapsulation", "gue"])?;
    }
    let capture = Capture::start(&fixture.fabric.balancer, "eth0", "")?;
    wait_asked(&fixture)?;
    let frames = capture.stop()?;
    for outer in ["ip.proto == 17", "ipv6.nxt == 17"] {
        let gue =
            format!("{outer} && udp.dstport == 6080 && udp.checksum == 0 && udp.srcport >= 49152");
        ensure!(frames.count(&gue)? > 0, "{outer}: no GUE");
    }
    fixture.wait_up(&[])?;

    // VIPs may be addresses of the balancer too, for hosts in their subnet that ask for them.
    let balancer = fixture.fabric.balancer.clone();
    for link in ["eth0", "lo"] {
        let addresses = |verb: &str| -> Result<()> {
            Tunnel::ALL.iter().map(|tunnel| tunnel.vip()).try_for_each(|vip| {
                let bits = if vip.is_ipv4() { "32" } else { "128 nodad" };
                balancer.ip(&format!("address {verb} {vip}/{bits} dev {link}"))
            })
        };
        addresses("add")?;
        wait_asked(&fixture).with_context(|| link)?;
        fixture.wait_up(&[]).with_context(|| link)?;
        node.ip(&format!("address del {vip}/32 dev lo"))?;
        wait_why(&fixture, own, &why).with_context(|| link)?;
        node.ip(&format!("address add {vip}/32 dev lo"))?;
        fixture.wait_up(&[]).with_context(|| link)?;
        addresses("del")?;
        wait_asked(&fixture).with_context(|| link)?;
        fixture.wait_up(&[]).with_context(|| link)?;
    }
    balancer.ip(&format!("address add {vip}/32 dev eth0"))?;
    balancer.sysctls(&[("net.ipv4.conf.all.rp_filter", "1")])?;
    let filtered = format!(
        "check page of {vip}: no path through the tunnel: {vip} is an address of this host, and \
         net.ipv4.conf.all.rp_filter=1 drops answers from it"
    );
    wait_why(&fixture, own, &filtered)?;
    balancer.sysctls(&[("net.ipv4.conf.all.rp_filter", "0")])?;
    fixture.wait_up(&[])?;
    balancer.ip(&format!("address del {vip}/32 dev eth0"))?;

    // Whoever takes the link away, or what leads there, gets no check to pass that should not.
    for taken in ["link del spillway0", "rule del pref 50"] {
        balancer.ip(taken)?;
        let words = "no path through the tunnel: packets of checks are routed elsewhere";
        wait_why(&fixture, own, words).with_context(|| taken)?;
        fixture.wait_up(&[]).with_context(|| taken)?;
    }

    // A daemon that was killed leaves the link, and the next one makes it anew; one that stops takes it away.
    fixture.balancer.kill()?;
    ensure!(probe_links(&balancer)? == 1, "killed: no link is left");
    fixture.balancer.cli(&["detach", "--yes"])?;
    let left = (probe_links(&balancer)?, rules(&balancer)?);
    ensure!(left == (0, 0), "detached: links and rules {left:?}");
    fixture.balancer.start()?;
    wait_asked(&fixture)?;
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    wait_asked(&fixture)?;
    fixture.wait_up(&[])?;
    ensure!(probe_links(&balancer)? == 1 && rules(&balancer)? == 4, "two rules of each IP version");
    fixture.balancer.stop()?;
    let left = (probe_links(&balancer)?, rules(&balancer)?);
    ensure!(left == (0, 0), "stopped: links and rules {left:?}");
    Ok(())
}

/// Waits until each backend has been asked for each VIP, several times from now.
fn wait_asked(fixture: &Fixture) -> Result<()> {
    let before = asked(fixture)?;
    until("all are asked", PATIENCE, || {
        let now = asked(fixture)?;
        Ok(now.iter().zip(&before).all(|(now, before)| *now > before + 2).then_some(()))
    })
}

/// Requests to all VIPs, by backend and VIP.
fn asked(fixture: &Fixture) -> Result<Vec<u64>> {
    let each = Tunnel::ALL.map(|tunnel| fixture.logged(tunnel.vip()));
    Ok(each.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// Waits until a backend is out for a reason with these words.
fn wait_why(fixture: &Fixture, backend: IpAddr, words: &str) -> Result<()> {
    let mut last = String::new();
    until("the backend is out", PATIENCE, || {
        let status = fixture.balancer.status()?;
        let backend = answers::backend(&status, &backend.to_string())?;
        last = format!("{:?}: {}", backend.state(), answers::reason(backend));
        let is_unhealthy = backend.state() == BackendState::Unhealthy;
        Ok((is_unhealthy && last.contains(words)).then_some(()))
    })
    .with_context(|| format!("{last}, not {words}"))
}

/// How many links of checks there are.
fn probe_links(node: &Node) -> Result<usize> {
    let links = node.ip_json("link show")?;
    let links = links.as_array().context("links")?;
    Ok(links.iter().filter(|link| link["ifname"] == "spillway0").count())
}

/// How many rules lead there.
fn rules(node: &Node) -> Result<usize> {
    let mut count = 0;
    for version in ["-4", "-6"] {
        let rules = node.ip_json(&format!("{version} rule show"))?;
        let rules = rules.as_array().context("rules")?;
        count += rules.iter().filter(|rule| rule["fwmark"] == "0x5b000000").count();
    }
    Ok(count)
}
