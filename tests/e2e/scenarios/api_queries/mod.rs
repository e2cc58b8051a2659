//! Calls of the API that answer from the maps, compared with traffic and with what the kernel says.

mod explain;
mod history;
mod map_memory;
mod stats;
mod watch;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("explain_names_the_backend_that_answers", explain::comes_true),
    Case::waits("history_has_what_happened", history::of_a_backend),
    Case::waits("stats_count_each_packet_once_and_nothing_else", stats::exactly),
    Case::waits("watch_tells_generation_health_and_capacity", watch::events),
    Case::waits("the_command_goes_on_over_a_restart_of_the_daemon", watch::over_a_restart),
    Case::waits("map_memory_is_what_the_kernel_says", map_memory::as_the_kernel_says),
    Case::waits("beyond_the_limit_of_map_memory_nothing_changes", map_memory::limited),
];
