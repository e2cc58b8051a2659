//! How the daemon is told things and spoken to: settings, files, signals, the service manager, sockets.

mod activation;
mod files;
mod host;
mod receiver;
mod remote;
mod starts;

use std::process::ExitCode;

use lb_tests::{harness, sandbox};

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    harness::run(
        &sandbox,
        &[
            ("a_file_is_in_force_when_ready_and_again_at_a_hangup", files::in_force),
            ("settings_are_read_again_at_a_hangup", files::settings_again),
            ("a_socket_of_the_service_manager_is_answered_on_and_left", activation::handed_over),
            ("a_receiver_lets_through_what_its_file_says_after_a_hangup", receiver::lists_again),
            ("a_client_elsewhere_does_what_its_role_may", remote::roles),
            ("the_socket_has_the_owner_and_mode_it_is_given", starts::socket_rights),
            ("what_is_in_use_is_named_at_the_start", starts::in_use),
            ("what_the_machine_lacks_is_named_at_the_start", starts::lacking),
            ("a_disk_that_fills_up_changes_nothing", starts::full_disk),
            ("without_capabilities_the_start_says_what_to_do", starts::without_capabilities),
        ],
    )
}
