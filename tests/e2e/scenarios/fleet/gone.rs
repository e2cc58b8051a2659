//! Overrides of a fleet whose backend is gone.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use serde_json::{Value, json};
use spillway_proto::v1::{BackendState, Override};

use super::calls::{joined_as, wait_for_condition, wait_until_well};
use super::members::wait_in_force;
use super::versions::commit_newer;

const PLAN: FleetPlan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };

/// A balancer that starts ends no overrides for half a minute: its clock was compared with none until then.
const LOOKED_FOR: Duration = PATIENCE.saturating_mul(2);

/// How long an override stays without its backend, milliseconds.
const HOUR: u64 = 3_600_000;

/// A retired server's drain ends an hour later, and a server that comes back by then is drained.
pub(super) fn an_hour_later(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "hour", PLAN)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let region = fleet.fabric.backends[1].region;
    let remove = ["backend", "delete", &backend, "--pool", "v4", "--yes", "--wait"];
    let add = ["backend", "create", &backend, "--pool", "v4", "--region", region, "--wait"];
    fleet.spillway(0, &["backend", "drain", &backend, "--yes"])?;

    // It comes back while a balancer is off that remembers an hour without it: that one must not say what goes.
    fleet.spillway(0, &remove)?;
    wait_until_absent(&fleet)?;
    fleet.balancers[1].kill()?;
    age_absence(&fleet, 1)?;
    fleet.spillway(0, &add)?;
    fleet.balancers[1].start()?;
    wait_in_force(&fleet, 1, 3)?;
    for at in 0..2 {
        until("the backend is drained again", PATIENCE, || {
            let drain = the_override(&fleet, at)?.context("the drain is gone")?;
            let status = fleet.balancers[at].status()?;
            let state =
                status.backends.iter().find(|it| it.address == backend).map(|it| it.state());
            let is_back = drain.absent_since.is_none() && state == Some(BackendState::Draining);
            Ok(is_back.then_some(()))
        })?;
    }

    // It was gone and back in between: the hour begins anew at a balancer that saw neither.
    fleet.spillway(0, &remove)?;
    wait_until_absent(&fleet)?;
    fleet.balancers[1].kill()?;
    age_absence(&fleet, 1)?;
    fleet.spillway(0, &add)?;
    fleet.spillway(0, &remove)?;
    fleet.balancers[1].start()?;
    wait_in_force(&fleet, 1, 6)?;
    until("the hour has begun anew", LOOKED_FOR, || {
        let drain = the_override(&fleet, 1)?.context("the drain is gone")?;
        let since = drain.absent_since.context("there is no backend")?;
        let age = milliseconds()?.saturating_sub(u64::try_from(since.seconds)? * 1000);
        Ok((age < HOUR / 2).then_some(()))
    })?;

    // An hour later it is gone everywhere, and the address is a new backend's.
    fleet.balancers[1].kill()?;
    age_absence(&fleet, 1)?;
    fleet.balancers[1].start()?;
    for at in 0..2 {
        until("the drain is gone", LOOKED_FOR, || {
            Ok(the_override(&fleet, at)?.is_none().then_some(()))
        })?;
    }
    let left = stored_in_etcd(&fleet)?;
    ensure!(left.trim().is_empty(), "{left}");
    fleet.spillway(1, &add)?;
    until("the new backend takes connections", PATIENCE, || {
        let status = fleet.balancers[0].status()?;
        let mut of_address = status.backends.iter().filter(|it| it.address == backend);
        Ok(of_address.any(|it| it.state() == BackendState::Up).then_some(()))
    })
}

/// What has another generation in force than etcd has does not know which backends there are.
pub(super) fn not_by_one_that_lags(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "lags", PLAN)?;
    let [backend, other] = [1, 0].map(|at| fleet.fabric.backends[at].v4.to_string());
    fleet.spillway(0, &["backend", "drain", &backend, "--yes"])?;
    fleet.spillway(0, &["backend", "delete", &backend, "--pool", "v4", "--yes", "--wait"])?;
    wait_until_absent(&fleet)?;
    // Its end shows that the balancer has looked for what is over.
    fleet.spillway(0, &["backend", "drain", &other, "--for", "20s", "--yes"])?;
    fleet.balancers[0].kill()?;
    fleet.balancers[1].kill()?;
    age_absence(&fleet, 1)?;
    commit_newer(&fleet)?;
    fleet.balancers[1].start()?;
    wait_for_condition(&fleet, 1, ("fleet configuration", "older than the configuration"))?;
    until("the timed drain is over", LOOKED_FOR, || {
        let left = stored_in_etcd(&fleet)?;
        ensure!(left.contains(&backend), "the other one ended: {left}");
        Ok((!left.contains(&other)).then_some(()))
    })?;

    // It ends once the balancer follows what etcd has, an hour after it began to.
    fleet.spillway(1, &["fleet", "restore", "--from=this", "--yes"])?;
    wait_until_well(&fleet, [1])?;
    fleet.balancers[1].kill()?;
    age_absence(&fleet, 1)?;
    fleet.balancers[1].start()?;
    until("the drain is over", LOOKED_FOR, || {
        Ok(stored_in_etcd(&fleet)?.trim().is_empty().then_some(()))
    })
}

fn stored_in_etcd(fleet: &FleetFixture) -> Result<String> {
    let etcd = fleet.etcd.as_ref().context("no etcd")?;
    etcd.ask(&["get", "--prefix", "--keys-only", "/spillway/edge/overrides/"])
}

fn the_override(fleet: &FleetFixture, at: usize) -> Result<Option<Override>> {
    let listed = fleet.balancers[at].overrides()?.overrides;
    ensure!(listed.len() <= 1, "{listed:#?}");
    Ok(listed.into_iter().next())
}

fn wait_until_absent(fleet: &FleetFixture) -> Result<()> {
    for at in 0..2 {
        until("the drain has no backend", PATIENCE, || {
            let drain = the_override(fleet, at)?.context("the drain is gone")?;
            Ok(drain.absent_since.is_some().then_some(()))
        })?;
        until("that is stored", PATIENCE, || Ok(absent(&mut stored(fleet, at)?).map(drop)))?;
    }
    Ok(())
}

fn stored(fleet: &FleetFixture, at: usize) -> Result<Value> {
    let path = fleet.balancers[at].state.join("overrides.json");
    Ok(serde_json::from_slice(&fs::read(&path)?)?)
}

/// The stored override whose backend is gone.
fn absent(content: &mut Value) -> Option<&mut Value> {
    content["overrides"].as_array_mut()?.iter_mut().find(|it| it.get("absent_since").is_some())
}

/// A balancer that does not run remembers an hour since the backend went.
fn age_absence(fleet: &FleetFixture, at: usize) -> Result<()> {
    let mut content = stored(fleet, at)?;
    let drain = absent(&mut content).context("every override has its backend")?;
    drain["absent_since"] = json!(milliseconds()? - HOUR);
    fs::write(fleet.balancers[at].state.join("overrides.json"), serde_json::to_vec(&content)?)?;
    Ok(())
}

fn milliseconds() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?)
}
