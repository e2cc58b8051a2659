//! What a user notices: fresh connections by curl, straight to a backend and through the balancer, in
//! turn.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use lb_tests::{
    daemon::{
        Balancer, Binaries, Check, Document, Member, Pool, Receiver, Service, XdpMode, xdp_mode,
    },
    sandbox::Sandbox,
    statistics::median,
    topology::{Fabric, Node},
    traffic::Nginx,
};

/// Backends of each region; only those of the nearest one are asked.
const BACKENDS: u8 = 3;
const NEAREST: &str = "eu";

/// Median times of a request, microseconds, from curl's first step to its last byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests {
    /// Connections each way.
    pub(crate) connections: usize,
    /// To a backend's own address.
    pub(crate) direct_us: f64,
    /// To the VIP.
    pub(crate) balanced_us: f64,
}

impl Requests {
    /// As it stands in the report.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "case": "curl, fresh connection", "connections": self.connections,
            "direct_us": self.direct_us, "balanced_us": self.balanced_us,
        })
    }
}

/// Measures over the standard network with the real daemons.
///
/// # Errors
/// A part that does not start, a link that is not native, or a request that fails.
pub(crate) fn measure(
    sandbox: &Sandbox,
    binaries: &Binaries,
    connections: usize,
) -> Result<Requests> {
    let fabric = Fabric::new(sandbox, "requests", BACKENDS)?;
    let vip = IpAddr::from(Fabric::VIP_V4);
    let (mut servers, mut receivers) = (Vec::new(), Vec::new());
    for backend in fabric.region_backends(NEAREST) {
        servers.push(Nginx::start(&backend.node)?);
        let sources = [Fabric::BALANCER_V4.into()];
        receivers.push(Receiver::start(sandbox, binaries, &backend.node, &sources, &[vip])?);
    }
    let balancer = Balancer::started(sandbox, binaries, &fabric.balancer, NEAREST)?;
    let mode = xdp_mode(&fabric.balancer, "eth0")?;
    ensure!(mode == XdpMode::Native, "the balancer's link is {mode:?}");
    balancer.apply(&document(&fabric, vip).text())?;
    let addresses: Vec<IpAddr> =
        fabric.region_backends(NEAREST).map(|backend| backend.v4.into()).collect();
    balancer.wait_up(&addresses, Duration::from_secs(20))?;

    let (mut direct, mut balanced) = (Vec::new(), Vec::new());
    for &address in addresses.iter().cycle().take(connections) {
        direct.push(request(&fabric.client, address)?);
        balanced.push(request(&fabric.client, vip)?);
    }
    Ok(Requests { connections, direct_us: median(&mut direct), balanced_us: median(&mut balanced) })
}

/// Time of one request, microseconds.
fn request(client: &Node, address: IpAddr) -> Result<f64> {
    let url = format!("http://{address}/");
    let format = ["--output", "/dev/null", "--write-out", "%{time_total}"];
    let fixed = ["--silent", "--show-error", "--fail", "--max-time", "10"];
    let said = client.run("curl", fixed.iter().chain(&format).chain(&[url.as_str()]))?;
    let seconds: f64 = said.trim().parse().with_context(|| format!("curl: {said}"))?;
    Ok(seconds * 1e6)
}

fn document(fabric: &Fabric, vip: IpAddr) -> Document {
    let member = |backend: &lb_tests::topology::Backend| Member {
        address: backend.v4.into(),
        region: NEAREST.into(),
        weight: 1,
    };
    let check = Check {
        name: "web".into(),
        path: Some("/healthz".into()),
        port: 80,
        interval_ms: 500,
        fall: 3,
        is_tunnelled: false,
    };
    Document {
        hash_key: None,
        regions: vec![NEAREST.into()],
        checks: vec![check],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["web".into()],
            members: fabric.region_backends(NEAREST).map(member).collect(),
        }],
        services: vec![Service {
            name: "web".into(),
            address: vip,
            port: 80,
            protocol: "tcp",
            pool: "web".into(),
        }],
    }
}
