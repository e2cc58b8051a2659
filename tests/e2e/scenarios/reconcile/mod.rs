//! The maps after any history of applies, changes of health and next hops, and restarts are what a naive model says.
//! They are read by the reader that the command line uses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod accepts;
mod bulk;
mod capacity;
mod chunks;
pub(crate) mod crash;
mod failures;
mod fake_daemon;
mod histories;
mod limits;
mod model;
mod random;
mod remap;
mod services;
mod sizes;
mod vips;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::works("maps_equal_the_model_after_any_history", histories::maps_equal_the_model),
    Case::works("equal_configurations_have_equal_checksums", histories::equal_checksums),
    Case::works("equal_ramps_displace_the_same_connections", histories::equal_ramps),
    Case::works("half_a_million_connections_leave_at_once", remap::half_a_million_leave),
    Case::waits("what_does_not_differ_is_not_touched", histories::untouched),
    Case::waits("a_health_change_is_one_store", histories::health_is_one_word),
    Case::waits("words_say_what_the_best_member_of_a_pool_accepts", accepts::best_member),
    Case::waits("a_limit_alone_changes_one_limiter", capacity::a_limit_alone),
    Case::waits("limits_are_this_balancers_portions", capacity::portions),
    Case::waits("the_packet_paths_clock_is_known_to_the_tick", capacity::clock_is_known),
    Case::waits("debt_stays_when_a_limit_changes", capacity::debt_stays),
    Case::waits("limiters_stay_where_they_are", capacity::limiters_stay),
    Case::works("a_killed_process_leaves_whole_maps", crash::a_killed_process_leaves_whole_maps),
    Case::works("a_killed_process_leaves_no_limit_too_high", crash::no_limit_too_high),
    Case::waits("open_connections_stay_through_remaps", remap::connections_stay),
    Case::waits(
        "another_tunnel_form_moves_no_connection",
        remap::another_tunnel_form_moves_no_connection,
    ),
    Case::waits("the_first_of_several_changes_counts", remap::first_of_several),
    Case::waits("a_restart_finds_previous_descriptors", remap::found_again),
    Case::waits("a_member_that_is_marked_out_has_no_connections", remap::marked_out),
    Case::works("previous_descriptors_leak_nothing", remap::churn),
    Case::waits("no_room_for_three_versions_is_reported", remap::full),
    Case::waits("the_highest_numbers_are_published", sizes::highest_numbers),
    Case::works("two_generations_of_the_most_backends_fit", sizes::two_generations),
    Case::works(
        "services_that_stand_are_found_by_every_packet",
        services::standing_services_are_found,
    ),
    Case::waits("words_of_vips_follow_configuration_and_host", vips::words_follow),
    Case::works("churn_leaks_nothing", bulk::churn_leaks_nothing),
    Case::waits("look_ups_in_chunks_are_inlined", chunks::inlined),
    Case::waits("chunks_left_half_way_are_removed", chunks::left_half_way),
    Case::waits("many_chunks_pay_few_grace_periods", chunks::few_grace_periods),
    Case::waits("a_thousand_pools_pay_few_grace_periods", bulk::few_grace_periods),
    Case::waits("what_does_not_fit_changes_nothing", bulk::what_does_not_fit),
    Case::waits("a_number_that_the_maps_still_name_is_refused", bulk::taken_number),
    Case::waits("news_reach_what_a_refused_change_published", failures::refused_half_way),
    Case::waits("a_backend_has_one_next_hop_after_a_crash", failures::died_between_two_words),
    Case::waits("a_device_that_came_back_is_sent_out_of", failures::device_came_back),
    Case::waits("a_bond_port_that_left_unnoticed_is_none", failures::port_left),
];
