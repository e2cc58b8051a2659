//! What a sweeper of displaced entries has of the maps: all of them to read, the displaced entries to take out, and the words
//! that are its own: one of each pool's line, and the budgets of displaced entries.

use std::{ops::Deref, path::Path};

use lb_common::abi::{
    limiter::{LimitWord, Limiter},
    names,
    pool::PoolLine,
};

use super::{
    ArrayView, Component, FlowTables, MapsError, PinnedMaps,
    opener::Opener,
    raw::{Mapping, MappingMut},
};

/// The balancer's maps as a sweeper of displaced entries has them; only it turns displaced checks off.
#[derive(Debug)]
pub struct DisplacedMaps {
    maps: PinnedMaps,
    pools: ArrayView<PoolLine, MappingMut>,
    limiters: ArrayView<Limiter, MappingMut>,
    /// What is remembered by connection.
    pub tables: FlowTables,
}

impl DisplacedMaps {
    /// Opens the balancer's maps under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Component::Balancer);
        Ok(Self {
            maps: PinnedMaps::open(bpffs)?,
            pools: pins.array(names::POOLS)?,
            limiters: pins.array(names::LIMITERS)?,
            tables: FlowTables::open(bpffs)?,
        })
    }

    /// Turns off the displaced check of a pool if the last displacement is still that of `last_displaced`: one
    /// store.
    pub fn clear(&self, pool: u32, last_displaced: u64) {
        self.pools.set_word(pool, PoolLine::CLEARED, last_displaced);
    }

    /// Says how fast displaced entries may be added: one store.
    pub fn set_budget(&self, limiter: u32, limit: LimitWord) {
        self.limiters.set_word(limiter, 0, limit.0);
    }

    /// The maps, and the tables.
    pub fn parts(&mut self) -> (&PinnedMaps, &mut FlowTables) {
        (&self.maps, &mut self.tables)
    }
}

impl<M: AsRef<Mapping>> super::Maps<M> {
    /// The pools that may have displaced connections, each with its line.
    pub fn pools_with_displaced(&self) -> impl Iterator<Item = (u32, PoolLine)> + '_ {
        let lines = (0..self.pool_count()).map(|pool| (pool, self.pool_line(pool)));
        lines.filter(|(_, line)| line.has_displaced())
    }
}

impl Deref for DisplacedMaps {
    type Target = PinnedMaps;

    fn deref(&self) -> &PinnedMaps {
        &self.maps
    }
}

const _: () = assert!(std::mem::offset_of!(PoolLine, cleared) == PoolLine::CLEARED * 8);
