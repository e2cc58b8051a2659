//! Long connections through all that moves new ones.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use lb_common::abi::event::Event;
use lb_tests::harness;
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::Health;
use lb_tests::traffic::Crowd;

use serde_json::json;

use crate::overload::stage::Stage;

/// Connections at home, and about as many as are spilled.
const AT_HOME: usize = 200;
const SPILLED: usize = 300;
/// Quick enough to wait for, patient enough for a busy machine.
const HEALTH: Health = Health { interval_ms: 400, fall: 4 };

/// Opens so many more; answers how many each region has of them.
fn open(crowd: &mut Crowd, number: usize) -> Result<(usize, usize)> {
    let opened = crowd.open(Stage::crowd(), number)?;
    let near = opened.iter().filter(|connection| connection.backend().starts_with("eu")).count();
    Ok((near, number - near))
}

/// Connections open before a spill, a limit that goes up and down, an un-spill, a drain, and a fall and
/// return of backends in both regions: each goes on with the backend it has, but those of the fallen.
pub(crate) fn five_hundred(sandbox: &Sandbox) -> Result<()> {
    let mut stage = Stage::start(sandbox, "long", HEALTH)?;
    let crowd = &mut Crowd::new(&stage.scene.fabric.client)?;
    // Under capacity all are at home: the gate is closed, and nobody asks for exceptions.
    stage.apply("capacity = \"10000/s\"")?;
    ensure!(open(crowd, AT_HOME)? == (AT_HOME, 0), "spilled below the limit");
    crowd.all_go_on(&[])?;
    ensure!(stage.events()? == BTreeMap::new(), "{:?}", stage.events()?);
    let remembered = |stage: &Stage| -> Result<_> {
        let stats = stage.scene.balancer.ask(&["stats"])?;
        let all = &stats["remembered"];
        Ok((all["tables"][0]["held"].clone(), all["open_gates"].clone()))
    };
    ensure!(remembered(&stage)? == (json!(0), json!([])), "{:?}", remembered(&stage)?);

    // A spill.
    stage.apply("capacity = \"1/s\"")?;
    let (near, far) = open(crowd, SPILLED)?;
    ensure!(far > SPILLED / 2 && near < SPILLED / 2, "{near} near, {far} far");
    crowd.all_go_on(&[])?;
    let away = crowd.connections().iter().filter(|each| each.backend().starts_with("us")).count();
    ensure!(away == far, "{away} away, {far} spilled");
    // Each that is away from home has one exception, and nobody else has.
    let events = stage.events()?;
    ensure!(events.get(&Event::ExceptionInserted) == Some(&(far as u64)), "{events:?}");
    ensure!(events.get(&Event::ExceptionHit) > Some(&(far as u64)), "{events:?}");
    ensure!(remembered(&stage)? == (json!(far), json!(["v4"])), "{:?}", remembered(&stage)?);

    // The limit raised: the next one is near, and a burst once the kernel's clock has seen it.
    stage.apply("capacity = \"10000/s\"")?;
    ensure!(open(crowd, 1)? == (1, 0), "spilled below a raised limit");
    pause(Duration::from_millis(100));
    ensure!(open(crowd, 20)? == (20, 0), "spilled below a raised limit");
    crowd.all_go_on(&[])?;
    // Lowered: ten at once, and then one every ten seconds.
    stage.apply("capacity = \"0.1/s\"")?;
    let (near, far) = open(crowd, 20)?;
    ensure!(near < 15 && far > 5, "{near} near, {far} far");
    crowd.all_go_on(&[])?;
    // Taken away.
    stage.apply("")?;
    ensure!(open(crowd, 20)? == (20, 0), "spilled without a limit");
    crowd.all_go_on(&[])?;

    // Drained and back.
    stage.apply("scaler = 0")?;
    ensure!(open(crowd, 20)? == (0, 20), "a drained region had a new connection");
    crowd.all_go_on(&[])?;
    stage.apply("")?;
    ensure!(open(crowd, 20)? == (20, 0), "a region that is back was passed over");
    crowd.all_go_on(&[])?;

    // Checks that fail while the hosts live: no new connections there, and the open ones stay.
    let unfit = ["eu2", "us2"];
    let [sick, closed] = unfit.map(|name| stage.scene.number(name));
    let (sick, closed) = (sick?, closed?);
    stage.scene.servers[sick].be_sick(true)?;
    stage.scene.servers[closed].kill()?;
    stage.scene.wait_up(&unfit)?;
    let opened = crowd.open(Stage::crowd(), 20)?;
    ensure!(opened.iter().all(|each| !unfit.contains(&each.backend())), "new ones on {unfit:?}");
    crowd.all_go_on(&[])?;
    stage.scene.servers[sick].be_sick(false)?;
    stage.scene.servers[closed].restart()?;
    stage.scene.wait_up(&[])?;
    crowd.all_go_on(&[])?;

    // A host in each region falls and returns.
    let fallen = ["eu1", "us1"];
    let hosts = || fallen.map(|name| stage.scene.number(name));
    for host in hosts() {
        stage.scene.fabric.backends[host?].unplug()?;
    }
    stage.scene.wait_up(&fallen)?;
    crowd.all_go_on(&fallen)?;
    let had = crowd.connections().len();
    crowd.forget(&fallen);
    let lost = had - crowd.connections().len();
    ensure!(lost > 0, "the fallen had no connections");
    open(crowd, 20)?;
    ensure!(crowd.connections().iter().all(|each| !fallen.contains(&each.backend())));
    for host in hosts() {
        stage.scene.fabric.backends[host?].plug_in()?;
    }
    stage.scene.wait_up(&[])?;
    crowd.all_go_on(&[])?;
    until("the returned have connections", PATIENCE, || {
        open(crowd, 10)?;
        Ok(crowd.connections().iter().any(|each| each.backend() == "eu1").then_some(()))
    })?;
    crowd.all_go_on(&[])?;
    let exchanges: u64 = crowd.connections().iter().map(|each| each.exchanges()).sum();
    harness::note(format!(
        "{} long connections kept, {lost} were on fallen hosts; {exchanges} exchanges of bytes",
        crowd.connections().len(),
    ));
    Ok(())
}
