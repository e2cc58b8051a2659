//! The lab runs until it is told to go, each command that it prints works, and nothing of it is left. The tutorial is
//! played in it.

mod ends;
mod printed;
mod shell;
mod tutorial;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("the_tutorial_is_true", tutorial::is_true),
    Case::waits("every_command_that_it_prints_works", printed::with_one_balancer),
    Case::waits("every_command_of_a_fleet_works", printed::with_a_fleet),
    Case::waits("down_removes_what_is_broken_or_half_built", ends::broken_or_half_built),
];
