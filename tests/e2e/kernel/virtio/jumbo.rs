//! Links that carry more than Ethernet's 1500 bytes: in the driver as long as a frame comes in one buffer, and in the
//! stack beyond that. A file goes up and comes back, both by packets as large as there is room for.

use std::{io::Read as _, net::SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::HTTP;
use lb_tests::{
    daemon::{Balancer, XdpMode},
    random::Random,
    sandbox::Sandbox,
    topology::Node,
    traffic::returned_over_http,
};

use super::{BACKENDS, CLIENT, LIMIT, VIP, balancer, neighbour};

/// The MTU of all links, and where programs run then by `auto`: a buffer is a page.
const SIZES: [(u32, XdpMode); 2] = [(3_000, XdpMode::Native), (9_000, XdpMode::Generic)];
/// Bytes that go up and come back.
const LARGE: usize = 600_011;
/// Headers of a tunnel, and of a packet in it: IPv4, TCP and its timestamps.
const TUNNEL: u32 = 20;
const HEADERS: u32 = 20 + 32;

fn mtu(node: &Node, cards: &[&str], bytes: u32) -> Result<()> {
    cards.iter().try_for_each(|card| node.ip(&format!("link set {card} mtu {bytes}")))
}

/// The guest that balances.
pub(super) fn balance(sandbox: &Sandbox) -> Result<()> {
    let site = balancer::Site::new(sandbox)?;
    let cards = ["eth0", "eth1"];
    mtu(&site.node, &cards, 9_000)?;
    refused(sandbox, &site)?;
    let mut daemon = balancer::daemon(sandbox, &site.node, "auto")?;
    let mut waits = None;
    for (bytes, mode) in SIZES {
        mtu(&site.node, &cards, bytes)?;
        daemon.start()?;
        site.is_attached(mode).with_context(|| format!("MTU {bytes}"))?;
        daemon.apply(&balancer::configuration().text())?;
        daemon.wait_up(&BACKENDS.map(Into::into), LIMIT)?;
        drop(waits.take());
        waits = Some(site.done().with_context(|| format!("MTU {bytes}"))?);
        judge(&daemon, bytes).with_context(|| format!("MTU {bytes}"))?;
        daemon.stop()?;
        daemon.cli(&["detach", "--yes"])?;
        site.is_attached(XdpMode::None)?;
    }
    let log = std::fs::read_to_string(site.node.directory().join("spillwayd.log"))?;
    for card in cards {
        let said = log.lines().filter(|line| {
            line.contains("no native XDP: falls back to generic") && line.contains(card)
        });
        let said = said.count();
        ensure!(said == 1, "{card}: {said} times told that it falls back:\n{log}");
    }
    Ok(())
}

/// Who wants the driver is told what is in the way, and nothing is left.
fn refused(sandbox: &Sandbox, site: &balancer::Site) -> Result<()> {
    let mut daemon = balancer::daemon(sandbox, &site.node, "native")?;
    let started = daemon.start().err().context("native, with frames in several buffers")?;
    let said = format!("{started:#}");
    ensure!(said.contains("eth0: no native XDP (LRO, a large MTU"), "{said}");
    site.is_attached(XdpMode::None)?;
    let left = std::fs::read_dir(&daemon.bpffs)?.count();
    ensure!(left == 0, "{left} pins are left");
    Ok(())
}

/// The client was told how much fits, and its packets were as large.
fn judge(daemon: &Balancer, bytes: u32) -> Result<()> {
    let stats = daemon.stats()?;
    ensure!(stats.packets("answered_too_large")? > 0, "{stats:#?}");
    let http = stats.service("http")?;
    let packets = http.packets;
    ensure!(http.bytes > LARGE as u64, "{stats:#?}");
    // One for each segment that goes up, one at most for each that comes down, and some that repeat.
    let segments = LARGE as u64 / u64::from(bytes - TUNNEL - HEADERS);
    ensure!(packets > segments && packets < 2 * segments + 100, "{packets} packets: {stats:#?}");
    Ok(())
}

/// The guest with the client and the backends.
pub(super) fn neighbour(sandbox: &Sandbox) -> Result<()> {
    let site = neighbour::Site::new(sandbox)?;
    for (bytes, mode) in SIZES {
        mtu(&site.backend, &["eth0"], bytes)?;
        mtu(&site.client, &["eth1"], bytes)?;
        site.client.run("ip", ["route", "flush", "cache"])?;
        let receiver = site.receive(sandbox, "auto", mode)?;
        site.is_served()?;
        transfer(&site.client, bytes).with_context(|| format!("MTU {bytes}"))?;
        let mut waits = site.tell()?;
        waits.set_read_timeout(Some(LIMIT))?;
        let end = waits.read(&mut [0]).context("the balancer's next turn")?;
        ensure!(end == 0, "the balancer says something");
        drop(receiver);
        let bpffs = sandbox.bpffs(site.backend.namespace())?.display().to_string();
        site.backend
            .run("spillway", ["--bpffs", &bpffs, "detach", "--yes", "--component", "receiver"])?;
    }
    Ok(())
}

fn transfer(client: &Node, bytes: u32) -> Result<()> {
    let content = Random::new(bytes.into()).bytes(LARGE);
    let (from, to) = (SocketAddr::from((CLIENT, 0)), SocketAddr::from((VIP, HTTP)));
    let back = returned_over_http(client, from, to, &content)?;
    ensure!(back == content, "{} bytes came back of {LARGE}, or others", back.len());
    let route = client.ip_json(&format!("route get {VIP}"))?;
    let fits = route[0]["metrics"][0]["mtu"].as_u64();
    ensure!(fits == Some(u64::from(bytes - TUNNEL)), "the client heard of {route}");
    Ok(())
}
