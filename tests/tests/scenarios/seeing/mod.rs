//! `spillway capture` and `spillway drops`: what they show is what went over the wire, as tcpdump and
//! tshark, which share no code with us, see it.

mod answers;
mod drops;
mod ends;
mod filters;
mod flood;
mod own;
mod pairs;
mod rate;
mod taking;
mod ways;
mod wire;

use lb_tests::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_connection_is_seen_as_the_wire_has_it", pairs::of_connections),
    Case::waits("packets_by_a_second_arm_are_seen_on_both", ways::by_a_second_arm),
    Case::waits("packets_in_gue_are_seen_as_the_wire_has_them", ways::in_gue),
    Case::waits("packets_without_a_tunnel_are_seen_as_the_wire_has_them", ways::as_they_are),
    Case::waits("packets_behind_tags_are_seen_with_them", ways::behind_tags),
    Case::waits("answers_are_seen_with_what_they_answer", answers::taken),
    Case::waits("a_rate_is_kept_and_what_is_beyond_it_counted", rate::kept),
    Case::waits("each_filter_takes_what_it_says_and_nothing_else", filters::each),
    Case::waits("a_capture_ends_with_whoever_asked_for_it", ends::with_its_asker),
    Case::waits("a_capture_ends_with_its_count", ends::with_its_count),
    Case::waits("a_capture_ends_with_its_reader", ends::with_its_reader),
    Case::waits("a_capture_ends_with_the_daemon", ends::with_the_daemon),
    Case::waits("a_capture_over_tls_leaves_its_own_connection_out", own::left_out),
    Case::waits("dropped_packets_are_told_with_their_reason", drops::told),
    Case::works("a_flood_is_taken_down_within_bounds", flood::bounded),
];
