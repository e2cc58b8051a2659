//! Zones: neighbourhoods of slots, each of which has a displaced check of its own.

use crate::flow_hash::FlowHash;

/// Zones of all pools together.
pub const ZONES: u32 = 1 << 16;

/// A zone, two words with a writer each, as in a pool's line.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// The value of `last_displaced` when the daemon last found that no flow of the zone has a cell.
    pub cleared: u64,
    /// Coarse time at which a flow of the zone last got a cell. Written by the packet path, before the cell.
    pub last_displaced: u64,
}

impl Zone {
    /// Word of `cleared` in the zone.
    pub const CLEARED: usize = 0;
    /// Word of `last_displaced` in the zone.
    pub const LAST_DISPLACED: usize = 1;

    /// Whether a flow of the zone may have a cell.
    #[inline(always)]
    pub const fn has_displaced(&self) -> bool {
        self.cleared != self.last_displaced
    }
}

/// The zones of a pool: `{first 32, count 32}` from the low end. A pool with slots has one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRange(pub u64);

impl ZoneRange {
    /// So many from one on.
    pub const fn new(first: u32, count: u32) -> Self {
        Self(first as u64 | (count as u64) << 32)
    }

    /// The first of them.
    pub const fn first(self) -> u32 {
        self.0 as u32
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The zone of a flow of the pool: slots beside each other share one.
    #[inline(always)]
    pub const fn of(self, hash: FlowHash) -> u16 {
        (self.0 as u32).wrapping_add(hash.slot((self.0 >> 32) as u32)) as u16
    }
}
