//! Long connections outlast everything that moves new ones.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::fixture::Health;
use lb_e2e::harness;
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::LongConnections;

use crate::overload::fixture::OverloadFixture;

/// Connections at home, and about as many as are spilled.
const AT_HOME: usize = 200;
const SPILLED: usize = 300;
/// Quick enough to wait for, patient enough for a busy machine.
const HEALTH: Health = Health { interval_ms: 400, fall: 4 };

/// Opens so many more; answers how many each region has of them.
fn open(connections: &mut LongConnections, number: usize) -> Result<(usize, usize)> {
    let opened = connections.open(OverloadFixture::connections(), number)?;
    let near = opened.iter().filter(|connection| connection.backend().starts_with("eu")).count();
    Ok((near, number - near))
}

/// Connections open before a spill, a limit that goes up and down, an un-spill, a drain, and a fall and
/// return of backends in both regions: each goes on with the backend it has, but those of the fallen.
pub(crate) fn five_hundred(sandbox: &Sandbox) -> Result<()> {
    let mut overload = OverloadFixture::start(sandbox, "long", HEALTH)?;
    let connections = &mut LongConnections::new(&overload.fixture.fabric.client)?;
    // Under capacity all are at home: each SYN has its cell for a minute, so that a repeat of it goes home too, but the
    // displaced check is off, and nobody looks a flow up.
    overload.apply("capacity = \"10000/s\"")?;
    ensure!(open(connections, AT_HOME)? == (AT_HOME, 0), "spilled below the limit");
    connections.all_go_on(&[])?;
    let taken = BTreeMap::from([(Event::FlowTaken, AT_HOME as u64)]);
    ensure!(overload.events()? == taken, "{:?}", overload.events()?);
    let remembered = |overload: &OverloadFixture| -> Result<_> {
        let all = overload.fixture.balancer.stats()?.remembered;
        Ok((all.open(), all.pools_with_displaced))
    };
    ensure!(remembered(&overload)? == (0, vec![]), "{:?}", remembered(&overload)?);

    // A spill.
    overload.apply("capacity = \"1/s\"")?;
    let (near, far) = open(connections, SPILLED)?;
    ensure!(far > SPILLED / 2 && near < SPILLED / 2, "{near} near, {far} far");
    connections.all_go_on(&[])?;
    let away =
        connections.connections().iter().filter(|each| each.backend().starts_with("us")).count();
    ensure!(away == far, "{away} away, {far} spilled");
    // Each that is away from home has one cell, and nobody else has one of an open connection.
    ensure!(
        remembered(&overload)? == (far as u64, vec!["v4".into()]),
        "{:?}",
        remembered(&overload)?
    );

    // The limit raised: the next one is near, and a burst once the kernel's clock has seen it.
    overload.apply("capacity = \"10000/s\"")?;
    ensure!(open(connections, 1)? == (1, 0), "spilled below a raised limit");
    pause(Duration::from_millis(100));
    ensure!(open(connections, 20)? == (20, 0), "spilled below a raised limit");
    connections.all_go_on(&[])?;
    // Lowered: ten at once, and then one every ten seconds.
    overload.apply("capacity = \"0.1/s\"")?;
    let (near, far) = open(connections, 20)?;
    ensure!(near < 15 && far > 5, "{near} near, {far} far");
    connections.all_go_on(&[])?;
    // Taken away.
    overload.apply("")?;
    ensure!(open(connections, 20)? == (20, 0), "spilled without a limit");
    connections.all_go_on(&[])?;

    // Drained and back.
    overload.apply("scaler = 0")?;
    ensure!(open(connections, 20)? == (0, 20), "a drained region had a new connection");
    connections.all_go_on(&[])?;
    overload.apply("")?;
    ensure!(open(connections, 20)? == (20, 0), "a region that is back was passed over");
    connections.all_go_on(&[])?;

    // Checks that fail while the hosts live: no new connections there, and the open ones stay.
    let unhealthy = ["eu2", "us2"];
    let [sick, closed] = unhealthy.map(|name| overload.fixture.number(name));
    let (sick, closed) = (sick?, closed?);
    overload.fixture.servers[sick].be_sick(true)?;
    overload.fixture.servers[closed].kill()?;
    overload.fixture.wait_up(&unhealthy)?;
    let opened = connections.open(OverloadFixture::connections(), 20)?;
    ensure!(
        opened.iter().all(|each| !unhealthy.contains(&each.backend())),
        "new ones on {unhealthy:?}"
    );
    connections.all_go_on(&[])?;
    overload.fixture.servers[sick].be_sick(false)?;
    overload.fixture.servers[closed].restart()?;
    overload.fixture.wait_up(&[])?;
    connections.all_go_on(&[])?;

    // A host in each region falls and returns.
    let fallen = ["eu1", "us1"];
    let hosts = || fallen.map(|name| overload.fixture.number(name));
    for host in hosts() {
        overload.fixture.fabric.backends[host?].unplug()?;
    }
    overload.fixture.wait_up(&fallen)?;
    connections.all_go_on(&fallen)?;
    let had = connections.connections().len();
    connections.forget(&fallen);
    let lost = had - connections.connections().len();
    ensure!(lost > 0, "the fallen had no connections");
    open(connections, 20)?;
    ensure!(connections.connections().iter().all(|each| !fallen.contains(&each.backend())));
    for host in hosts() {
        overload.fixture.fabric.backends[host?].plug_in()?;
    }
    overload.fixture.wait_up(&[])?;
    connections.all_go_on(&[])?;
    until("the returned have connections", PATIENCE, || {
        open(connections, 10)?;
        Ok(connections.connections().iter().any(|each| each.backend() == "eu1").then_some(()))
    })?;
    connections.all_go_on(&[])?;
    let exchanges: u64 = connections.connections().iter().map(|each| each.exchanges()).sum();
    harness::note(format!(
        "{} long connections kept, {lost} were on fallen hosts; {exchanges} exchanges of bytes",
        connections.connections().len(),
    ));
    Ok(())
}
