//! Parts of a setup on the standard network.

use anyhow::{Result, ensure};
use lb_tests::daemon::{Balancer, Receiver, XdpMode, xdp_mode};
use lb_tests::topology::{Fabric, REGIONS};

use super::{Environment, Screen};

/// The network in a few lines.
pub(crate) fn map() -> String {
    let lines = [
        format!("client {} ── router ── balancer {}", Fabric::CLIENT_V4, Fabric::BALANCER_V4),
        "                         ├── region eu: eu1 eu2 eu3   10.1.0.11 to .13".into(),
        "                         └── region us: us1 us2 us3   10.2.0.11 to .13".into(),
        format!("VIP {}, routed to the balancer; MTU 1500 at the client", Fabric::VIP_V4),
    ];
    lines.join("\n")
}

/// A receiver on every backend.
pub(crate) fn receivers(
    environment: &Environment,
    fabric: &Fabric,
    screen: &mut Screen,
) -> Result<Vec<Receiver>> {
    let source = Fabric::BALANCER_V4.into();
    let vip = Fabric::VIP_V4.into();
    let mut receivers = Vec::new();
    for backend in &fabric.backends {
        let node = &backend.node;
        receivers.push(Receiver::start(
            &environment.sandbox,
            &environment.binaries,
            node,
            &[source],
            &[vip],
        )?);
    }
    screen.done("a receiver on every backend: it takes the tunnel's outer header off");
    let command =
        format!("spillwayd receiver --interface eth0 --allow-source {source}/32 --vip {vip}");
    screen.command("eu1", &command);
    Ok(receivers)
}

/// The balancer's daemon.
pub(crate) fn balancer(
    environment: &Environment,
    fabric: &Fabric,
    screen: &mut Screen,
) -> Result<Balancer> {
    let balancer = Balancer::started(
        &environment.sandbox,
        &environment.binaries,
        &fabric.balancer,
        REGIONS[0],
    )?;
    screen.done("the balancer's daemon, with an empty store");
    let command = format!("spillwayd balancer --interface eth0 --region {}", REGIONS[0]);
    screen.command("balancer", &command);
    Ok(balancer)
}

/// The kernel's word for how the packet programs are attached.
pub(crate) fn natives(fabric: &Fabric, screen: &mut Screen) -> Result<()> {
    let nodes = fabric.backends.iter().map(|backend| &backend.node);
    for node in std::iter::once(&fabric.balancer).chain(nodes) {
        let mode = xdp_mode(node, "eth0")?;
        ensure!(mode == XdpMode::Native, "{}: eth0 is {mode:?}, not native", node.name());
    }
    screen.done("the kernel says of all their interfaces: XDP is in the driver (native)");
    screen.command("balancer", "ip -details link show dev eth0");
    let shown = fabric.balancer.run("ip", ["-details", "link", "show", "dev", "eth0"])?;
    let xdp: Vec<_> = shown.lines().filter(|line| line.contains("xdp")).map(str::trim).collect();
    screen.quote(&xdp.join("\n"));
    Ok(())
}
