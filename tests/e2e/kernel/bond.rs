//! A balancer in the driver of a bond of two links goes on when one link goes down, with tagged packets too.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::Tunnel;
use lb_tests::{
    daemon::{XdpMode, printed::Diagnosis, xdp_mode},
    process::until,
    sandbox::Sandbox,
    topology::Fabric,
    traffic::Stream,
};

use super::{
    service::LIMIT,
    tunnels::{DEVICES, Network},
    vlan::{CLIENTS, received, send_by},
};

/// Largest packet of the fabric's links.
const MTU: u32 = 1600;

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let network = one_of_two(sandbox, "bond")?;
    let (balancer, client) = (&network.fabric.balancer, &network.fabric.client);
    network.carry().context("by the first link")?;
    ensure!(active(&network.fabric)? == "port0", "the first link is not the active one");
    let mut streams = Vec::new();
    for tunnel in Tunnel::ALL {
        streams.push(Stream::open(client, network.to(tunnel), 3)?);
    }
    balancer.ip("link set port0 down")?;
    becomes_active(&network.fabric, "port1")?;
    Stream::all_go_on(&streams).context("by the second link")?;
    Stream::finish_all(streams)?;
    network.carry().context("by the second link")
}

/// Tags are kept by the link that is active, by another one that takes its place, and by one that joins while the
/// daemon runs.
pub(super) fn run_tagged(sandbox: &Sandbox) -> Result<()> {
    let network = one_of_two(sandbox, "tagged")?;
    let Fabric { net, router, balancer, .. } = &network.fabric;
    trunk(&network.fabric)?;
    doctor_looks_at_ports(&network)?;
    keeps_tags(&network).context("by the first link")?;
    balancer.ip("link set port0 down")?;
    goes_on_by(&network, "port1")?;
    keeps_tags(&network).context("by the second link")?;

    net.link(balancer, "port2", router, "third", MTU)?;
    net.pass_all(router, "third")?;
    for (node, end) in [(balancer, "port2"), (router, "third")] {
        net.tags_in_frames(node, end)?;
    }
    router.ip("link set third master rack")?;
    balancer.ip("link set port2 down\nlink set port2 master eth0\nlink set port1 down")?;
    goes_on_by(&network, "port2")?;
    keeps_tags(&network).context("by a link that joined")
}

/// Tags are kept where packets come by two links in turn, and go by them in turn.
pub(super) fn run_tagged_in_turn(sandbox: &Sandbox) -> Result<()> {
    let mode = "mode balance-rr miimon 10";
    let network = network(sandbox, "turns", mode, &format!("bond {mode}"))?;
    trunk(&network.fabric)?;
    keeps_tags(&network)
}

/// A bond of which one link carries all, at a bridge.
fn one_of_two(sandbox: &Sandbox, name: &str) -> Result<Network> {
    network(sandbox, name, "mode active-backup miimon 10 primary port0", "bridge")
}

/// A balancer in the driver of a bond.
fn network(sandbox: &Sandbox, name: &str, mode: &str, rack: &str) -> Result<Network> {
    let fabric = Fabric::new(sandbox, name, 2)?;
    bond(&fabric, mode, rack)?;
    let network = Network::on(sandbox, fabric)?;
    for backend in network.backends() {
        backend.node.ip(&DEVICES.replace("{v6}", &backend.v6.to_string()))?;
    }
    let mode = xdp_mode(&network.fabric.balancer, "eth0")?;
    ensure!(mode == XdpMode::Native, "{mode:?}");
    Ok(network)
}

