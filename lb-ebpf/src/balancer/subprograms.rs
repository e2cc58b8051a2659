//! Subprograms: parts of the decision as global functions (kernel 5.6). They take and return only numbers, so the
//! kernel verifies each once, whatever the number of callers.

use aya_ebpf::{bindings::xdp_md, programs::XdpContext};
use lb_common::{
    abi::{
        clock::Coarse,
        connection::{HandshakeEntry, Placement},
        pool::GroupHead,
        service::ServiceKey,
    },
    flow_hash::FlowHash,
    path::{
        Choice, Search, Unobserved, admit,
        handshakes::{self, Line, Segment},
        search::{self, SearchRequest},
        select,
    },
    service_index,
};

use super::{capture, maps::Maps};
use crate::kernel::{self, global};

global! {
    /// The number itself, which the verifier then does not know.
    fn hide_constant(number: u64) -> u64 {
        kernel::opaque(number)
    }
    /// [`service_index::find_further`]; 0: none.
    fn find_further(at: u32, tag: u32, high: u64, third: u32, low: u64) -> u64 {
        let key = ServiceKey::from_halves(high, third, low);
        let found = Maps::open().and_then(|maps| service_index::find_further(&maps, at, tag, &key));
        found.map_or(0, u64::from)
    }
    /// [`Tables::search`].
    fn run_search(hash: u64, how: u64, now: u64, choice: *mut Choice) -> u64 {
        let mut search = Search::new(SearchRequest { hash: FlowHash(hash), how, now });
        kernel::repeat(Search::STEPS, &mut search, search_step);
        let (ended, found) = search.end();
        if let Some(choice) = kernel::borrow_argument(choice) {
            *choice = found;
        }
        ended.0
    }
    /// [`search::debit`]; 0: no.
    fn debit(limiter: u32, now: u64) -> u64 {
        Maps::open().map_or(0, |maps| u64::from(search::debit(&maps, limiter, now)))
    }
    /// [`search::is_full`]; 0: no.
    fn is_full(limiter: u32, now: u64) -> u64 {
        Maps::open().map_or(0, |maps| u64::from(search::is_full(&maps, limiter, now)))
    }
    /// [`select::stand_in`].
    fn stand_in(table: u32, slot: u32, members: u32, member_count: u32) -> u64 {
        let head = GroupHead { table, slots: 0, members, member_count };
        Maps::open().map_or(0, |maps| u64::from(select::stand_in(&maps, &head, slot)))
    }
    /// [`handshakes::find_repeated_syn`].
    fn find_repeated_syn(flow: u64, now: u64, number: u32) -> u64 {
        let line = Line { flow, now: Coarse(now) };
        Maps::open().map_or(0, |maps| handshakes::find_repeated_syn(&maps, line, number).0)
    }
    /// [`handshakes::write`].
    fn write_handshake(flow: u64, now: u64, syn: u64, decision: u64) -> u64 {
        if let Some(maps) = Maps::open() {
            let line = Line { flow, now: Coarse(now) };
            handshakes::write(&maps, line, HandshakeEntry { syn, decision });
        }
        0
    }
    /// [`handshakes::find_handshake`].
    fn find_handshake(flow: u64, now: u64, segment: u64) -> u64 {
        let line = Line { flow, now: Coarse(now) };
        Maps::open().map_or(0, |maps| handshakes::find_handshake(&maps, line, Segment(segment)).0)
    }
    /// [`handshakes::release`]; the backend, and its incarnation.
    fn release_handshake(flow: u64, now: u64, backend: u32, incarnation: u32) -> u64 {
        if let Some(maps) = Maps::open() {
            let placed = Placement { backend, incarnation: incarnation as u8 };
            handshakes::release(&maps, Line { flow, now: Coarse(now) }, placed);
        }
        0
    }
    /// [`capture::after`].
    fn capture_after(context: *mut xdp_md, ended: u64) -> u64 {
        capture::after(&XdpContext::new(context), ended);
        0
    }
    /// [`admit::count_overflow`].
    fn count_overflow(version: u32, taken_by: u32, over_capacity: u32) -> u64 {
        if let Some(maps) = Maps::open() {
            admit::count_overflow(&maps, version, taken_by, over_capacity != 0);
        }
        0
    }
}

/// One step of a search.
extern "C" fn search_step(step: u32, search: &mut Search) -> i64 {
    Maps::open().map_or(1, |maps| i64::from(search.step(step, &maps, &mut Unobserved)))
}
