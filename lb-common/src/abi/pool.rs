//! A pool's word: the one store that publishes a pool.

/// Index of the current descriptor (low half) and of the former one (high half, 0: none).
///
/// Descriptor 0 is never published, so an all-zero word is a pool without descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWord(pub u64);

impl PoolWord {
    /// A word from its halves.
    pub const fn new(current: u32, former: u32) -> Self {
        Self(current as u64 | (former as u64) << 32)
    }

    /// Index of the current descriptor; 0: none.
    #[inline(always)]
    pub const fn current(self) -> u32 {
        self.0 as u32
    }

    /// Index of the former descriptor; 0: none.
    #[inline(always)]
    pub const fn former(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
