//! A pool's line: the one store that publishes a pool, and its gate.

/// A pool, half a cache line. Each word has one writer and is changed in place.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLine {
    /// A [`PoolWord`]. The daemon's.
    pub word: u64,
    /// What `last_away` said when the daemon last found that no connection of the pool is away from
    /// home. The daemon's.
    pub cleared: u64,
    /// Coarse time of the last placement away from home ([`super::clock::Coarse`]). The packet path's.
    pub last_away: u64,
    /// Zero.
    pub reserved: u64,
}

impl PoolLine {
    /// Word of `word` in the line.
    pub const WORD: usize = 0;
    /// Word of `cleared` in the line.
    pub const CLEARED: usize = 1;

    /// Whether every open connection is at home: then nothing is remembered of any.
    #[inline(always)]
    pub const fn is_gate_closed(&self) -> bool {
        self.cleared == self.last_away
    }

    /// The published versions.
    #[inline(always)]
    pub const fn versions(&self) -> PoolWord {
        PoolWord(self.word)
    }
}

/// Index of the current descriptor (low half) and of the former one (high half, 0: none); the topmost
/// bit says that connections at their former home are to be adopted.
///
/// Descriptor 0 is never published, so an all-zero word is a pool without descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWord(pub u64);

impl PoolWord {
    /// A word from its halves.
    pub const fn new(current: u32, former: u32) -> Self {
        Self(current as u64 | (former as u64 & 0x7fff_ffff) << 32)
    }

    /// The same versions, with connections at their former home adopted.
    #[must_use]
    pub const fn adopting(self) -> Self {
        Self(self.0 | 1 << 63)
    }

    /// Whether connections at their former home are to be adopted.
    #[inline(always)]
    pub const fn is_adopting(self) -> bool {
        self.0 >> 63 != 0
    }

    /// Index of the current descriptor; 0: none.
    #[inline(always)]
    pub const fn current(self) -> u32 {
        self.0 as u32
    }

    /// Index of the former descriptor; 0: none.
    #[inline(always)]
    pub const fn former(self) -> u32 {
        (self.0 >> 32) as u32 & 0x7fff_ffff
    }
}
