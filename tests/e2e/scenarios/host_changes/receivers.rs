//! A backend's interface, with the receiver on it.

use anyhow::{Context as _, Result};
use lb_e2e::fixture::Fixture;
use lb_tests::{sandbox::Sandbox, topology::Fabric, traffic::Stream};

use super::{PATIENT, streams};

pub(super) fn followed(sandbox: &Sandbox) -> Result<()> {
    followed_with(sandbox, "rx-followed", &[])
}

pub(super) fn followed_at_tc(sandbox: &Sandbox) -> Result<()> {
    followed_with(sandbox, "rx-tc-followed", &["--hook", "tc"])
}

fn followed_with(sandbox: &Sandbox, name: &str, more: &[&str]) -> Result<()> {
    let fixture = Fixture::start_with(sandbox, name, PATIENT, more)?;
    let streams = streams(&fixture)?;
    let Fabric { net, router, backends, .. } = &fixture.fabric;
    let backend = &backends[0];
    let (node, end) = (&backend.node, backend.name());
    node.ip("link del eth0")?;
    net.link(node, "eth0", router, end, 1600)?;
    router.ip(&format!("link set {end} master {}", backend.region))?;
    let gateways =
        if backend.region == "eu" { ["10.1.0.1", "fd00:1::1"] } else { ["10.2.0.1", "fd00:2::1"] };
    node.ip(&format!(
        "address add {}/24 dev eth0\naddress add {}/64 dev eth0 nodad\n\
         route add default via {}\nroute add default via {}",
        backend.v4, backend.v6, gateways[0], gateways[1]
    ))?;
    // It has another MAC, which a host of its own would announce.
    router.ip(&format!("neighbour flush dev {}", backend.region))?;
    net.ready()?;
    Stream::all_go_on(&streams).context("after a backend's interface was made again")?;
    Stream::finish_all(streams)?;
    fixture.wait_up(&[])
}
