//! Subprograms: parts of the decision as global functions (kernel 5.6). They take and return only numbers, so the
//! kernel verifies each once, whatever the number of callers.

use aya_ebpf::{bindings::xdp_md, programs::XdpContext};
use lb_common::{
    abi::{
        clock::Coarse,
        pool::GroupHead,
        service::{ServiceKey, VipKey},
    },
    flow_hash::FlowHash,
    flow_table::{self, Cell, FlowKey, Packets, Position, Segment},
    path::{
        Choice, Search, Unobserved, admit,
        answers::{AnswerLimits, Part},
        search::{self, SearchRequest},
        select,
    },
    service_index,
};

use super::{
    capture,
    maps::{self, Maps},
};
use crate::kernel::{self, global};

global! {
    /// [`service_index::find_further`]: one more than the record; 0: none.
    fn find_further(at: u32, tag: u32, high: u64, third: u32, low: u64) -> u64 {
        let key = ServiceKey::from_halves(high, third, low);
        let found = Maps::open().and_then(|maps| service_index::find_further(&maps, at, tag, &key));
        found.map_or(0, |record| u64::from(record) + 1)
    }
    /// [`Tables::vip`], of an address in two halves; 0: none.
    fn find_vip(high: u64, low: u64, version: u32) -> u64 {
        let address = [(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32];
        maps::vip(&VipKey { address, version }).map_or(0, |word| word.0.into())
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
    /// [`Part::debit`]; 0: no.
    fn debit_part(of_all: u32, word: u32, is_vip: u32, now: u64) -> u64 {
        let part = Part { word, is_vip: is_vip != 0 };
        Maps::open().map_or(0, |maps| u64::from(part.debit(&maps, of_all, now)))
    }
    /// [`AnswerLimits::is_full`]; 0: no.
    fn is_answer_full(of_all: u32, of_vip: u32, of_network: u32, now: u64) -> u64 {
        let limits = AnswerLimits { of_all, of_vip, of_network };
        Maps::open().map_or(0, |maps| u64::from(limits.is_full(&maps, now)))
    }
    /// [`select::stand_in`].
    fn stand_in(table: u32, slot: u32, members: u32, member_count: u32) -> u64 {
        let head = GroupHead { table, slots: 0, members, member_count };
        Maps::open().map_or(0, |maps| u64::from(select::stand_in(&maps, &head, slot)))
    }
    /// [`flow_table::nearest`].
    fn find_nearest(key: u64, segment: u64, now: u64, cell: *mut Cell) -> u64 {
        find(cell, |maps, cell| {
            let (found, dropped) =
                flow_table::nearest(maps, FlowKey(key), Segment(segment), Coarse(now), cell);
            (u64::from(found) * FOUND) | (u64::from(dropped) * DROPPED)
        })
    }
    /// [`flow_table::last_syn`].
    fn find_last_syn(key: u64, units: u64, now: u64, cell: *mut Cell) -> u64 {
        find(cell, |maps, cell| {
            let units = units.cast_signed();
            u64::from(flow_table::last_syn(maps, FlowKey(key), units, Coarse(now), cell))
        })
    }
    /// [`flow_table::youngest`].
    fn find_youngest(key: u64, datagrams: u32, now: u64, cell: *mut Cell) -> u64 {
        find(cell, |maps, cell| {
            u64::from(flow_table::youngest(maps, FlowKey(key), datagrams != 0, Coarse(now), cell))
        })
    }
    /// [`flow_table::survey`]. `of`: a sequence number, or [`OF_DATAGRAMS`].
    fn survey_cells(key: u64, of: u64, now: u64, cell: *mut Cell) -> u64 {
        find(cell, |maps, cell| {
            flow_table::survey(maps, FlowKey(key), packets(of), Coarse(now), cell).0
        })
    }
    /// [`flow_table::settle`]: one more than the position; 0: none. `of` as there.
    fn settle_cell(key: u64, of: u64, own: u64, now: u64) -> u64 {
        let kept = Maps::open().and_then(|maps| {
            flow_table::settle(&maps, FlowKey(key), packets(of), Position(own), Coarse(now))
        });
        kept.map_or(0, |at| at.0 + 1)
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

/// More than any sequence number.
const OF_DATAGRAMS: u64 = 1 << 32;

/// Packets, as a number.
#[inline(always)]
pub(super) const fn number_of(packets: Packets) -> u64 {
    match packets {
        Packets::Tcp(number) => number as u64,
        Packets::Datagrams => OF_DATAGRAMS,
    }
}

#[inline(always)]
const fn packets(number: u64) -> Packets {
    if number == OF_DATAGRAMS { Packets::Datagrams } else { Packets::Tcp(number as u32) }
}

/// Of what a look-up returns: it found a cell.
pub(super) const FOUND: u64 = 1;
/// Of what a look-up returns: it dropped one.
pub(super) const DROPPED: u64 = 2;

/// Looks for a cell, for a caller.
#[inline(always)]
fn find(cell: *mut Cell, look_up: impl FnOnce(&Maps, &mut Cell) -> u64) -> u64 {
    match (Maps::open(), kernel::borrow_argument(cell)) {
        (Some(maps), Some(cell)) => look_up(&maps, cell),
        _ => 0,
    }
}

/// One step of a search.
extern "C" fn search_step(step: u32, search: &mut Search) -> i64 {
    Maps::open().map_or(1, |maps| i64::from(search.step(step, &maps, &mut Unobserved)))
}
