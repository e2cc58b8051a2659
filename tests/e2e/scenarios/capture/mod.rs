//! `spillway capture` and `spillway drops`: what they show is what went over the wire, as tcpdump and
//! tshark, which share no code with us, see it.

mod command;
mod connections;
mod drops;
mod end;
mod filters;
mod flood;
mod own_connection;
mod rate_limit;
mod replies;
mod tcpdump;
mod tunnels;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_connection_is_captured_as_the_wire_has_it", connections::of_connections),
    Case::waits("packets_by_a_second_interface_are_captured_on_both", tunnels::by_a_second_arm),
    Case::waits("packets_in_gue_are_captured_as_the_wire_has_them", tunnels::in_gue),
    Case::waits("packets_without_a_tunnel_are_captured_as_the_wire_has_them", tunnels::as_they_are),
    Case::waits("packets_behind_vlan_tags_are_captured_with_them", tunnels::behind_tags),
    Case::waits("replies_are_captured_with_what_they_reply_to", replies::taken),
    Case::waits("a_rate_is_kept_and_what_is_beyond_it_counted", rate_limit::kept),
    Case::waits("each_filter_takes_what_it_says_and_nothing_else", filters::each),
    Case::waits("a_capture_ends_with_its_caller", end::with_its_asker),
    Case::waits("a_capture_ends_with_its_count", end::with_its_count),
    Case::waits("a_capture_ends_with_its_reader", end::with_its_reader),
    Case::waits("a_capture_ends_with_the_daemon", end::with_the_daemon),
    Case::waits("a_capture_over_tls_leaves_its_own_connection_out", own_connection::left_out),
    Case::waits("dropped_packets_are_printed_with_their_reason", drops::told),
    Case::works("a_flood_is_captured_within_bounds", flood::bounded),
];
