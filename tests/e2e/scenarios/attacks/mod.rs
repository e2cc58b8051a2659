//! Forged packets by the thousand, and honest clients beside them: what docs/attacks.md promises, with a control in the same
//! run. Tables are small, so that few packets fill them; rates are a part of the table, and what was reached is measured.

mod answers;
mod datagrams;
mod fixture;
mod handshakes;
mod raw_flood;
mod remap;
mod syns;
mod unserved;

use lb_e2e::harness::Case;

pub(crate) const CASES: &[Case] = &[
    Case::measures("syns_from_random_sources_break_no_handshake", syns::at_a_full_region),
    Case::measures("forged_handshakes_leave_room_for_other_pools", handshakes::of_one_pool),
    Case::measures("forged_acks_during_a_remap_break_no_connection", remap::acks),
    Case::measures("one_datagram_a_source_moves_no_tracked_flow", datagrams::at_a_tracked_service),
    Case::measures("floods_that_ask_for_answers_leave_others_theirs", answers::leave_others_theirs),
    Case::measures(
        "what_no_service_takes_and_forged_errors_cost_others_nothing",
        unserved::and_forged_errors,
    ),
    Case::alone("tracking_random_sources_leaves_a_part_of_the_throughput", datagrams::throughput),
];
