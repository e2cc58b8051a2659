//! A backend that was removed and is there again, while connections of before may still go to it.

use std::net::SocketAddrV4;

use anyhow::{Result, ensure};
use lb_e2e::fixture::ECHO;
use lb_tests::{
    daemon::scrape,
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::Fabric,
};

use super::fixture::MetricsFixture;

/// Which clients there are follows from it.
const SEED: u64 = 7;
const CONNECTIONS: usize = 200;

/// It has a row of its own for as long as its earlier number is in the maps, and counts from 0.
pub(crate) fn has_one_row(sandbox: &Sandbox) -> Result<()> {
    let fixture = MetricsFixture::start(sandbox, "returned")?;
    let MetricsFixture { balancer, fabric, .. } = &fixture;
    balancer.apply(&fixture.configuration(false))?;
    let addresses: Vec<_> = fabric.backends.iter().map(|it| it.v4.into()).collect();
    balancer.wait_up(&addresses, PATIENCE)?;
    let backend = fabric.backends[0].v4.to_string();
    let connections = || {
        until("metrics and stats say the same", PATIENCE, || {
            let metrics = scrape(&fabric.balancer)?;
            let label = [("backend", backend.as_str())];
            let shown = metrics.value("spillway_backend_connections_total", &label);
            let stats = balancer.stats()?.backends;
            let rows: Vec<_> = stats.iter().filter(|it| it.backend == backend).collect();
            ensure!(rows.len() == 1, "{rows:?}");
            Ok(Some(rows[0].connections).filter(|it| shown == Some(*it as f64)))
        })
    };
    let open = |seed: u64, all: usize| {
        fixture.syns(SocketAddrV4::new(Fabric::VIP_V4, ECHO), seed, CONNECTIONS)?;
        until("all are counted", PATIENCE, || {
            let counted = balancer.stats()?.service("stream")?.connections;
            Ok((counted == all as u64).then_some(()))
        })
    };
    open(SEED, CONNECTIONS)?;
    let before = connections()?;
    ensure!(before > 0, "no connection went to {backend}");

    // From all pools: its number is free then, but for those that remember it for an hour.
    let export = balancer.cli(&["export"])?;
    for pool in ["even", "far", "strict", "over", "away"] {
        balancer.cli(&["backend", "delete", &backend, "--pool", pool, "--yes"])?;
    }
    ensure!(connections()? == before, "what it counted is shown as long as it may count");
    balancer.apply(&export)?;
    balancer.wait_up(&addresses, PATIENCE)?;
    ensure!(connections()? == 0, "a new number counts from 0");
    // Others: those of before are remembered under the earlier number.
    open(SEED + 1, 2 * CONNECTIONS)?;
    let again = connections()?;
    ensure!(again > 0 && again < 2 * before, "{again} connections, {before} at first");
    Ok(())
}
