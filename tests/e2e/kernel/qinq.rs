//! A balancer serves clients whose packets carry two VLAN tags, put on by stacked devices of the kernel, and keeps
//! both.

use std::{fs::File, net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{HTTP, Tunnel};
use lb_tests::{
    random::Random,
    sandbox::Sandbox,
    topology::{Backend, Fabric, Node},
    traffic::{Work, name_over_http, returned_over_http, serve},
};

use super::{
    tunnels::{DEVICES, Network, any},
    vlan::{received, send_by},
};

/// Bytes that are put and given back.
const LARGE: usize = 300_007;
/// The provider's VLAN, the client's in it, and one of the backends' alone.
const PROVIDERS: u16 = 100;
const CLIENTS: u16 = 10;
const BACKENDS: u16 = 20;

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let mut network = Network::new(sandbox, "qinq")?;
    for Backend { node, v6, .. } in network.backends() {
        node.ip(&DEVICES.replace("{v6}", &v6.to_string()))?;
        start_web(node)?;
    }
    let mut document = network.configuration();
    let http = |tunnel: Tunnel| tunnel.service(format!("{}-http", tunnel.name()), HTTP, "tcp");
    document.services.extend(Tunnel::ALL.map(http));
    network.balancer.apply(&document.text())?;

    let Fabric { net, router, balancer, .. } = &network.fabric;
    for (node, end) in [(router, "balancer"), (balancer, "eth0")] {
        net.tags_in_frames(node, end)?;
    }
    let (outer, inner) = (format!("vlan{PROVIDERS}"), format!("vlan{CLIENTS}"));
    router.ip(&format!(
        "link add link balancer name {outer} type vlan proto 802.1ad id {PROVIDERS}\n\
         link set {outer} up\n\
         link add link {outer} name {inner} type vlan id {CLIENTS}\nlink set {inner} up"
    ))?;
    send_by(&network.fabric, &inner)?;
    let before = [sent(&network)?, received(&network.fabric, CLIENTS)?];
    transfer(&network).context("two tags")?;
    network.carry().context("two tags")?;
    let after = [sent(&network)?, received(&network.fabric, CLIENTS)?];
    let [sent, came] = [0, 1].map(|at| after[at] - before[at]);
    ensure!(sent > 0 && came >= sent, "of {sent} packets {came} went back with both tags");

    // To backends in a VLAN of their own they go with that tag alone.
    router.ip(&format!(
        "link add link balancer name vlan{BACKENDS} type vlan id {BACKENDS}\nlink set vlan{BACKENDS} up"
    ))?;
    network.balancer.stop()?;
    let file = network.fabric.balancer.directory().join("spillwayd.toml");
    std::fs::write(&file, format!("[vlan]\neth0 = {BACKENDS}\n"))?;
    network.balancer.more.extend(["--config".into(), file.display().to_string()]);
    network.balancer.start()?;
    network.balancer.wait_up(&network.ends(), super::service::LIMIT)?;
    let before = received(&network.fabric, CLIENTS)?;
    transfer(&network).context("two tags, and one to backends")?;
    ensure!(received(&network.fabric, BACKENDS)? > 0, "no frame in the backends' VLAN");
    let more = received(&network.fabric, CLIENTS)? - before;
    ensure!(more == 0, "{more} frames still go back with two tags");
    Ok(())
}

/// Packets that went to backends, out of the interface that they came in by.
fn sent(network: &Network) -> Result<u64> {
    network.balancer.packets("transmitted")
}

/// Pages come, and a file goes there and back whole, by every tunnel.
fn transfer(network: &Network) -> Result<()> {
    for (seed, tunnel) in Tunnel::ALL.into_iter().enumerate() {
        let (client, to) = (&network.fabric.client, tunnel.endpoint(HTTP));
        let name = name_over_http(client, any(tunnel), to)?;
        let names: Vec<_> = network.backends().map(|backend| backend.name().to_owned()).collect();
        ensure!(names.contains(&name), "{tunnel:?}: {name:?}");
        put(client, any(tunnel), to, seed as u64).with_context(|| format!("{tunnel:?}"))?;
    }
    Ok(())
}

/// Puts a file and compares what comes back.
fn put(client: &Node, from: SocketAddr, to: SocketAddr, seed: u64) -> Result<()> {
    let content = Random::new(seed).bytes(LARGE);
    let back = returned_over_http(client, from, to, &content)?;
    ensure!(back == content, "{} bytes came back of {LARGE}, or others", back.len());
    Ok(())
}

/// A web server on a thread that goes with the guest.
fn start_web(node: &Node) -> Result<()> {
    let log = File::create(node.directory().join("web.log"))?;
    let work = Work { time: Duration::ZERO, at_a_time: 4 };
    let node = node.clone();
    std::thread::spawn(move || node.enter(|| serve(HTTP, node.name(), work, log)));
    Ok(())
}
