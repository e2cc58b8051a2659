//! An application that fails is not a host that is gone: its connections stay.

mod living;
mod rows;
mod vanishing;
mod ways;

use anyhow::{Context as _, Result};
use lb_tests::harness::Case;
use lb_tests::process::{PATIENCE, until};
use lb_tests::scene::Scene;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_check_that_fails_and_recovers_moves_no_connection", living::fails_and_recovers),
    Case::waits(
        "an_unfit_host_that_vanishes_is_dead_and_its_connections_move",
        vanishing::unfit_first,
    ),
    Case::waits("an_edit_of_a_check_takes_nothing_out_on_one_failure", rows::edited),
    Case::waits("the_first_failure_after_a_start_is_one_of_a_row", rows::started),
    Case::waits("a_host_that_answers_in_any_way_is_not_dead", ways::each_alone),
];

/// Waits until both addresses of a backend are in a state, for a reason with these words.
fn wait_for(scene: &Scene, name: &str, state: &str, words: &str) -> Result<()> {
    let backend = &scene.fabric.backends[scene.number(name)?];
    let addresses = [backend.v4.to_string(), backend.v6.to_string()];
    let waited = until(&format!("{name} is {state}"), PATIENCE, || {
        let status = scene.balancer.ask(&["status"])?;
        let backends = status["backends"].as_array().context("status: no backends")?;
        let so = |address: &String| {
            backends.iter().any(|backend| {
                let text = |field: &str| backend[field].as_str().unwrap_or_default();
                text("address") == address
                    && text("state") == state
                    && text("reason").contains(words)
            })
        };
        Ok(addresses.iter().all(so).then_some(()))
    });
    waited.with_context(|| scene.balancer.cli(&["status"]).unwrap_or_else(|e| e.to_string()))
}
