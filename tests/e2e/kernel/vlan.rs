//! A balancer on a trunk serves clients behind a VLAN device of the kernel at the other end.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::Tunnel;
use lb_tests::{
    sandbox::Sandbox,
    topology::{Backend, Fabric, Node},
};

use super::{
    service::LIMIT,
    tunnels::{DEVICES, Network},
};

/// Ids of the VLANs that clients' packets come in by, and that backends are in.
pub(super) const CLIENTS: u16 = 10;
const BACKENDS: u16 = 20;

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    let mut network = Network::new(sandbox, "vlan")?;
    for Backend { node, v6, .. } in network.backends() {
        node.ip(&DEVICES.replace("{v6}", &v6.to_string()))?;
    }
    trunk(&network.fabric)?;
    // What came by a VLAN leaves by it.
    network.carry().context("one VLAN")?;
    ensure!(received(&network.fabric, BACKENDS)? == 0, "frames in a VLAN that nobody set");
    // What is set for an interface goes before.
    network.balancer.stop()?;
    let file = network.fabric.balancer.directory().join("spillwayd.toml");
    std::fs::write(&file, format!("[vlan]\neth0 = {BACKENDS}\n"))?;
    network.balancer.more.extend(["--config".into(), file.display().to_string()]);
    network.balancer.start()?;
    let before = received(&network.fabric, CLIENTS)?;
    network.carry().context("two VLANs")?;
    ensure!(received(&network.fabric, BACKENDS)? > 0, "no frame in the VLAN that was set");
    let more = received(&network.fabric, CLIENTS)? - before;
    ensure!(more == 0, "{more} frames still leave by the VLAN that they came by");
    Ok(())
}

/// The host itself is in a VLAN, by a device of the kernel's: what it sends there leaves the card tagged.
pub(super) fn run_by_device(sandbox: &Sandbox) -> Result<()> {
    let mut network = Network::new(sandbox, "device")?;
    for Backend { node, v6, .. } in network.backends() {
        node.ip(&DEVICES.replace("{v6}", &v6.to_string()))?;
    }
    trunk(&network.fabric)?;
    network.balancer.stop()?;
    let (v4, v6) = (Fabric::BALANCER_V4, Fabric::BALANCER_V6);
    let own = format!("vlan{BACKENDS}");
    move_addresses(&network.fabric.router, "balancer", &own, ["10.0.0.1/24", "fd00::1/64"])?;
    let balancer = &network.fabric.balancer;
    balancer
        .ip(&format!("link add link eth0 name {own} type vlan id {BACKENDS}\nlink set {own} up"))?;
    move_addresses(balancer, "eth0", &own, [&format!("{v4}/24"), &format!("{v6}/64")])?;
    balancer.ip("route replace default via 10.0.0.1\nroute replace default via fd00::1")?;
    network.balancer.start()?;
    network.balancer.wait_up(&network.ends(), LIMIT)?;
    network.carry()?;
    ensure!(received(&network.fabric, BACKENDS)? > 0, "no frame in the VLAN of the device");
    let by_clients = received(&network.fabric, CLIENTS)?;
    ensure!(by_clients == 0, "{by_clients} frames leave by the VLAN that they came by");

    // A program on the device itself would not see what comes by other VLANs.
    network.balancer.stop()?;
    network.balancer.cli(&["detach", "--yes"])?;
    let mut command = network.fabric.balancer.command("spillwayd");
    command.args(["balancer", "--interface", &own, "--region", "eu", "--xdp-mode", "native"]);
    let output = command.output().context("start spillwayd")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let refusal =
        format!("{own}: a VLAN of eth0 has no native XDP: give eth0, which sees its frames");
    ensure!(!output.status.success() && said.contains(&refusal), "{output:?}");
    // In the stack it works, where all come by that VLAN: the device takes tags off and puts them on.
    network.balancer.interface = own;
    network.balancer.more.extend(["--xdp-mode".into(), "generic".into()]);
    network.balancer.start()?;
    network.balancer.wait_up(&network.ends(), LIMIT)?;
    for tunnel in Tunnel::ALL {
        let via = if tunnel.vip().is_ipv4() { v4.to_string() } else { v6.to_string() };
        network.fabric.router.ip(&format!("route replace {} via {via}", tunnel.vip()))?;
    }
    network.carry().context("on the VLAN's own interface, in the stack")
}

fn move_addresses(node: &Node, from: &str, to: &str, addresses: [&str; 2]) -> Result<()> {
    for address in addresses {
        let nodad = if address.contains(':') { "nodad" } else { "" };
        node.ip(&format!(
            "address del {address} dev {from}\naddress add {address} dev {to} {nodad}"
        ))?;
    }
    Ok(())
}

/// Makes the link a trunk: the router sends the VIPs' packets tagged, and takes both VLANs.
fn trunk(fabric: &Fabric) -> Result<()> {
    // A packet program sees a tag only if the sender writes it into the frame.
    for (node, end) in [(&fabric.router, "balancer"), (&fabric.balancer, "eth0")] {
        fabric.net.tags_in_frames(node, end)?;
    }
    for id in [CLIENTS, BACKENDS] {
        fabric.router.ip(&format!(
            "link add link balancer name vlan{id} type vlan id {id}\nlink set vlan{id} up"
        ))?;
    }
    send_by(fabric, &format!("vlan{CLIENTS}"))
}

/// Has the router send packets to the VIPs by a device of its, to the balancer's card.
pub(super) fn send_by(fabric: &Fabric, device: &str) -> Result<()> {
    let mac = &fabric.balancer.ip_json("link show dev eth0")?[0]["address"];
    let mac = mac.as_str().context("no MAC")?;
    for (via, vips) in [
        ("169.254.0.2", [Tunnel::Ipip, Tunnel::Ip4In6]),
        ("fe80::ffff", [Tunnel::Ip6Ip6, Tunnel::Ip6In4]),
    ] {
        fabric
            .router
            .ip(&format!("neighbour add {via} lladdr {mac} nud permanent dev {device}"))?;
        for vip in vips.map(Tunnel::vip) {
            fabric.router.ip(&format!("route replace {vip} via {via} dev {device} onlink"))?;
        }
    }
    Ok(())
}

/// Frames that came in by a VLAN device of the router's.
pub(super) fn received(fabric: &Fabric, id: u16) -> Result<u64> {
    let link = fabric.router.ip_json(&format!("-statistics link show dev vlan{id}"))?;
    link[0]["stats64"]["rx"]["packets"].as_u64().context("no counter")
}
