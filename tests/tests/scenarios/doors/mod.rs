//! How the daemon is told things and spoken to: settings, files, signals, the service manager, sockets.

mod activation;
mod files;
mod host;
mod receiver;
mod remote;
mod starts;

use lb_tests::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_file_is_in_force_when_ready_and_again_at_a_hangup", files::in_force),
    Case::waits("settings_are_read_again_at_a_hangup", files::settings_again),
    Case::waits("a_socket_of_the_service_manager_is_answered_on_and_left", activation::handed_over),
    Case::waits("a_receiver_lets_through_what_its_file_says_after_a_hangup", receiver::lists_again),
    Case::waits("a_client_elsewhere_does_what_its_role_may", remote::roles),
    Case::waits("the_socket_has_the_owner_and_mode_it_is_given", starts::socket_rights),
    Case::waits("what_is_in_use_is_named_at_the_start", starts::in_use),
    Case::waits("what_the_machine_lacks_is_named_at_the_start", starts::lacking),
    Case::waits("a_disk_that_fills_up_changes_nothing", starts::full_disk),
    Case::waits("without_capabilities_the_start_says_what_to_do", starts::without_capabilities),
];
