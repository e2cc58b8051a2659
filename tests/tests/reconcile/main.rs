//! The maps after any history of applies, changes of health and next hops, and restarts: they say
//! what a naive model says, read by nobody but the reader that the command line uses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod bulk;
mod capacity;
mod crash;
mod formers;
mod generate;
mod histories;
mod limits;
mod model;
mod trouble;
mod world;

use std::process::ExitCode;

use lb_tests::{harness, sandbox};

fn main() -> ExitCode {
    if let Some(ended) = crash::victim() {
        return ended;
    }
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("maps_equal_the_model_after_any_history", histories::maps_equal_the_model),
            ("equal_configurations_have_equal_checksums", histories::equal_checksums),
            ("what_does_not_differ_is_not_touched", histories::untouched),
            ("a_health_change_writes_one_word", histories::health_is_one_word),
            ("a_limit_alone_is_one_word", capacity::a_limit_alone),
            ("meters_stay_where_they_are", capacity::meters_stay),
            ("a_killed_process_leaves_whole_maps", crash::a_killed_process_leaves_whole_maps),
            ("a_killed_process_leaves_no_limit_too_high", crash::no_limit_too_high),
            ("open_connections_stay_through_changes_of_home", formers::connections_stay),
            ("another_form_moves_nobody", formers::another_form_moves_nobody),
            ("the_first_of_several_changes_counts", formers::first_of_several),
            ("a_restart_finds_former_versions", formers::found_again),
            ("who_is_out_of_home_has_no_connections", formers::out_of_home),
            ("former_versions_leak_nothing", formers::churn),
            ("no_room_for_three_versions_is_said", formers::full),
            ("churn_leaks_nothing", bulk::churn_leaks_nothing),
            ("a_thousand_pools_pay_few_grace_periods", bulk::few_grace_periods),
            ("what_does_not_fit_changes_nothing", bulk::what_does_not_fit),
            ("a_number_that_the_maps_still_name_is_refused", bulk::taken_number),
            ("news_reach_what_a_refused_change_published", trouble::refused_half_way),
            ("a_backend_has_one_next_hop_after_a_crash", trouble::died_between_two_words),
            ("a_device_that_came_back_is_sent_out_of", trouble::device_came_back),
        ],
    )
}
