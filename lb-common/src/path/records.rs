//! What a SYN decided, found again for the time of its handshake.

use super::tables::Tables;
use crate::{
    abi::{
        clock::Coarse,
        limits::RECORD_LINES,
        record::{CELLS_PER_LINE, Placed, Record},
    },
    flow_hash::FlowHash,
};

/// How far beyond its SYN a connection's packet may be and still belong to the handshake, bytes: the
/// first flight, of which the head may be lost.
pub const WINDOW: u32 = 16_384;
/// How far below a SYN's number a stream of the same flow is seen coming, bytes: more than any that
/// nears it can jump. The number itself is that of a keep-alive (RFC 9293, 3.8.4), and says nothing.
pub const APPROACH: u32 = 1 << 20;

/// A line of records, and the flow in it that is meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    index: u32,
    tag: u32,
    now: Coarse,
}

/// What records say of a packet that is no SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// It belongs to the handshake of a SYN that went home.
    Home(Placed),
    /// It belongs to the handshake of a SYN that went elsewhere.
    Away(Placed),
}

impl Line {
    /// The line of a flow, by the hash of its addresses and ports.
    #[inline(always)]
    pub(super) const fn of(identity: FlowHash, now: Coarse) -> Self {
        let index = identity.0 as u32 % RECORD_LINES;
        Self { index, tag: (identity.0 >> 32) as u32, now }
    }

    /// What the SYN of this very number decided before; its record is made young again.
    #[inline(always)]
    pub(super) fn repeated<T: Tables + ?Sized>(
        self,
        tables: &T,
        number: u32,
    ) -> Option<(u32, Record)> {
        for cell in 0..CELLS_PER_LINE {
            let record = tables.record(self.index, cell)?;
            if record.counts(self.tag, self.now) && record.number() == number {
                return Some((cell, record));
            }
        }
        None
    }

    /// Writes what a SYN decided into a cell that is known to be its own.
    #[inline(always)]
    pub(super) fn rewrite<T: Tables + ?Sized>(
        self,
        tables: &T,
        (cell, number): (u32, u32),
        placed: Placed,
        is_home: bool,
    ) {
        let record = Record::new(number, self.tag, placed, is_home, self.now);
        tables.set_record(self.index, cell, record);
    }

    /// Writes what a new SYN decided: into an expired cell, else over the oldest that says home, else
    /// over the oldest.
    #[inline(always)]
    pub(super) fn write<T: Tables + ?Sized>(
        self,
        tables: &T,
        number: u32,
        placed: Placed,
        is_home: bool,
    ) {
        let (mut best, mut worth) = (0, 0);
        for cell in 0..CELLS_PER_LINE {
            let Some(record) = tables.record(self.index, cell) else { return };
            let expired = u64::from(record.is_expired(self.now)) << 18;
            let at_home = u64::from(record.is_home()) << 17;
            // One more than its age, so that the first cell is as good as any.
            let score = (expired | at_home | record.age(self.now)) + 1;
            if score > worth {
                (best, worth) = (cell, score);
            }
        }
        self.rewrite(tables, (best, number), placed, is_home);
    }

    /// What the SYN decided to whose handshake a packet belongs. A packet close below a SYN's number
    /// is one of a stream that is about to pass it, so that SYN was not its own: its record goes, and
    /// the answer says that one did.
    #[inline(always)]
    pub(super) fn of_handshake<T: Tables + ?Sized>(
        self,
        tables: &T,
        sequence: u32,
    ) -> (Found, bool) {
        let (mut found, mut youngest, mut dropped) = (Found::Nothing, u64::MAX, false);
        for cell in 0..CELLS_PER_LINE {
            let Some(record) = tables.record(self.index, cell) else { break };
            if !record.counts(self.tag, self.now) {
                continue;
            }
            let beyond = sequence.wrapping_sub(record.number());
            if beyond.wrapping_sub(1) < WINDOW {
                if record.age(self.now) < youngest {
                    youngest = record.age(self.now);
                    let placed = record.placed();
                    found = if record.is_home() { Found::Home(placed) } else { Found::Away(placed) };
                }
            } else if beyond.wrapping_neg().wrapping_sub(1) < APPROACH {
                tables.set_record(self.index, cell, Record { who: 0, what: 0 });
                dropped = true;
            }
        }
        (found, dropped)
    }
}
