//! Tables of what is remembered by connection, to walk through.

use std::{fmt, ops::Deref, path::Path};

use aya::maps::{HashMap, MapData, MapError};
use lb_common::abi::{
    clock::Coarse,
    connection::{CELLS_PER_LINE, HandshakeEntry},
    limiter::{LimitWord, Limiter},
    names,
    pool::PoolLine,
};

use super::{
    ArrayView, Component, MapsError, PinnedMaps, WritableMaps,
    maps::{Maps, map_error},
    opener::Opener,
    raw::{Elements, Mapping, MappingMut, lookup_batch},
};

/// Elements read by one call where only their number is wanted.
const CHUNK: u32 = 65_536;

/// A table with keys of `N` words: [`lb_common::abi::flow_key`].
pub struct FlowTable<const N: usize> {
    name: &'static str,
    map: HashMap<MapData, [u64; N], u64>,
    /// The same map: aya hides the descriptor of the typed one.
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

    /// Entries there is room for.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Entries that can be there without that one of them has had to go.
    pub fn safe_entries(&self) -> u32 {
        safe_entries(self.room)
    }

    /// Some entries, `most` at the most, and where to go on; `None`: those were the last. What is there
    /// all the while is read exactly once, and to the kernel that is no use of it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn read(&self, from: Option<u32>, most: u32) -> Result<Elements<N>, MapsError> {
        lookup_batch(&self.data, from, most)
            .map_err(|source| MapsError::Call { map: self.name, source })
    }

    /// Entries that are there.
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

    /// What an entry says now.
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

    /// Adds an entry, or changes it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set(&mut self, key: &[u64; N], word: u64) -> Result<(), MapsError> {
        self.map.insert(key, word, 0).map_err(map_error(self.name))
    }

    /// Takes an entry out; one that is not there is none the less gone.
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

/// All four of the balancer's.
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
    /// Opens them by their pins.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Component::Balancer);
        Ok(Self {
            displaced_v4: FlowTable::open(&pins, names::DISPLACED_V4)?,
            displaced_v6: FlowTable::open(&pins, names::DISPLACED_V6)?,
            flows_v4: FlowTable::open(&pins, names::FLOWS_V4)?,
            flows_v6: FlowTable::open(&pins, names::FLOWS_V6)?,
        })
    }
}

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

/// Free places that a CPU may have for itself.
const FREE_PLACES_OF_A_CPU: u32 = 128;

/// How many of a table's entries can be there without that one of them has had to go.
///
/// A table of the kernel's hands its free places to CPUs 128 at a time, and takes as many from others
/// where none are left to hand out (`LOCAL_FREE_TARGET`, kernel/bpf/bpf_lru_list.c). So when the first
/// one has to go, each CPU may still have that many which nobody uses: these do not count, as long as
/// the table is large enough for that to leave something.
pub(super) fn safe_entries(entries: u32) -> u32 {
    let cpus = aya::util::nr_cpus().unwrap_or(1) as u32;
    entries - FREE_PLACES_OF_A_CPU.saturating_mul(cpus).min(entries / 2)
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// A limiter's limit; a limiter out of range has none.
    pub fn limit(&self, limiter: u32) -> LimitWord {
        self.limiter(limiter).map_or(LimitWord::UNLIMITED, |limiter| LimitWord(limiter.limit))
    }

    /// Cells of handshake entries that are young enough to count at `now`, and cells in all. Reads the whole
    /// table of lines, 8 MiB.
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

impl WritableMaps {
    /// Displaced entries of IPv4 and of IPv6 connections that there is room for without another's place.
    pub fn safe_displaced_entries(&self) -> [u32; 2] {
        self.safe_displaced_entries.map(safe_entries)
    }
}
