//! Demo and experiments report what happened, and leave nothing behind.

mod failover;
mod million;
mod overflow;
mod profile;
pub(crate) mod run;
mod tour;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::works("the_report_adds_up", tour::the_report_adds_up),
    Case::waits("control_c_leaves_nothing_of_the_demo", tour::control_c_leaves_nothing),
    Case::waits("control_c_leaves_nothing_of_an_experiment", overflow::control_c_leaves_nothing),
    Case::alone(
        "what_a_region_cannot_take_overflows",
        overflow::what_a_region_cannot_take_overflows,
    ),
    Case::alone(
        "the_silent_host_holds_up_nginx_alone",
        failover::the_silent_host_holds_up_nginx_alone,
    ),
    Case::alone("each_request_has_one_backend", million::each_request_has_one_backend),
    Case::works("each_way_leads_to_the_server", profile::each_way_leads_to_the_server),
];
