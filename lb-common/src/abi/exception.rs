//! Exceptions: where an open connection is that is not at home.

use super::{
    clock::{Coarse, RECORD_LIFE},
    record::Placed,
};

/// Where a connection is, in one word that is changed in place:
/// `{backend 24, incarnation 8, mark 8, last seen 24}` from the low end.
///
/// The mark says that a later SYN of the same flow was placed elsewhere: bit 7 is set, the others are
/// the coarse time of that, modulo 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionWord(pub u64);

const MARK: u64 = 0xff << 32;
const MARKED: u64 = 0x80 << 32;
const SEEN: u64 = 0xff_ffff << 40;

impl ExceptionWord {
    /// A connection at a backend, without mark, seen now.
    #[inline(always)]
    pub const fn new(placed: Placed, now: Coarse) -> Self {
        Self(
            (placed.backend as u64 & 0xff_ffff)
                | (placed.incarnation as u64) << 24
                | (now.0 << 40 & SEEN),
        )
    }

    /// Where it is.
    #[inline(always)]
    pub const fn placed(self) -> Placed {
        Placed { backend: self.0 as u32 & 0xff_ffff, incarnation: (self.0 >> 24) as u8 }
    }

    /// Coarse units since its last packet, modulo 2^24.
    #[inline(always)]
    pub const fn idle(self, now: Coarse) -> u64 {
        now.0.wrapping_sub(self.0 >> 40) & 0xff_ffff
    }

    /// The same connection, seen now.
    #[inline(always)]
    #[must_use]
    pub const fn seen(self, now: Coarse) -> Self {
        Self(self.0 & !SEEN | (now.0 << 40 & SEEN))
    }

    /// Whether it has a mark, however old.
    #[inline(always)]
    pub const fn has_mark(self) -> bool {
        self.0 & MARKED != 0
    }

    /// Whether a SYN of the last 64 s was placed elsewhere.
    #[inline(always)]
    pub const fn is_marked(self, now: Coarse) -> bool {
        self.has_mark() && (now.0.wrapping_sub(self.0 >> 32) & 0x7f) < RECORD_LIFE
    }

    /// The same connection, marked now.
    #[inline(always)]
    #[must_use]
    pub const fn marked(self, now: Coarse) -> Self {
        Self(self.0 & !MARK | MARKED | (now.0 & 0x7f) << 32)
    }

    /// The same connection without mark.
    #[inline(always)]
    #[must_use]
    pub const fn unmarked(self) -> Self {
        Self(self.0 & !MARK)
    }
}