/// Makes the balancer's `eth0` a bond of what was it and of a second link; at the router both end in a device of
/// type `rack`.
fn bond(fabric: &Fabric, mode: &str, rack: &str) -> Result<()> {
    let Fabric { net, router, balancer, .. } = fabric;
    net.link(balancer, "port1", router, "second", MTU)?;
    net.pass_all(router, "second")?;
    balancer.ip(&format!(
        "link set eth0 down\nlink set eth0 name port0\naddress flush dev port0\nlink set port1 down\n\
         link add eth0 type bond {mode}\n\
         link set port0 master eth0\nlink set port1 master eth0\nlink set eth0 up"
    ))?;
    // A bridge without an address of its own takes one of its ports', and another when one joins; with that the router
    // forgets even permanent neighbours.
    router.ip(&format!(
        "link add rack address 02:00:00:00:00:fe mtu {MTU} type {rack}\n\
         address del 10.0.0.1/24 dev balancer\naddress del fd00::1/64 dev balancer\n\
         link set balancer down\nlink set second down\n\
         link set balancer master rack\nlink set second master rack\n\
         link set balancer up\nlink set second up\nlink set rack up\n\
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

/// Makes both links a trunk, by which the router sends packets to the VIPs tagged.
fn trunk(fabric: &Fabric) -> Result<()> {
    let Fabric { net, router, balancer, .. } = fabric;
    for (node, end) in
        [(router, "balancer"), (router, "second"), (balancer, "port0"), (balancer, "port1")]
    {
        net.tags_in_frames(node, end)?;
    }
    router.ip(&format!(
        "link add link rack name vlan{CLIENTS} type vlan id {CLIENTS}\nlink set vlan{CLIENTS} up"
    ))?;
    send_by(fabric, &format!("vlan{CLIENTS}"))
}

/// What goes to backends has the tag that it came with, and so have answers, which go back by themselves.
fn keeps_tags(network: &Network) -> Result<()> {
    let Network { fabric, balancer, .. } = network;
    let before = [balancer.packets("redirected")?, received(fabric, CLIENTS)?];
    network.carry()?;
    let after = [balancer.packets("redirected")?, received(fabric, CLIENTS)?];
    let [sent, came] = [0, 1].map(|at| after[at] - before[at]);
    ensure!(sent > 0 && came >= sent, "of {sent} packets to backends {came} have their tag");
    // All of them: the driver sends by the bond, not back out of the port.
    ensure!(balancer.packets("transmitted")? == 0, "sent back by XDP_TX");
    for vip in [Tunnel::Ipip, Tunnel::Ip6Ip6].map(|tunnel| tunnel.vip().to_string()) {
        let (answered, before) = (balancer.packets("answered_echo")?, received(fabric, CLIENTS)?);
        let ping = ["-n", "-c", "3", "-i", "0.2", "-W", "10", &vip];
        let said = fabric.client.run("ping", ping)?;
        ensure!(said.contains(" 3 received"), "{said}");
        let answered = balancer.packets("answered_echo")? - answered;
        let came = received(fabric, CLIENTS)? - before;
        ensure!(answered == 3 && came >= 3, "{vip}: of {answered} answers {came} have their tag");
    }
    Ok(())
}

/// Offloads of the bond itself (LRO is on) are not those of its cards.
fn doctor_looks_at_ports(network: &Network) -> Result<()> {
    let diagnosis: Diagnosis = network.balancer.printed(&["doctor"])?;
    let found: Vec<_> =
        diagnosis.of_check("offloads").map(|it| [&*it.subject, &*it.level]).collect();
    ensure!(found == [["port0", "ok"], ["port1", "ok"]], "{found:?}");
    Ok(())
}

/// The bond sends by a port, and the bridge at the other end has found out: what was sent to another port meanwhile is
/// lost, but for a connection, which sends it again.
fn goes_on_by(network: &Network, port: &str) -> Result<()> {
    becomes_active(&network.fabric, port)?;
    let stream = Stream::open(&network.fabric.client, network.to(Tunnel::Ipip), 1);
    Stream::finish_all([stream.with_context(|| format!("by {port}"))?])
}

fn becomes_active(fabric: &Fabric, port: &str) -> Result<()> {
    until(&format!("{port} is active"), LIMIT, || Ok((active(fabric)? == port).then_some(())))
}

/// Which link the bond sends by.
fn active(fabric: &Fabric) -> Result<String> {
    let link = fabric.balancer.ip_json("link show dev eth0")?;
    let active = &link[0]["linkinfo"]["info_data"]["active_slave"];
    Ok(active.as_str().unwrap_or("none").to_owned())
}
