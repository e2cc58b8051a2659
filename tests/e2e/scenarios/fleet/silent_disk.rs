//! A balancer of a fleet whose disk does not answer.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{FleetFixture, FleetPlan},
    harness,
};
use lb_tests::{
    daemon::Balancer,
    disk::Disk,
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use nix::sys::signal::Signal;
use spillway_proto::v1::BackendState;

use super::calls::{UNAVAILABLE, ensure_refused, join_all, reweigh, wait_for_condition};
use super::members::{status, wait_for_equal_tables, wait_in_force};

const PLAN: FleetPlan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };

/// The balancer whose state is on a disk of its own.
const SILENT: usize = 1;

/// A fleet, and the disk of one of its balancers. The disk goes first, so that it answers when the daemon is waited for.
struct OnDisk {
    disk: Disk,
    fleet: FleetFixture,
}

impl OnDisk {
    fn start(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let mut fleet = FleetFixture::prepare(sandbox, name, PLAN)?;
        let disk = Disk::mount(sandbox)?;
        fleet.balancers[SILENT].state = disk.directory().join("state");
        fleet.balancers.iter_mut().try_for_each(Balancer::spawn)?;
        fleet.balancers.iter_mut().try_for_each(Balancer::wait_until_it_answers)?;
        join_all(&mut fleet)?;
        Ok(Self { disk, fleet })
    }
}

/// Waits until exactly these backends are drained at a balancer, as far as it has them.
fn wait_for_drains(fleet: &FleetFixture, at: usize, drained: &[&str]) -> Result<()> {
    let names: BTreeSet<String> = drained.iter().map(|it| format!("backends/{it}/drain")).collect();
    until(&format!("{drained:?} are drained"), PATIENCE, || {
        let overrides = fleet.balancers[at].overrides()?.overrides;
        let overrides: BTreeSet<String> = overrides.into_iter().map(|it| it.name).collect();
        let status = fleet.balancers[at].status()?;
        let mut backends = status.backends.iter();
        let is_as_said = backends.all(|it| {
            let is_draining = it.state() == BackendState::Draining;
            is_draining == drained.contains(&it.address.as_str())
        });
        Ok((overrides == names && is_as_said).then_some(()))
    })
    .with_context(|| format!("{}: {:#?}", fleet.name(at), fleet.balancers[at].overrides()))
}

/// Drains are followed while a generation waits for the disk, and so is one of a backend that only that generation has.
pub(super) fn drains_go_on(sandbox: &Sandbox) -> Result<()> {
    let OnDisk { mut disk, fleet } = OnDisk::start(sandbox, "silent")?;
    let [one, two, later] = [0, 1, 2].map(|at| fleet.fabric.backends[at].v4.to_string());
    let region = fleet.fabric.backends[2].region;
    fleet.spillway(0, &["backend", "delete", &later, "--pool", "v4", "--yes", "--wait"])?;
    wait_in_force(&fleet, 0, 2)?;
    disk.freeze()?;

    // What is in force is not stored, and that holds up nothing.
    fleet.spillway(0, &["backend", "drain", &one, "--yes"])?;
    wait_for_drains(&fleet, SILENT, &[&one])?;
    fleet.spillway(0, &["backend", "drain", &two, "--yes"])?;
    wait_for_drains(&fleet, SILENT, &[&one, &two])?;
    wait_for_condition(&fleet, SILENT, ("fleet record", "the disk does not answer"))?;

    // A generation waits for the disk, and nothing behind it does.
    fleet.spillway(0, &["backend", "create", &later, "--pool", "v4", "--region", region])?;
    wait_for_condition(&fleet, SILENT, ("store", "the disk does not answer"))?;
    fleet.spillway(0, &["backend", "drain", &later, "--yes"])?;
    fleet.spillway(0, &["backend", "undrain", &two])?;
    wait_for_drains(&fleet, SILENT, &[&one, &later])?;
    ensure!(fleet.balancers[SILENT].status()?.generation == 2, "the generation did not wait");
    // The operator of that balancer changes the fleet's overrides too.
    fleet.spillway(SILENT, &["backend", "undrain", &one])?;
    wait_for_drains(&fleet, 0, &[&later])?;
    wait_for_drains(&fleet, SILENT, &[&later])?;

    disk.thaw()?;
    wait_in_force(&fleet, 0, 3)?;
    wait_for_drains(&fleet, SILENT, &[&later])?;
    let status = fleet.balancers[SILENT].status()?;
    ensure!(status.backends.iter().any(|it| it.address == later), "{later} is lost: {status:#?}");
    wait_for_equal_tables(&fleet, 0)
}

