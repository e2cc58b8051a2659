//! Calls of the API that answer from the maps, against the real daemon and the kernel's own word.

mod client;
mod counted;
mod explained;
mod history;
mod memory;
mod watched;

use lb_tests::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("explain_names_who_answers", explained::comes_true),
    Case::waits("history_has_what_happened", history::of_a_backend),
    Case::waits("stats_count_each_packet_once_and_nothing_else", counted::exactly),
    Case::waits("watch_tells_generation_health_and_capacity", watched::events),
    Case::waits("the_command_goes_on_over_a_restart_of_the_daemon", watched::over_a_restart),
    Case::waits("map_memory_is_what_the_kernel_says", memory::as_the_kernel_says),
    Case::waits("beyond_the_limit_of_map_memory_nothing_changes", memory::limited),
];
