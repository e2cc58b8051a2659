//! The demo and the experiments tell the truth, and nothing is left of them.

mod failover;
mod overflow;
mod run;
mod tour;

use std::process::ExitCode;

use lb_tests::harness;
use lb_tests::sandbox;

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("the_report_adds_up", tour::the_report_adds_up),
            ("control_c_leaves_nothing_of_the_demo", tour::control_c_leaves_nothing),
            ("control_c_leaves_nothing_of_an_experiment", overflow::control_c_leaves_nothing),
            ("what_a_region_cannot_take_spills", overflow::what_a_region_cannot_take_spills),
            (
                "the_silent_host_holds_up_nginx_alone",
                failover::the_silent_host_holds_up_nginx_alone,
            ),
        ],
    )
}
