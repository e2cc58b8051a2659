//! Displaced connections: open connections that are not at home, and where they are.

use super::{
    clock::{Coarse, HANDSHAKE_LIFE},
    handshake::Placement,
};

/// Where a displaced connection or a tracked flow is, in one word that is changed in place:
/// `{backend 24, incarnation 8, contested 8, last seen 24}` from the low end.
///
/// An entry is contested while a later SYN of the same flow was placed elsewhere: bit 7 of `contested`
/// is set, the others are the coarse time of that SYN, modulo 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplacedWord(pub u64);

const CONTESTED_BITS: u64 = 0xff << 32;
const CONTESTED: u64 = 0x80 << 32;
const SEEN: u64 = 0xff_ffff << 40;

impl DisplacedWord {
    /// A connection at a backend, not contested, seen now.
    #[inline(always)]
    pub const fn new(placed: Placement, now: Coarse) -> Self {
        Self(
            (placed.backend as u64 & 0xff_ffff)
                | (placed.incarnation as u64) << 24
                | (now.0 << 40 & SEEN),
        )
    }

    /// Where the connection is.
    #[inline(always)]
    pub const fn placement(self) -> Placement {
        Placement { backend: self.0 as u32 & 0xff_ffff, incarnation: (self.0 >> 24) as u8 }
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

    /// Whether the word says that it is contested, however long ago the SYN was.
    #[inline(always)]
    pub const fn was_contested(self) -> bool {
        self.0 & CONTESTED != 0
    }

    /// Whether a SYN of the last 64 s was placed elsewhere.
    #[inline(always)]
    pub const fn is_contested(self, now: Coarse) -> bool {
        self.was_contested() && (now.0.wrapping_sub(self.0 >> 32) & 0x7f) < HANDSHAKE_LIFE
    }

    /// The same connection, contested now.
    #[inline(always)]
    #[must_use]
    pub const fn contested(self, now: Coarse) -> Self {
        Self(self.0 & !CONTESTED_BITS | CONTESTED | (now.0 & 0x7f) << 32)
    }

    /// The same connection, not contested.
    #[inline(always)]
    #[must_use]
    pub const fn uncontested(self) -> Self {
        Self(self.0 & !CONTESTED_BITS)
    }
}