/// A daemon ends before the service manager kills it, with the health state saved, whatever it was writing.
pub(super) fn stop(sandbox: &Sandbox) -> Result<()> {
    let OnDisk { mut disk, mut fleet } = OnDisk::start(sandbox, "stop")?;
    let one = fleet.fabric.backends[0].v4.to_string();
    // While nothing is written: the store writes when it is closed.
    disk.freeze()?;
    let idle = stop_while_silent(&mut fleet)?;
    disk.thaw()?;
    start_again(&mut fleet, 1)?;

    // While the record of the fleet, overrides and a generation are written.
    disk.freeze()?;
    fleet.spillway(0, &["backend", "drain", &one, "--yes"])?;
    fleet.spillway(0, &reweigh(&one, "2")[..7])?;
    wait_for_condition(&fleet, SILENT, ("fleet record", "the disk does not answer"))?;
    wait_for_condition(&fleet, SILENT, ("store", "the disk does not answer"))?;
    let busy = stop_while_silent(&mut fleet)?;
    disk.thaw()?;
    start_again(&mut fleet, 2)?;
    wait_for_drains(&fleet, SILENT, &[&one])?;
    harness::note(format!("stops while the disk is silent: {idle:.1?}, with writes {busy:.1?}"));
    Ok(())
}

/// Stops the daemon. A thread that waits for the disk keeps its process until that answers, but nothing of it runs any more.
fn stop_while_silent(fleet: &mut FleetFixture) -> Result<Duration> {
    let health_state = health_state(&fleet.balancers[SILENT]);
    fs::remove_file(&health_state).context("the health state before the stop")?;
    let running = fleet.balancers[SILENT].running().context("the daemon does not run")?;
    let stat = format!("/proc/{}/stat", running.id());
    let begin = Instant::now();
    running.signal(Signal::SIGTERM)?;
    let ended = until("the daemon ends", PATIENCE, || Ok(has_ended(&stat).then_some(())));
    ended.with_context(|| running.output())?;
    let took = begin.elapsed();
    let said = running.output();
    // The last loop to end closes the store.
    let is_left = said.lines().any(|line| {
        line.contains("the disk does not answer: ") && line.ends_with(" loop is left behind")
    });
    ensure!(is_left, "{said}");
    ensure!(took < stop_limit()?, "the service manager kills it: {took:.1?}");
    ensure!(health_state.exists(), "the health state is not saved: {said}");
    Ok(took)
}

/// Whether a process is gone, or waits for the threads of it that cannot be ended.
fn has_ended(stat: &str) -> bool {
    let stat = fs::read_to_string(stat).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.trim_start().starts_with('Z'))
}

fn start_again(fleet: &mut FleetFixture, generation: u64) -> Result<()> {
    fleet.balancers[SILENT].stop()?;
    fleet.balancers[SILENT].start()?;
    wait_in_force(fleet, 0, generation).map(drop)
}

fn health_state(balancer: &Balancer) -> PathBuf {
    let mut path = balancer.socket.clone().into_os_string();
    path.push(".health-state");
    path.into()
}

/// After how long the service manager kills a daemon that it stops.
fn stop_limit() -> Result<Duration> {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/systemd/spillway-balancer.service");
    let unit = fs::read_to_string(unit)?;
    let seconds =
        unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")?.strip_suffix('s'));
    Ok(Duration::from_secs(seconds.context("no TimeoutStopSec")?.parse()?))
}

/// A balancer whose disk would forget that it left does not leave, and says so.
pub(super) fn leave(sandbox: &Sandbox) -> Result<()> {
    let OnDisk { mut disk, fleet } = OnDisk::start(sandbox, "leave")?;
    let one = fleet.fabric.backends[0].v4.to_string();
    disk.freeze()?;
    let refused = (UNAVAILABLE, &["the disk", "does not answer: nothing was changed"][..]);
    ensure_refused(&fleet, SILENT, &["fleet", "leave", "--abandon", "--yes"], refused)?;
    ensure_refused(&fleet, SILENT, &["fleet", "leave", "--yes"], refused)?;
    // It takes part as before.
    fleet.spillway(0, &["backend", "drain", &one, "--yes"])?;
    wait_for_drains(&fleet, SILENT, &[&one])?;
    ensure!(status(&fleet, SILENT)?.member, "it left");

    disk.thaw()?;
    fleet.spillway(SILENT, &["fleet", "leave", "--abandon", "--yes"])?;
    ensure!(!status(&fleet, SILENT)?.member, "it did not leave");
    let left: Vec<_> = fs::read_dir(&fleet.balancers[SILENT].state)?.collect::<Result<_, _>>()?;
    let names: Vec<_> = left.iter().map(|it| it.file_name()).collect();
    ensure!(
        names.iter().all(|name| !name.to_string_lossy().starts_with("fleet.json")),
        "{names:?}"
    );
    Ok(())
}
