//! Records: what a SYN decided, for the time of its handshake.

use super::clock::{Coarse, RECORD_LIFE};

/// Cells of a line.
pub const CELLS_PER_LINE: u32 = 4;

/// A line of cells, one cache line: the words of each [`Record`] one after the other.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordLine {
    /// Words, two a cell.
    pub words: [u64; 2 * CELLS_PER_LINE as usize],
}

/// A record, in two words that are stored one after the other:
/// `{initial sequence number 32, flow tag 32}` and
/// `{backend 23, home 1, incarnation 8, time 16, check 16}` from the low end.
///
/// The check is over the first word; a reader who finds the two of different SYNs sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The first word.
    pub who: u64,
    /// The second word.
    pub what: u64,
}

impl Record {
    /// A record of a SYN with sequence number `number`, of a flow with `tag`.
    #[inline(always)]
    pub const fn new(number: u32, tag: u32, placed: Placed, is_home: bool, now: Coarse) -> Self {
        let who = number as u64 | (tag as u64) << 32;
        let what = (placed.backend as u64 & 0x7f_ffff)
            | (is_home as u64) << 23
            | (placed.incarnation as u64) << 24
            | (now.0 & 0xffff) << 32
            | check(who) << 48;
        Self { who, what }
    }

    /// Whether it is of a flow with `tag`, whole, and young enough to count.
    #[inline(always)]
    pub const fn counts(self, tag: u32, now: Coarse) -> bool {
        (self.who >> 32) as u32 == tag && self.is_whole() && !self.is_expired(now)
    }

    /// Whether both words are of one SYN.
    #[inline(always)]
    const fn is_whole(self) -> bool {
        self.what >> 48 == check(self.who)
    }

    /// Whether it is too old to count. A cell that was never written is as well.
    #[inline(always)]
    pub const fn is_expired(self, now: Coarse) -> bool {
        self.age(now) >= RECORD_LIFE || self.what == 0
    }

    /// Coarse units since it was written, modulo 2^16.
    #[inline(always)]
    pub const fn age(self, now: Coarse) -> u64 {
        now.0.wrapping_sub(self.what >> 32) & 0xffff
    }

    /// The SYN's sequence number.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.who as u32
    }

    /// Where the SYN went.
    #[inline(always)]
    pub const fn placed(self) -> Placed {
        Placed { backend: self.what as u32 & 0x7f_ffff, incarnation: (self.what >> 24) as u8 }
    }

    /// Whether that was home.
    #[inline(always)]
    pub const fn is_home(self) -> bool {
        self.what >> 23 & 1 != 0
    }
}

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of the backend.
    pub backend: u32,
    /// Incarnation of that index.
    pub incarnation: u8,
}

/// 16 bits of both halves of a record's first word.
#[inline(always)]
const fn check(who: u64) -> u64 {
    ((who ^ who >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)) >> 48
}
