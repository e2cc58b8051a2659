//! Overrides: what an operator asks for beside the configuration, with real packets.

mod disk;
mod expiry;
mod restarts;
mod shares;
mod waiting;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use lb_e2e::{
    fixture::{Fixture, HTTP, Tunnel},
    harness::Case,
};
use lb_tests::traffic::{Requests, ensure_answered};
use spillway_proto::v1::BackendStatus;

use disk::Fault;

pub(crate) const CASES: &[Case] = &[
    Case::works("a_drain_is_in_force_on_a_full_disk", |sandbox| {
        disk::drain(sandbox, Some(Fault::Full))
    }),
    Case::works("a_drain_is_in_force_on_a_frozen_disk", |sandbox| {
        disk::drain(sandbox, Some(Fault::Frozen))
    }),
    Case::works("a_drain_is_stored_on_a_disk_without_fault", |sandbox| disk::drain(sandbox, None)),
    Case::works("a_drain_that_was_not_stored_is_lost_by_a_kill", disk::lost),
    Case::works("a_drain_stays_over_reload_restart_and_kill_in_file_mode", restarts::file_mode),
    Case::waits("an_override_ends_at_its_time", expiry::ends),
    Case::works("weights_share_new_connections_beyond_half_of_a_group", shares::weights),
    Case::works("a_region_is_drained_and_scaled", shares::region),
    Case::waits("a_drain_is_waited_for", waiting::waits),
];

/// Address of a backend, by its name.
fn address(fixture: &Fixture, name: &str) -> Result<String> {
    Ok(fixture.fabric.backends[fixture.number(name)?].v4.to_string())
}

/// Who answers so many new connections, and how many of them. All are answered.
fn answers(fixture: &Fixture, number: u64) -> Result<BTreeMap<String, u64>> {
    let began = Instant::now();
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 4, Duration::from_micros(500));
    requests.wait_for(number)?;
    let attempts = requests.finish()?;
    ensure_answered(&attempts, began, Instant::now(), &[])?;
    let mut answers = BTreeMap::new();
    for name in attempts.into_iter().filter_map(|attempt| attempt.answer.ok()) {
        *answers.entry(name).or_default() += 1;
    }
    Ok(answers)
}

/// Row of a backend of pool `v4` in `status`.
fn status_of(fixture: &Fixture, address: &str) -> Result<BackendStatus> {
    let mut backends = fixture.balancer.status()?.backends.into_iter();
    backends.find(|it| it.pool == "v4" && it.address == address).context("no such backend")
}

/// Names of the overrides in force.
fn names(fixture: &Fixture) -> Result<Vec<String>> {
    Ok(fixture.balancer.overrides()?.overrides.into_iter().map(|it| it.name).collect())
}
