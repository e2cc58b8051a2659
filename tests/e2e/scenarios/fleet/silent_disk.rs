//! A balancer of a fleet whose disk does not answer.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_tests::{
    daemon::Balancer,
    disk::Disk,
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use spillway_proto::v1::BackendState;

use super::calls::{join_all, wait_for_condition};
use super::members::{wait_for_equal_tables, wait_in_force};

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
