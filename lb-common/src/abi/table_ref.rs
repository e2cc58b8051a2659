//! Which slot table a group uses.

/// Index into `TABLES`, or, with the top bit set, into `SIZED_TABLES`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableRef(pub u32);

impl TableRef {
    const SIZED: u32 = 1 << 31;

    /// A table of the default size.
    pub const fn default_size(index: u32) -> Self {
        Self(index)
    }

    /// A table of another size.
    pub const fn sized(index: u32) -> Self {
        Self(index | Self::SIZED)
    }

    /// Whether it stands in `SIZED_TABLES`.
    #[inline(always)]
    pub const fn is_sized(self) -> bool {
        self.0 & Self::SIZED != 0
    }

    /// Index in its map.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.0 & !Self::SIZED
    }
}
