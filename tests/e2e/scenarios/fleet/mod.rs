//! Several balancers before the same backends.

mod agreement;
mod calls;
mod etcd;
mod faults;
mod gone;
mod insecure;
mod late;
mod latency;
mod leftovers;
mod local;
mod members;
mod membership;
mod month;
mod outages;
mod portions;
mod refused_members;
mod removals;
mod restores;
mod sharing;
mod sharing_outages;
mod shown;
mod silent_disk;
mod standalone;
mod traffic;
mod versions;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::works("equal_shares_overflow_though_there_is_room", standalone::equal_shares),
    Case::works("balancers_choose_alike_wherever_a_flow_arrives", standalone::equal_choices),
    Case::works("any_balancer_changes_the_configuration_of_all", members::one_configuration),
    Case::works("connections_go_elsewhere_only_if_the_capacity_is_used", sharing::there_is_room),
    Case::works("a_fleet_uses_a_capacity_that_is_too_small", sharing::too_many),
    Case::works("portions_follow_a_demand_that_moves", sharing::demand_moves),
    Case::works("a_daemon_that_is_killed_goes_on_with_its_portion", sharing_outages::daemon_killed),
    Case::works(
        "a_daemon_that_is_dead_is_forgotten_and_comes_back",
        sharing_outages::daemon_forgotten,
    ),
    Case::works("a_host_that_is_gone_is_forgotten_and_comes_back", sharing_outages::host_gone),
    Case::works("a_balancer_that_is_cut_off_keeps_its_portion", sharing_outages::cut_off),
    Case::works("without_quorum_only_changes_stop", outages::quorum),
    Case::works("etcd_goes_back_and_an_operator_decides", outages::restored),
    Case::works("a_balancer_that_was_off_for_long_follows", late::off_for_long),
    Case::works("a_balancer_that_lags_holds_up_no_change", late::lagging),
    Case::works("a_balancer_with_another_past_takes_no_traffic", late::another_past),
    Case::works("an_etcd_that_lost_everything_gets_it_back", restores::emptied),
    Case::works("etcd_moves_to_other_servers", restores::moved),
    Case::works("a_restore_shows_what_it_replaces", restores::compared),
    Case::works("a_group_that_is_younger_than_the_backup_stays", restores::born_again),
    Case::works("a_silent_server_of_etcd_holds_up_no_change", outages::silent_server),
    Case::works("without_space_only_changes_stop", outages::no_space),
    Case::works("an_expired_certificate_is_named_and_replaced", outages::expired),
    Case::works("a_wrong_join_changes_nothing", refused_members::wrong_joins),
    Case::works("a_balancer_that_no_other_one_reaches_is_not_ready", refused_members::unreached),
    Case::works("a_balancer_that_is_mute_to_its_peers_is_named", refused_members::mute),
    Case::works("a_balancer_leaves_and_joins_again", membership::leave_and_join_again),
    Case::works("a_new_host_takes_the_name_of_one_that_is_gone", membership::name_taken_over),
    Case::works("a_member_that_etcd_does_not_know_says_so", refused_members::unknown_to_etcd),
    Case::works("a_balancer_drains_by_itself_without_etcd", local::without_etcd),
    Case::works("a_drain_ends_an_hour_after_its_backend", gone::an_hour_later),
    Case::works("a_balancer_that_lags_ends_no_drain", gone::not_by_one_that_lags),
    Case::works("drains_go_on_while_a_disk_is_silent", silent_disk::drains_go_on),
    Case::alone("a_stop_does_not_wait_for_a_silent_disk", silent_disk::stop),
    Case::works("no_balancer_leaves_while_its_disk_is_silent", silent_disk::leave),
    Case::works("a_fleet_without_certificates_says_so", insecure::says_so),
    Case::works("a_member_without_its_settings_says_how_to_start", insecure::without_settings),
    Case::works("a_fleet_removes_much_only_by_force", removals::need_force),
    Case::waits(
        "a_service_gets_an_address_of_a_member_only_by_force",
        removals::addresses_need_force,
    ),
    Case::works("of_two_changes_at_once_one_wins", membership::pairs),
    Case::works("daemons_killed_amid_changes_agree", membership::killed),
    Case::works("a_balancer_joins_after_a_change", membership::joins_after_a_change),
    Case::works("the_fleet_is_shown_by_metrics_and_page", shown::metrics_and_page),
    Case::works("an_older_balancer_holds_newer_fields_back", versions::mixed),
    Case::works("a_newer_configuration_is_not_written_over", versions::newer_configuration),
    Case::works("a_newer_override_is_not_written_over", versions::newer_override),
    Case::works("a_balancer_is_cut_off_loses_power_and_returns", standalone::outages),
    Case::alone("a_change_is_soon_in_force_at_all_balancers", latency::changes),
    Case::works("nothing_breaks_by_faults_at_random", faults::at_random),
    Case::works("a_month_passes", month::passes),
    Case::works("etcd_answers_those_with_a_certificate_without_its_leader", etcd::tls),
    Case::works("etcd_runs_full_and_is_restored_from_a_snapshot", etcd::data),
    Case::waits("a_fleet_leaves_nothing", leftovers::nothing_is_left),
];
