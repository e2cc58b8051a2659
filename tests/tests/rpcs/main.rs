//! Calls of the API that answer from the maps, against the real daemon and the kernel's own word.

mod client;
mod counted;
mod explained;
mod history;
mod memory;
mod watched;

use std::process::ExitCode;

use lb_tests::{harness, sandbox};

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("explain_names_who_answers", explained::comes_true),
            ("history_has_what_happened", history::of_a_backend),
            ("stats_count_each_packet_once_and_nothing_else", counted::exactly),
            ("watch_tells_generation_health_and_capacity", watched::events),
            ("the_command_goes_on_over_a_restart_of_the_daemon", watched::over_a_restart),
            ("map_memory_is_what_the_kernel_says", memory::as_the_kernel_says),
            ("beyond_the_limit_of_map_memory_nothing_changes", memory::limited),
        ],
    )
}
