//! What a gate keeper has of the maps: all of them to read, the exceptions to take out, and the words
//! that are its own: one of each pool's line, and the budgets of exceptions.

use std::{ops::Deref, path::Path};

use lb_common::abi::{
    meter::{LimitWord, Meter},
    names,
    pool::PoolLine,
};

use super::{
    ArrayView, FlowTables, MapsError, PinnedMaps, Role,
    opener::Opener,
    raw::{Mapping, MappingMut},
};

/// The balancer's maps as a gate keeper has them; nobody else closes gates.
#[derive(Debug)]
pub struct Gates {
    maps: PinnedMaps,
    pools: ArrayView<PoolLine, MappingMut>,
    meters: ArrayView<Meter, MappingMut>,
    /// What is remembered by connection.
    pub tables: FlowTables,
}

impl Gates {
    /// Opens the balancer's maps under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Role::Balancer);
        Ok(Self {
            maps: PinnedMaps::open(bpffs)?,
            pools: pins.array(names::POOLS)?,
            meters: pins.array(names::METERS)?,
            tables: FlowTables::open(bpffs)?,
        })
    }

    /// Closes a pool's gate if the last placement away from home is still that of `last_away`: one
    /// store.
    pub fn clear(&self, pool: u32, last_away: u64) {
        self.pools.set_word(pool, PoolLine::CLEARED, last_away);
    }

    /// Says how fast exceptions may be added: one store.
    pub fn set_budget(&self, meter: u32, limit: LimitWord) {
        self.meters.set_word(meter, 0, limit.0);
    }

    /// The maps, and the tables.
    pub fn parts(&mut self) -> (&PinnedMaps, &mut FlowTables) {
        (&self.maps, &mut self.tables)
    }
}

impl<M: AsRef<Mapping>> super::Maps<M> {
    /// The pools whose gate is open, each with its line.
    pub fn open_pools(&self) -> impl Iterator<Item = (u32, PoolLine)> + '_ {
        let lines = (0..self.pool_count()).map(|pool| (pool, self.pool_line(pool)));
        lines.filter(|(_, line)| !line.is_gate_closed())
    }
}

impl Deref for Gates {
    type Target = PinnedMaps;

    fn deref(&self) -> &PinnedMaps {
        &self.maps
    }
}

const _: () = assert!(std::mem::offset_of!(PoolLine, cleared) == PoolLine::CLEARED * 8);
