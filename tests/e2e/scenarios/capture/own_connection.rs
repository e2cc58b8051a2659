//! A capture over TLS leaves out its own connection, whose packets would otherwise make more of themselves.

use std::{collections::BTreeSet, net::IpAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health};
use lb_tests::{
    capture::{Capture, Frames},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::Fabric,
};

use crate::{api_access::tls, capture::command::RunningCapture};

/// Source ports of what came in for the API, in the order in which they first came.
fn ports(frames: &Frames) -> Result<Vec<String>> {
    let mut ports = Vec::new();
    for [port] in frames.fields("tcp.dstport == 7443", ["tcp.srcport"])? {
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    Ok(ports)
}

pub(crate) fn left_out(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "own", Health::QUICK)?;
    // On such a socket IPv4 clients have IPv6 addresses.
    let spillway = tls::over_tls(&mut fixture, "[::]", "operator")?;
    for server in [IpAddr::from(Fabric::BALANCER_V4), Fabric::BALANCER_V6.into()] {
        let wire = Capture::start(&fixture.fabric.balancer, "eth0", "tcp port 7443")?;
        let client = &fixture.fabric.client;
        let name = if server.is_ipv4() { "v4" } else { "v6" };
        let mut running = RunningCapture::by(spillway(server), client, name, &["--count", "400"])?;
        // Others ask the same address and port until it has enough.
        let mut asked = 0;
        until("the capture has enough", PATIENCE, || {
            let output = spillway(server).arg("status").output()?;
            ensure!(output.status.success(), "{output:?}");
            asked += 1;
            running.running.ended()
        })?;
        let (taken, said) = running.end()?;
        let (wire, taken) = (ports(&wire.stop()?)?, ports(&taken)?);
        let own = wire.first().context("nothing came in for the API")?;
        ensure!(!taken.contains(own), "port {own} is the capture's own: {taken:?}\n{said}");
        ensure!(taken.len() > 1, "{asked} others asked: {taken:?}\n{said}");
        let wire: BTreeSet<_> = wire.iter().collect();
        ensure!(taken.iter().all(|port| wire.contains(port)), "{taken:?} of {wire:?}");
    }
    Ok(())
}
