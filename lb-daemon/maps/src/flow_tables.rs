//! The tables of displaced connections and tracked flows, which the daemon walks through and sweeps.

use std::{fmt, ops::Deref, path::Path};

use aya::maps::{HashMap, MapData, MapError};
use lb_common::abi::{
    arrays::Array,
    clock::Coarse,
    connection::{CELLS_PER_LINE, HandshakeEntry},
    limiter::{LimitWord, Limiter},
    names,
    pool::PoolLine,
};

use super::{
    ArrayView, Component, MapsError, MemberMaps, PinnedMaps,
    maps::{Maps, map_error},
    opener::Opener,
    raw::{Elements, Mapping, MappingMut, lookup_batch},
};

/// Entries per call when they are only counted.
const CHUNK: u32 = 65_536;

/// A table with keys of `N` words: [`lb_common::abi::connection`].
pub struct FlowTable<const N: usize> {
    name: &'static str,
    map: HashMap<MapData, [u64; N], u64>,
    /// The same map again, because aya hides the descriptor of the typed one.
    data: MapData,
    room: u32,
}

impl<const N: usize> fmt::Debug for FlowTable<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).finish_non_exhaustive()
    }
}

impl<const N: usize> FlowTable<N> {
    pub(super) fn open(pins: &Opener, name: &'static str) -> Result<Self, MapsError> {
        let (map, data) = (pins.typed(name)?, pins.data(name)?);
        Ok(Self { name, map, data, room: pins.entries(name)? })
    }

    /// Entries that the table can hold.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Entries that the table holds before the kernel evicts one.
    pub fn safe_entries(&self) -> u32 {
        safe_entries(self.room)
    }

    /// Up to `most` entries, and where to continue; `None`: these were the last. An entry that exists during the
    /// whole walk is read exactly once, and reading does not count as a use of it in the kernel's LRU order.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn read(&self, from: Option<u32>, most: u32) -> Result<Elements<N>, MapsError> {
        lookup_batch(&self.data, from, most)
            .map_err(|source| MapsError::Call { map: self.name, source })
    }

    ///
    /// # Errors
    /// What the kernel answers.
    pub fn held(&self) -> Result<u64, MapsError> {
        let (mut held, mut from) = (0, None);
        loop {
            let (entries, next) = self.read(from, CHUNK)?;
            held += entries.len() as u64;
            match next {
                Some(next) => from = Some(next),
                None => return Ok(held),
            }
        }
    }

    ///
    /// # Errors
    /// What the kernel answers.
    pub fn get(&self, key: &[u64; N]) -> Result<Option<u64>, MapsError> {
        match self.map.get(key, 0) {
            Ok(word) => Ok(Some(word)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(map_error(self.name)(source)),
        }
    }

    /// Adds or changes an entry.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set(&mut self, key: &[u64; N], word: u64) -> Result<(), MapsError> {
        self.map.insert(key, word, 0).map_err(map_error(self.name))
    }

    /// Removes an entry, if it exists.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn remove(&mut self, key: &[u64; N]) -> Result<(), MapsError> {
        match self.map.remove(key) {
            Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error))
                if error.io_error.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            result => result.map_err(map_error(self.name)),
        }
    }
}

/// The four tables of the balancer.
#[derive(Debug)]
pub struct FlowTables {
    /// Displaced entries of IPv4 connections.
    pub displaced_v4: FlowTable<2>,
    /// Displaced entries of IPv6 connections.
    pub displaced_v6: FlowTable<5>,
    /// Tracked flows of IPv4.
    pub flows_v4: FlowTable<2>,
    /// Tracked flows of IPv6.
    pub flows_v6: FlowTable<5>,
}

impl FlowTables {
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Component::Balancer)?;
        Ok(Self {
            displaced_v4: FlowTable::open(&pins, names::DISPLACED_V4)?,
            displaced_v6: FlowTable::open(&pins, names::DISPLACED_V6)?,
            flows_v4: FlowTable::open(&pins, names::FLOWS_V4)?,
            flows_v6: FlowTable::open(&pins, names::FLOWS_V6)?,
        })
    }
}

/// What the sweeper of displaced entries may do with the balancer's maps: read all, remove entries, turn displaced
/// checks off (it alone), and set the budgets of displaced entries.
#[derive(Debug)]
pub struct DisplacedMaps {
    maps: PinnedMaps,
    pools: ArrayView<PoolLine, MappingMut>,
    limiters: ArrayView<Limiter, MappingMut>,
    pub tables: FlowTables,
}

impl DisplacedMaps {
    /// Opens the balancer's maps under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let arrays = Opener::new(bpffs, Component::Balancer)?.arrays()?;
        Ok(Self {
            maps: PinnedMaps::open(bpffs)?,
            pools: arrays.view(Array::Pools),
            limiters: arrays.view(Array::Limiters),
            tables: FlowTables::open(bpffs)?,
        })
    }

    /// Turns off the displaced check of a pool by one store, unless a connection was displaced after
    /// `last_displaced`.
    pub fn clear(&self, pool: u32, last_displaced: u64) {
        self.pools.set_word(pool, PoolLine::CLEARED, last_displaced);
    }

    /// Sets how fast displaced entries may be added, or adopted.
    pub fn set_budget(&self, limiter: u32, limit: LimitWord) {
        self.limiters.set_budget(limiter, limit, self.maps.now());
    }

    pub fn parts(&mut self) -> (&PinnedMaps, &mut FlowTables) {
        (&self.maps, &mut self.tables)
    }
}

impl<M: AsRef<Mapping>> Maps<M> {
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

/// Free entries that the kernel may reserve for one CPU.
const FREE_ENTRIES_PER_CPU: u32 = 128;

/// How many entries an LRU table holds before the kernel evicts one.
///
/// The kernel hands free entries to CPUs 128 at a time, and evicts if none are left to hand out
/// (`LOCAL_FREE_TARGET`, kernel/bpf/bpf_lru_list.c). At the first eviction each CPU may still hold that many unused
/// ones. They are subtracted, up to half of the table.
pub(super) fn safe_entries(entries: u32) -> u32 {
    let cpus = aya::util::nr_cpus().unwrap_or(1) as u32;
    entries - FREE_ENTRIES_PER_CPU.saturating_mul(cpus).min(entries / 2)
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// A limiter's limit; unlimited if the index is out of range.
    pub fn limit(&self, limiter: u32) -> LimitWord {
        self.limiter(limiter).map_or(LimitWord::UNLIMITED, |limiter| LimitWord(limiter.limit))
    }

    /// Handshake entries that have not expired at `now`, and the capacity for them. Reads the whole table, 8 MiB.
    pub fn handshake_entries_held(&self, now: Coarse) -> (u64, u64) {
        let lines = self.handshakes.entries();
        let cells = (0..lines).filter_map(|line| self.handshakes.get(line)).flat_map(|line| {
            let cell = move |at: usize| HandshakeEntry {
                syn: line.words[2 * at],
                decision: line.words[2 * at + 1],
            };
            (0..CELLS_PER_LINE as usize).map(cell)
        });
        let held = cells.filter(|entry| !entry.is_expired(now)).count();
        (held as u64, u64::from(lines) * u64::from(CELLS_PER_LINE))
    }
}

impl MemberMaps {
    /// Displaced entries of IPv4 and of IPv6 connections that fit before the kernel evicts one.
    pub fn safe_displaced_entries(&self) -> [u32; 2] {
        self.safe_displaced_entries.map(safe_entries)
    }
}
