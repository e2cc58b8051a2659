//! Handshake entries: what a SYN decided, for the time of its handshake.

use super::clock::{Coarse, HANDSHAKE_LIFE};

/// Cells of a line.
pub const CELLS_PER_LINE: u32 = 4;

/// A line of cells, one cache line: the words of each [`HandshakeEntry`] one after the other.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeLine {
    /// Words, two a cell.
    pub words: [u64; 2 * CELLS_PER_LINE as usize],
}

/// A handshake entry, in two words that are stored one after the other:
/// `{initial sequence number 32, flow tag 32}` and
/// `{backend 23, home 1, incarnation 8, time 16, check 16}` from the low end.
///
/// The check is over the first word: it tells a reader that the two words are of different SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeEntry {
    /// The first word.
    pub syn: u64,
    /// The second word.
    pub decision: u64,
}

impl HandshakeEntry {
    /// The entry of a SYN with sequence number `number`, of a flow with `tag`.
    #[inline(always)]
    pub const fn new(number: u32, tag: u32, placed: Placement, is_home: bool, now: Coarse) -> Self {
        let syn = number as u64 | (tag as u64) << 32;
        let decision = (placed.backend as u64 & 0x7f_ffff)
            | (is_home as u64) << 23
            | (placed.incarnation as u64) << 24
            | (now.0 & 0xffff) << 32
            | check(syn) << 48;
        Self { syn, decision }
    }

    /// Whether it is of a flow with `tag`, whole, and young enough to count.
    #[inline(always)]
    pub const fn counts(self, tag: u32, now: Coarse) -> bool {
        (self.syn >> 32) as u32 == tag && self.is_whole() && !self.is_expired(now)
    }

    /// Whether both words are of one SYN.
    #[inline(always)]
    const fn is_whole(self) -> bool {
        self.decision >> 48 == check(self.syn)
    }

    /// Whether it is too old to count. A cell that was never written is as well.
    #[inline(always)]
    pub const fn is_expired(self, now: Coarse) -> bool {
        self.age(now) >= HANDSHAKE_LIFE || self.decision == 0
    }

    /// Coarse units since it was written, modulo 2^16.
    #[inline(always)]
    pub const fn age(self, now: Coarse) -> u64 {
        now.0.wrapping_sub(self.decision >> 32) & 0xffff
    }

    /// The SYN's sequence number.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.syn as u32
    }

    /// Where the SYN went.
    #[inline(always)]
    pub const fn placement(self) -> Placement {
        Placement {
            backend: self.decision as u32 & 0x7f_ffff,
            incarnation: (self.decision >> 24) as u8,
        }
    }

    /// Whether that was home.
    #[inline(always)]
    pub const fn is_home(self) -> bool {
        self.decision >> 23 & 1 != 0
    }
}

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index of the backend.
    pub backend: u32,
    /// Incarnation of that index.
    pub incarnation: u8,
}

/// 16 bits of both halves of a handshake entry's first word.
#[inline(always)]
const fn check(syn: u64) -> u64 {
    ((syn ^ syn >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)) >> 48
}
