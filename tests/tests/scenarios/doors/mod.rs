//! How the daemon is told things and spoken to: settings, files, signals, the service manager, sockets.

mod activation;
mod behind;
mod elsewhere;
mod files;
pub(crate) mod host;
mod interfaces;
mod receiver;
mod reload;
pub(crate) mod remote;
mod starts;

use lb_tests::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_file_is_in_force_when_ready_and_again_at_a_hangup", files::in_force),
    Case::waits("settings_are_read_again_at_a_hangup", files::settings_again),
    Case::waits("a_socket_of_the_service_manager_is_answered_on_and_left", activation::handed_over),
    Case::waits("a_receiver_lets_through_what_its_file_says_after_a_hangup", receiver::lists_again),
    Case::waits("a_daemon_whose_packet_path_is_behind_says_so_and_works_on", behind::works_on),
    Case::waits("a_reload_fails_where_the_balancer_refuses", reload::balancer),
    Case::waits("a_reload_fails_where_the_receiver_refuses", reload::receiver),
    Case::waits("a_second_receiver_goes_on_without_the_default_socket", reload::without_a_socket),
    Case::waits("an_interface_that_is_not_there_is_wrong_settings", interfaces::that_are_not_there),
    Case::waits("a_client_elsewhere_does_what_its_role_may", remote::roles),
    Case::waits("a_server_answers_what_the_host_itself_says", elsewhere::over_tls),
    Case::waits("a_socket_is_asked_for_names", elsewhere::by_socket),
    Case::waits("another_network_namespace_is_said", elsewhere::another_namespace),
    Case::waits("the_socket_has_the_owner_and_mode_it_is_given", starts::socket_rights),
    Case::waits("what_is_in_use_is_named_at_the_start", starts::in_use),
    Case::waits("what_the_machine_lacks_is_named_at_the_start", starts::lacking),
    Case::waits("a_disk_that_fills_up_changes_nothing", starts::full_disk),
    Case::waits("without_capabilities_the_start_says_what_to_do", starts::without_capabilities),
];
