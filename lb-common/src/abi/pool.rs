//! A pool's line: the one store that publishes a pool, and whether the pool may have displaced connections.

/// A pool, half a cache line. Each word has one writer and is changed in place.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLine {
    /// A [`PoolWord`], written by the daemon.
    pub word: u64,
    /// The value of `last_displaced` when the daemon last found that the pool has no displaced connection. Written
    /// by the daemon.
    pub cleared: u64,
    /// Coarse time at which a connection was last displaced ([`super::clock::Coarse`]). Written by the packet path.
    pub last_displaced: u64,
    /// Zero.
    pub reserved: u64,
}

impl PoolLine {
    /// Word of `word` in the line.
    pub const WORD: usize = 0;
    /// Word of `cleared` in the line.
    pub const CLEARED: usize = 1;

    /// Whether the pool may have displaced connections: then the displaced check is on, and packets look them up.
    #[inline(always)]
    pub const fn has_displaced(&self) -> bool {
        self.cleared != self.last_displaced
    }

    /// The published versions.
    #[inline(always)]
    pub const fn versions(&self) -> PoolWord {
        PoolWord(self.word)
    }
}

/// Index of the current descriptor (low half) and of the previous one (high half, 0: none). The topmost bit says
/// whether connections at their previous home are adopted.
///
/// Descriptor 0 is never published, so an all-zero word is a pool without descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWord(pub u64);

impl PoolWord {
    /// A word from its halves.
    pub const fn new(current: u32, previous: u32) -> Self {
        Self(current as u64 | (previous as u64 & 0x7fff_ffff) << 32)
    }

    /// The same versions, with connections at their previous home adopted.
    #[must_use]
    pub const fn adopting(self) -> Self {
        Self(self.0 | 1 << 63)
    }

    /// Whether connections at their previous home are to be adopted.
    #[inline(always)]
    pub const fn is_adopting(self) -> bool {
        self.0 >> 63 != 0
    }

    /// Index of the current descriptor; 0: none.
    #[inline(always)]
    pub const fn current(self) -> u32 {
        self.0 as u32
    }

    /// Index of the previous descriptor; 0: none.
    #[inline(always)]
    pub const fn previous(self) -> u32 {
        (self.0 >> 32) as u32 & 0x7fff_ffff
    }
}
