//! Balancers that are members of a fleet: one configuration and one set of overrides.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan, Health};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use serde_json::Value;

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

/// What `fleet status` of a balancer says.
pub(super) fn status(fleet: &FleetFixture, balancer: usize) -> Result<Value> {
    fleet.balancers[balancer].ask(&["fleet", "status"])
}

/// Waits until every balancer has a generation in force and is ready, as one of them sees it.
pub(super) fn wait_in_force(fleet: &FleetFixture, at: usize, generation: u64) -> Result<Duration> {
    let begin = Instant::now();
    until("all balancers have the generation in force", PATIENCE, || {
        let status = status(fleet, at)?;
        let members = status["balancers"].as_array().cloned().unwrap_or_default();
        let is_there = |member: &Value| {
            member["generation"] == generation && member["ready"] == true && member["alive"] == true
        };
        Ok((members.len() == fleet.balancers.len() && members.iter().all(is_there)).then_some(()))
    })
    .with_context(|| format!("{:#}", status(fleet, at).unwrap_or_default()))?;
    Ok(begin.elapsed())
}

/// Any balancer changes the configuration and the overrides of all.
pub(crate) fn one_configuration(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined(sandbox, "members", "1000/s")?;
    wait_in_force(&fleet, 3, 1)?;
    let status = status(&fleet, 2)?;
    ensure!(status["member"] == true && status["fleet"] == "edge", "{status:#}");
    let tables: Vec<_> = status["balancers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it["tables"].clone())
        .collect();
    ensure!(tables.windows(2).all(|pair| pair[0] == pair[1]), "{status:#}");

    // A change at the last one is in force at the first.
    let backend = fleet.fabric.backends[0].v4.to_string();
    let changed = fleet
        .spillway(3, &["backend", "update", &backend, "--pool", "v4", "--weight", "2", "--wait"])?;
    ensure!(changed.contains("generation 2"), "{changed}");
    wait_in_force(&fleet, 0, 2)?;
    let export = fleet.spillway(0, &["export"])?;
    ensure!(export.contains("weight = 2"), "{export}");

    let history = fleet.spillway(2, &["history"])?;
    ensure!(["join at lb-1", "uid 0 at lb-4"].iter().all(|it| history.contains(it)), "{history}");

    // A rollback to a generation, at yet another one.
    fleet.spillway(1, &["rollback", "1", "--yes", "--wait"])?;
    wait_in_force(&fleet, 2, 3)?;
    ensure!(!fleet.spillway(3, &["export"])?.contains("weight = 2"));

    // Overrides too.
    fleet.spillway(2, &["backend", "drain", &backend, "--yes"])?;
    let is_drained = |balancer: usize| -> Result<bool> {
        let status = fleet.balancers[balancer].ask(&["override", "list"])?;
        Ok(status["overrides"].as_array().is_some_and(|all| all.len() == 1))
    };
    until("the drain is in force everywhere", PATIENCE, || {
        for balancer in 0..fleet.balancers.len() {
            if !is_drained(balancer)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
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
