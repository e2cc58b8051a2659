//! A failing application is not a lost host: its open connections stay.

mod failing_check;
mod fall_threshold;
mod host_replies;
mod hung;
mod unreachable_host;

use anyhow::{Context as _, Result};
use lb_e2e::fixture::Fixture;
use lb_e2e::harness::Case;
use lb_tests::daemon::answers;
use lb_tests::process::{PATIENCE, until};
use spillway_proto::v1::BackendState;

pub(crate) const CASES: &[Case] = &[
    Case::waits(
        "a_check_that_fails_and_recovers_moves_no_connection",
        failing_check::fails_and_recovers,
    ),
    Case::waits(
        "an_unhealthy_host_that_vanishes_is_unreachable_and_its_connections_move",
        unreachable_host::unhealthy_first,
    ),
    Case::waits("a_server_that_hangs_costs_its_clients_a_repeat", hung::with_a_capacity),
    Case::waits("an_edit_of_a_check_takes_nothing_out_on_one_failure", fall_threshold::edited),
    Case::waits("the_first_failure_after_a_start_is_one_of_a_row", fall_threshold::started),
    Case::waits("a_silent_host_on_the_link_is_asked_as_configured", host_replies::on_the_link),
    Case::waits(
        "a_silent_host_behind_a_router_is_asked_as_configured",
        host_replies::behind_a_router,
    ),
];

/// Waits until both addresses of a backend are in a state, for a reason with these words.
fn wait_for(fixture: &Fixture, name: &str, state: BackendState, words: &str) -> Result<()> {
    let backend = &fixture.fabric.backends[fixture.number(name)?];
    let addresses = [backend.v4.to_string(), backend.v6.to_string()];
    let waited = until(&format!("{name} is {state:?}"), PATIENCE, || {
        let status = fixture.balancer.status()?;
        let so = |address: &String| {
            status.backends.iter().any(|it| {
                it.address == *address && it.state() == state && answers::reason(it).contains(words)
            })
        };
        Ok(addresses.iter().all(so).then_some(()))
    });
    waited.with_context(|| fixture.balancer.cli(&["status"]).unwrap_or_else(|e| e.to_string()))
}
