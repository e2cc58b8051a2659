//! Pieces of the decision that are functions by themselves: given and giving nothing but numbers, the
//! kernel verifies each once, whatever the number of ways to it (global functions, kernel 5.6).

use lb_common::{
    abi::{clock::Coarse, group::GroupHead, record::Record},
    flow_hash::FlowHash,
    path::{
        Choice, Search, Unobserved, admit, choose,
        records::{self, Line, Segment},
        search::{self, Wanted},
    },
};

use super::{capture, maps::Maps};
use crate::kernel::{self, global};

global! {
    /// The number itself.
    fn any(number: u64) -> u64 {
        kernel::opaque(number)
    }
    /// [`Tables::search`].
    fn run_search(hash: u64, how: u64, now: u64, choice: *mut Choice) -> u64 {
        let mut search = Search::new(Wanted { hash: FlowHash(hash), how, now });
        kernel::repeat(Search::STEPS, &mut search, search_step);
        let (ended, found) = search.end();
        if let Some(choice) = kernel::lent(choice) {
            *choice = found;
        }
        ended.0
    }
    /// [`search::debit`]; 0: no.
    fn debit(meter: u32, now: u64) -> u64 {
        u64::from(search::debit(&Maps, meter, now))
    }
    /// [`search::is_full`]; 0: no.
    fn is_full(meter: u32, now: u64) -> u64 {
        u64::from(search::is_full(&Maps, meter, now))
    }
    /// [`choose::stand_in`].
    fn stand_in(table: u32, slot: u32, members: u32, member_count: u32) -> u64 {
        let head = GroupHead { table, slots: 0, members, member_count };
        u64::from(choose::stand_in(&Maps, &head, slot))
    }
    /// [`records::repeated`].
    fn repeated(flow: u64, now: u64, number: u32) -> u64 {
        records::repeated(&Maps, Line { flow, now: Coarse(now) }, number).0
    }
    /// [`records::write`].
    fn write_record(flow: u64, now: u64, who: u64, what: u64) -> u64 {
        records::write(&Maps, Line { flow, now: Coarse(now) }, Record { who, what });
        0
    }
    /// [`records::handshake`].
    fn handshake(flow: u64, now: u64, segment: u64) -> u64 {
        records::handshake(&Maps, Line { flow, now: Coarse(now) }, Segment(segment)).0
    }
    /// [`capture::note_choice`].
    fn note_choice(backend: u32, interface: u32) -> u64 {
        capture::note_choice(backend, interface);
        0
    }
    /// [`admit::count_spilled`].
    fn count_spilled(version: u32, taken_by: u32, overrun: u32) -> u64 {
        admit::count_spilled(&Maps, version, taken_by, overrun != 0);
        0
    }
}

/// One step of a search.
extern "C" fn search_step(step: u32, search: &mut Search) -> i64 {
    i64::from(search.step(step, &Maps, &mut Unobserved))
}
