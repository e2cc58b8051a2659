//! Start and reload of the daemons: settings, configuration files, signals, the service manager, sockets.

mod interfaces;
mod receiver_lists;
mod reload;
mod removals;
pub(crate) mod settings_files;
mod start;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_file_is_in_force_when_ready_and_again_after_sighup", settings_files::in_force),
    Case::waits("settings_are_read_again_after_sighup", settings_files::settings_again),
    Case::waits(
        "a_socket_of_the_service_manager_is_answered_on_and_left",
        start::handed_over_socket,
    ),
    Case::waits("a_receiver_takes_its_lists_again_after_sighup", receiver_lists::lists_again),
    Case::waits("a_reload_fails_where_the_balancer_refuses", reload::balancer),
    Case::waits("a_file_that_removes_much_needs_force", removals::of_a_file),
    Case::waits("a_reload_fails_where_the_receiver_refuses", reload::receiver),
    Case::waits("a_second_receiver_goes_on_without_the_default_socket", reload::without_a_socket),
    Case::waits("an_interface_that_is_not_there_is_wrong_settings", interfaces::that_are_not_there),
    Case::waits("an_interface_is_taken_by_any_of_its_names", interfaces::by_another_name),
    Case::waits("the_socket_has_the_owner_and_mode_it_is_given", start::socket_rights),
    Case::waits("what_is_in_use_is_named_at_the_start", start::in_use),
    Case::waits("what_the_machine_lacks_is_named_at_the_start", start::lacking),
    Case::waits("a_disk_that_fills_up_changes_nothing", start::full_disk),
    Case::waits("without_capabilities_the_start_says_what_to_do", start::without_capabilities),
];
