//! The stage: network, backends, balancer, and what the balancer is told.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::{
    Balancer, Binaries, Check, Document, Member, Pool, Receiver, Service, XdpMode, xdp_mode,
};
use lb_tests::report::Colour;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};
use lb_tests::traffic::Nginx;

use crate::screen::Screen;

/// Backends of each region.
const PER_REGION: u8 = 3;

/// Everything that plays.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) servers: Vec<Nginx>,
    _receivers: Vec<Receiver>,
    pub(crate) balancer: Balancer,
    pub(crate) fabric: Fabric,
    /// One for each backend, in their order.
    pub(crate) colours: Vec<Colour>,
}

impl Stage {
    pub(crate) fn set(
        sandbox: &Sandbox,
        bin_dir: &Path,
        out: &Path,
        screen: &mut Screen,
    ) -> Result<Self> {
        let binaries = Binaries::in_directory(bin_dir)?;
        screen.heading("The stage");
        let fabric = Fabric::new(sandbox, "demo", PER_REGION)?;
        screen.done("network: a client, a router, a balancer on one arm, two regions of three");
        screen.quote(&map());
        let servers = fabric
            .backends
            .iter()
            .map(|backend| Nginx::start(&backend.node))
            .collect::<Result<_>>()?;
        screen.done("nginx on every backend, the VIP on its lo: it answers the client directly");
        let receivers = receivers(sandbox, &binaries, &fabric, screen)?;
        let balancer = Self::balancer(sandbox, &binaries, &fabric, screen)?;
        natives(&fabric, screen)?;
        let colours = (0..REGIONS.len())
            .flat_map(|region| (0..PER_REGION).map(move |n| Colour::of(region, n.into())))
            .collect();
        let stage = Self { servers, _receivers: receivers, balancer, fabric, colours };
        stage.configure(out, screen)?;
        Ok(stage)
    }

    fn balancer(
        sandbox: &Sandbox,
        binaries: &Binaries,
        fabric: &Fabric,
        screen: &mut Screen,
    ) -> Result<Balancer> {
        let balancer = Balancer::started(sandbox, binaries, &fabric.balancer, REGIONS[0])?;
        screen.done("the balancer's daemon, with an empty store");
        let command = format!("spillwayd balancer --interface eth0 --region {}", REGIONS[0]);
        screen.command("balancer", &command);
        Ok(balancer)
    }

    fn configure(&self, out: &Path, screen: &mut Screen) -> Result<()> {
        screen.heading("What the balancer is told");
        let file = out.join("web.toml");
        let document = document(&self.fabric).text();
        fs::write(&file, &document).with_context(|| format!("write {}", file.display()))?;
        screen.command("balancer", "spillway apply -f web.toml");
        screen.quote(&self.balancer.apply(&document)?);
        let all: Vec<IpAddr> = self.fabric.backends.iter().map(|b| b.v4.into()).collect();
        self.balancer.wait_up(&all, Duration::from_secs(10))?;
        screen.done("every backend has passed its first check");
        screen.command("balancer", "spillway status");
        screen.quote(&self.balancer.cli(&["status"])?);
        Ok(())
    }
}

/// The network in a few lines.
fn map() -> String {
    let lines = [
        format!("client {} ── router ── balancer {}", Fabric::CLIENT_V4, Fabric::BALANCER_V4),
        "                         ├── region eu: eu1 eu2 eu3   10.1.0.11 to .13".into(),
        "                         └── region us: us1 us2 us3   10.2.0.11 to .13".into(),
        format!("VIP {}, routed to the balancer; MTU 1500 at the client", Fabric::VIP_V4),
    ];
    lines.join("\n")
}

fn receivers(
    sandbox: &Sandbox,
    binaries: &Binaries,
    fabric: &Fabric,
    screen: &mut Screen,
) -> Result<Vec<Receiver>> {
    let source = Fabric::BALANCER_V4.into();
    let vip = Fabric::VIP_V4.into();
    let mut receivers = Vec::new();
    for backend in &fabric.backends {
        receivers.push(Receiver::start(sandbox, binaries, &backend.node, &[source], &[vip])?);
    }
    screen.done("a receiver on every backend: it takes the tunnel's outer header off");
    let command =
        format!("spillwayd receiver --interface eth0 --allow-source {source}/32 --vip {vip}");
    screen.command("eu1", &command);
    Ok(receivers)
}

/// The kernel's word for how the packet programs are attached.
fn natives(fabric: &Fabric, screen: &mut Screen) -> Result<()> {
    let nodes = fabric.backends.iter().map(|backend| &backend.node);
    for node in std::iter::once(&fabric.balancer).chain(nodes) {
        let mode = xdp_mode(node, "eth0")?;
        ensure!(mode == XdpMode::Native, "{}: eth0 is {mode:?}, not native", node.name());
    }
    screen.done("the kernel says of all seven interfaces: XDP is in the driver (native)");
    screen.command("balancer", "ip -details link show dev eth0");
    let shown = fabric.balancer.run("ip", ["-details", "link", "show", "dev", "eth0"])?;
    let xdp: Vec<_> = shown.lines().filter(|line| line.contains("xdp")).map(str::trim).collect();
    screen.quote(&xdp.join("\n"));
    Ok(())
}

fn document(fabric: &Fabric) -> Document {
    let member = |backend: &lb_tests::topology::Backend| Member {
        address: backend.v4.into(),
        region: backend.region.into(),
        weight: 1,
    };
    Document {
        hash_key: None,
        regions: REGIONS.map(String::from).to_vec(),
        checks: vec![Check {
            name: "page".into(),
            path: Some("/healthz".into()),
            port: 80,
            interval_ms: 200,
            fall: 2,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["page".into()],
            members: fabric.backends.iter().map(member).collect(),
        }],
        services: vec![Service {
            name: "web".into(),
            address: Fabric::VIP_V4.into(),
            port: 80,
            protocol: "tcp",
            pool: "web".into(),
        }],
    }
}
