//! Balancers that are members of a fleet: one configuration and one set of overrides.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan, Health};
use lb_tests::{
    daemon::printed::{FleetProblem, FleetReport},
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use spillway_proto::v1::FleetStatus;

/// A fleet whose balancers have joined, with the configuration that the first one had.
pub(super) fn joined(sandbox: &Sandbox, name: &str, capacity: &str) -> Result<FleetFixture> {
    let mut fleet = FleetFixture::start(sandbox, name, FleetPlan::FLEET)?;
    let text = fleet.configuration_with(Health::DEFAULT, capacity, None)?;
    fleet.balancers[0].apply(&text)?;
    for balancer in 0..fleet.balancers.len() {
        fleet.spillway(balancer, &["fleet", "join", "--yes"])?;
    }
    fleet.wait_up()?;
    Ok(fleet)
}

/// The fleet as a balancer sees it.
pub(super) fn status(fleet: &FleetFixture, balancer: usize) -> Result<FleetStatus> {
    Ok(fleet.balancers[balancer].client()?.fleet_status()?)
}

/// What is wrong with the fleet, as `fleet status` of a balancer finds.
pub(super) fn problems(fleet: &FleetFixture, balancer: usize) -> Result<Vec<FleetProblem>> {
    let report: FleetReport = fleet.balancers[balancer].printed(&["fleet", "status"])?;
    Ok(report.problems)
}

/// Waits until the tables of all balancers send each connection to the same backend, as one of them sees it: what it has
/// of another one is as old as that one's last message.
pub(super) fn wait_for_equal_tables(fleet: &FleetFixture, at: usize) -> Result<()> {
    until("the tables are equal", PATIENCE, || {
        let members = status(fleet, at)?.members;
        Ok(members.windows(2).all(|pair| pair[0].tables == pair[1].tables).then_some(()))
    })
    .with_context(|| format!("{:#?}", status(fleet, at)))
}

/// Waits until every balancer has a generation in force and is ready, as one of them sees it.
pub(super) fn wait_in_force(fleet: &FleetFixture, at: usize, generation: u64) -> Result<Duration> {
    let begin = Instant::now();
    until("all balancers have the generation in force", PATIENCE, || {
        let status = status(fleet, at)?;
        let mut members = status.members.iter();
        let are_there = members.all(|it| it.generation == generation && it.ready && it.alive);
        Ok((status.members.len() == fleet.balancers.len() && are_there).then_some(()))
    })
    .with_context(|| format!("{:#?}", status(fleet, at)))?;
    Ok(begin.elapsed())
}

/// Any balancer changes the configuration and the overrides of all.
pub(crate) fn one_configuration(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined(sandbox, "members", "1000/s")?;
    wait_in_force(&fleet, 3, 1)?;
    let status = status(&fleet, 2)?;
    ensure!(status.member && status.fleet == "edge", "{status:#?}");
    wait_for_equal_tables(&fleet, 2)?;

    // A change at the last one is in force at the first.
    let backend = fleet.fabric.backends[0].v4.to_string();
    let changed = fleet
        .spillway(3, &["backend", "update", &backend, "--pool", "v4", "--weight", "2", "--wait"])?;
    ensure!(changed.contains("generation 2"), "{changed}");
    wait_in_force(&fleet, 0, 2)?;
    let export = fleet.spillway(0, &["export"])?;
    ensure!(export.contains("weight = 2"), "{export}");

    let history = fleet.spillway(2, &["history"])?;
    ensure!(
        ["join at lb-1", "uid 0 (root) at lb-4"].iter().all(|it| history.contains(it)),
        "{history}"
    );

    // A rollback to a generation, at yet another one.
    fleet.spillway(1, &["rollback", "1", "--yes", "--wait"])?;
    wait_in_force(&fleet, 2, 3)?;
    ensure!(!fleet.spillway(3, &["export"])?.contains("weight = 2"));

    // Overrides too.
    fleet.spillway(2, &["backend", "drain", &backend, "--yes"])?;
    let is_drained = |balancer: usize| -> Result<bool> {
        Ok(fleet.balancers[balancer].overrides()?.overrides.len() == 1)
    };
    until("the drain is in force everywhere", PATIENCE, || {
        for balancer in 0..fleet.balancers.len() {
            if !is_drained(balancer)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    // Who did it reads as in the history.
    let listed = fleet.balancers[0].overrides()?.overrides;
    ensure!(listed[0].who == "uid 0 (root) at lb-3", "{listed:?}");
    fleet.spillway(0, &["backend", "undrain", &backend])?;
    until("the drain is over everywhere", PATIENCE, || {
        for balancer in 0..fleet.balancers.len() {
            if is_drained(balancer)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    Ok(())
}
