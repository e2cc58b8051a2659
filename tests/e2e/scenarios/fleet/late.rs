//! Balancers that come back when the fleet has gone on without them.

use std::{
    fs, panic, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_pieces::Digest;
use lb_tests::{
    daemon::answers::member,
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use serde_json::{Value, json};

use super::calls::{
    CONFLICT, condition, ensure_refused, joined_as, reweigh, wait_for_condition, wait_until_well,
};
use super::members::{status, wait_in_force};
use super::versions::{delete, put};

const TWO: FleetPlan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };

/// Etcd no longer has the generations since it went off.
pub(super) fn off_for_long(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "longoff", TWO)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    fleet.balancers[1].kill()?;
    for weight in ["2", "3", "4"] {
        fleet.spillway(0, &reweigh(&backend, weight))?;
    }
    for number in 1..=3 {
        delete(&fleet, &format!("config/history/{number}"))?;
    }
    fleet.balancers[1].start()?;
    wait_in_force(&fleet, 1, 4)?;
    let status = status(&fleet, 1)?;
    ensure!(status.conflict.is_empty(), "{status:#?}");
    ensure!(fleet.spillway(1, &["export"])?.contains("weight = 4"));
    fleet.spillway(1, &reweigh(&backend, "5"))?;
    wait_in_force(&fleet, 0, 5).map(drop)
}

/// What is in force at a balancer has another past than what etcd has: while others follow etcd it takes no traffic, and if
/// none does, all serve what they have.
pub(super) fn another_past(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "past", TWO)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    fleet.balancers[1].kill()?;
    forge_past(&fleet, 1)?;
    fleet.spillway(0, &reweigh(&backend, "2")[..7])?;
    fleet.balancers[1].start()?;
    let words = "does not descend from generation 1";
    wait_for_condition(&fleet, 1, ("fleet", words))?;
    until("it says why it is not ready", PATIENCE, || {
        let status = status(&fleet, 1)?;
        let own = member(&status, "lb-2")?;
        let cause = format!(
            "balancer lb-1 follows etcd, and this one does not: generation 2 of etcd {words}"
        );
        Ok((!own.ready && own.not_ready_cause.starts_with(&cause)).then_some(()))
    })
    .with_context(|| format!("{:#?}", status(&fleet, 1)))?;
    ensure!(member(&status(&fleet, 0)?, "lb-1")?.ready);
    // It undoes nothing of what the fleet did.
    for from in ["--from=this", "--from=etcd"] {
        let refusal = ["balancer lb-1 follows etcd", words, "spillway fleet leave --abandon"];
        ensure_refused(&fleet, 1, &["fleet", "restore", from, "--yes"], (CONFLICT, &refusal))?;
    }

    // While nobody follows etcd it serves.
    let serves = |fleet: &FleetFixture, serves: bool| {
        until("it serves while nobody follows etcd", PATIENCE, || {
            Ok((member(&status(fleet, 1)?, "lb-2")?.ready == serves).then_some(()))
        })
        .with_context(|| format!("{serves}: {:#?}", status(fleet, 1)))
    };
    fleet.balancers[0].kill()?;
    serves(&fleet, true)?;
    fleet.balancers[0].start()?;
    serves(&fleet, false)?;
    // The way out.
    fleet.spillway(1, &["fleet", "leave", "--abandon", "--yes"])?;
    fleet.spillway(1, &["fleet", "join", "--yes"])?;
    wait_in_force(&fleet, 0, 2)?;
    ensure!(fleet.spillway(1, &["export"])?.contains("weight = 2"));

    // The same at all balancers, as if etcd was replaced: all serve what they have.
    for at in 0..2 {
        fleet.balancers[at].kill()?;
        forge_past(&fleet, at)?;
    }
    fleet.balancers[0].start()?;
    fleet.balancers[1].start()?;
    for at in 0..2 {
        wait_for_condition(&fleet, at, ("fleet", "generation"))?;
        until("both serve what they have", PATIENCE, || {
            Ok(member(&status(&fleet, at)?, fleet.name(at))?.ready.then_some(()))
        })
        .with_context(|| format!("{:#?}", status(&fleet, at)))?;
        ensure!(condition(&fleet, at, "fleet")?.is_some());
    }
    fleet.spillway(0, &["fleet", "restore", "--from=this", "--yes"])?;
    wait_until_well(&fleet, 0..2)?;
    until("both follow", PATIENCE, || {
        let members = status(&fleet, 1)?.members;
        let generation = members[0].generation;
        Ok(members.iter().all(|it| it.ready && it.generation == generation).then_some(()))
    })
}

/// What a balancer that does not run has in force, with another past.
fn forge_past(fleet: &FleetFixture, at: usize) -> Result<()> {
    let path = fleet.balancers[at].state.join("fleet.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path)?)?;
    let generation = &mut record["guard"]["in_force"]["generation"];
    ensure!(generation[1].is_string(), "{generation}");
    generation[1] = json!(Digest::new(b"elsewhere").to_string());
    fs::write(&path, serde_json::to_vec(&record)?)?;
    Ok(())
}

/// Changes at a time.
const CHANGES: u32 = 8;

/// How long an answer waits for balancers that lag.
const WAIT: Duration = Duration::from_millis(500);

/// A balancer that does not follow delays each answer for a moment, and not the changes that come after it.
pub(super) fn lagging(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined_as(sandbox, "lagging", TWO)?;
    let backend = fleet.fabric.backends[1].v4.to_string();
    let mut changes = 0;
    let mut time_of_changes = || -> Result<Duration> {
        let begun = Instant::now();
        thread::scope(|scope| {
            let weights = (1..=CHANGES).map(|it| (changes + it + 1).to_string());
            let started: Vec<_> = weights
                .map(|weight| {
                    let (fleet, backend) = (&fleet, &backend);
                    scope
                        .spawn(move || fleet.spillway(0, &reweigh(backend, &weight)[..7]).map(drop))
                })
                .collect();
            started
                .into_iter()
                .try_for_each(|it| it.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
        })?;
        changes += CHANGES;
        wait_in_force(&fleet, 1, (changes + 1).into())?;
        Ok(begun.elapsed())
    };
    let without = time_of_changes()?;
    let lags =
        r#"{"format":1,"version":"0.0.9","schema":9,"revision":0,"tables":{},"conditions":[]}"#;
    put(&fleet, "alive/lb-9", lags)?;
    let with = time_of_changes()?;
    // One after the other they would wait for that balancer eight times.
    let most = without + WAIT * (CHANGES / 2);
    ensure!(with < most, "{CHANGES} changes in {with:?}, and in {without:?} without it");
    delete(&fleet, "alive/lb-9")
}
