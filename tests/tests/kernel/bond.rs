//! A balancer on a bond of two links, in the driver, one of which goes down.

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{XdpMode, xdp_mode},
    process::until,
    sandbox::Sandbox,
    scene::Tunnel,
    topology::Fabric,
    traffic::Stream,
};

use super::{
    service::LIMIT,
    tunnels::{DEVICES, Network},
};

/// Largest packet of the fabric's links.
const MTU: u32 = 1600;

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "bond", 2)?;
    bond(&fabric)?;
    let network = Network::on(sandbox, fabric)?;
    let (balancer, client) = (&network.fabric.balancer, &network.fabric.client);
    for backend in network.backends() {
        backend.node.ip(&DEVICES.replace("{v6}", &backend.v6.to_string()))?;
    }
    let mode = xdp_mode(balancer, "eth0")?;
    ensure!(mode == XdpMode::Native, "{mode:?}");
    network.carry().context("by the first link")?;
    ensure!(active(&network.fabric)? == "port0", "the first link is not the active one");
    let mut streams = Vec::new();
    for tunnel in Tunnel::ALL {
        streams.push(Stream::open(client, network.to(tunnel), 3)?);
    }
    balancer.ip("link set port0 down")?;
    until("the second link is active", LIMIT, || {
        Ok((active(&network.fabric)? == "port1").then_some(()))
    })?;
    Stream::all_go_on(&streams).context("by the second link")?;
    Stream::finish_all(streams)?;
    network.carry().context("by the second link")
}

/// Makes the balancer's `eth0` a bond of what was it and of a second link; at the router both end in a bridge.
fn bond(fabric: &Fabric) -> Result<()> {
    let Fabric { net, router, balancer, .. } = fabric;
    net.link(balancer, "port1", router, "second", MTU)?;
    net.pass_all(router, "second")?;
    balancer.ip("link set eth0 down\nlink set eth0 name port0\naddress flush dev port0\nlink set port1 down\n\
         link add eth0 type bond mode active-backup miimon 10 primary port0\n\
         link set port0 master eth0\nlink set port1 master eth0\nlink set eth0 up")?;
    router.ip(&format!(
        "link add rack mtu {MTU} type bridge\nlink set rack up\n\
         address del 10.0.0.1/24 dev balancer\naddress del fd00::1/64 dev balancer\n\
         link set balancer master rack\nlink set second master rack\n\
         address add 10.0.0.1/24 dev rack\naddress add fd00::1/64 dev rack nodad"
    ))?;
    let (v4, v6) = (Fabric::BALANCER_V4, Fabric::BALANCER_V6);
    balancer.ip(&format!(
        "link set eth0 mtu {MTU}\naddress add {v4}/24 dev eth0\naddress add {v6}/64 dev eth0 nodad\n\
         route replace default via 10.0.0.1\nroute replace default via fd00::1"
    ))?;
    for tunnel in [Tunnel::Ipip, Tunnel::Ip6Ip6] {
        // It went with the address that it led to.
        let to = if tunnel.is_outer_v4() { v4.to_string() } else { v6.to_string() };
        router.ip(&format!("route replace {} via {to}", tunnel.vip()))?;
    }
    net.ready()
}

/// Which link the bond sends by.
fn active(fabric: &Fabric) -> Result<String> {
    let link = fabric.balancer.ip_json("link show dev eth0")?;
    let active = &link[0]["linkinfo"]["info_data"]["active_slave"];
    Ok(active.as_str().unwrap_or("none").to_owned())
}
