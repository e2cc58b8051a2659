//! The flow table's memory, shared with the kernel: the daemon walks through it, and commands look flows up in it.

use std::{io, mem::offset_of, ops::Deref, path::Path};

use aya::maps::MapData;
use lb_common::{
    abi::{
        arrays::Array,
        clock::Coarse,
        flow_map::{FLOW_VERSION, FlowHead, HEAD_LINES, LINE_WORDS},
        pool::PoolLine,
        zone::Zone,
    },
    flow_table::{Bucket, CELLS, FlowCells, LIFE, Owner, Place, Position},
    word::Word as _,
};

use super::{
    Access, ArrayView, Arrays, Component, MapsError, PinnedMaps,
    maps::Maps,
    opener::Opener,
    raw::{Mapping, MappingMut},
};

const VERSION: usize = offset_of!(FlowHead, version) / size_of::<u64>();
const MASK: usize = offset_of!(FlowHead, mask) / size_of::<u64>();
const SECRET: usize = offset_of!(FlowHead, secret) / size_of::<u64>();

/// The flow table.
#[derive(Debug)]
pub struct FlowTable<M> {
    memory: M,
    buckets: u32,
}

impl<M: Access> FlowTable<M> {
    /// Maps a table of so many lines.
    ///
    /// # Errors
    /// As [`Mapping::new`].
    pub fn new(map: &MapData, lines: u32) -> io::Result<Self> {
        let memory = M::words(map, lines as usize * LINE_WORDS)?;
        Ok(Self { memory, buckets: lines.saturating_sub(HEAD_LINES) })
    }
}

impl<M: AsRef<Mapping>> FlowTable<M> {
    fn word(&self, at: usize) -> u64 {
        self.memory.as_ref().load(at).unwrap_or(0)
    }

    /// The key that flows are hashed with.
    pub fn secret(&self) -> [u64; 2] {
        [self.word(SECRET), self.word(SECRET + 1)]
    }

    /// Number of its buckets.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Flows that it has room for.
    pub fn room(&self) -> u32 {
        self.buckets * CELLS
    }

    /// The cells of some buckets from one on, that are or were a flow's.
    pub fn cells(
        &self,
        first: u32,
        count: u32,
    ) -> impl Iterator<Item = (Position, Owner, Place)> + '_ {
        let last = first.saturating_add(count).min(self.buckets);
        (first..last).flat_map(move |bucket| {
            let line = first_word(bucket);
            let words = self.memory.as_ref().range(line, LINE_WORDS).collect::<Vec<_>>();
            let cells =
                (0..CELLS).zip(words.chunks_exact(2).map(|it| [it[0], it[1]]).collect::<Vec<_>>());
            cells.filter(|(_, words)| words[0] != 0).map(move |(cell, [owner, place])| {
                (Position::new(bucket, cell), Owner(owner), Place(place))
            })
        })
    }
}

impl FlowTable<MappingMut> {
    /// Sets up a table that was just made: nobody but this balancer knows the secret.
    pub fn set_up(&self, secret: [u64; 2]) {
        self.memory.store(MASK, u64::from(self.buckets) - 1);
        for (place, word) in secret.into_iter().enumerate() {
            self.memory.store(SECRET + place, word);
        }
        self.memory.store(VERSION, FLOW_VERSION);
    }

    /// Whether [`Self::set_up`] was done.
    pub fn is_set_up(&self) -> bool {
        self.word(VERSION) == FLOW_VERSION
    }

    /// Erases a cell, unless a packet has changed its first word since it was read.
    pub fn erase(&self, at: Position, owner: Owner) -> bool {
        let word = first_word(at.bucket()) + 2 * at.cell() as usize;
        self.memory.word(word).exchange(owner.0, Owner::NONE.0).is_ok()
    }
}

const fn first_word(bucket: u32) -> usize {
    (bucket + HEAD_LINES) as usize * LINE_WORDS
}

/// A bucket that nobody writes through, so that explaining a flow changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct ReadBucket<'m> {
    memory: &'m Mapping,
    line: usize,
}

impl Bucket for ReadBucket<'_> {
    fn load(self, word: u32) -> u64 {
        self.memory.load(self.line + word as usize).unwrap_or(0)
    }

    fn exchange(self, _: u32, _: u64, _: u64) -> bool {
        true
    }

    fn store(self, _: u32, _: u64) {}
}

impl<M: AsRef<Mapping>> FlowCells for FlowTable<M> {
    type Bucket<'c>
        = ReadBucket<'c>
    where
        Self: 'c;

    fn mask(&self) -> Option<u32> {
        self.buckets.checked_sub(1)
    }

    fn bucket(&self, number: u32) -> Option<ReadBucket<'_>> {
        let line = first_word(number);
        (number < self.buckets).then(|| ReadBucket { memory: self.memory.as_ref(), line })
    }
}

/// What the walk through the flow table may do with the balancer's maps: read all, erase cells, and turn displaced checks
/// off (it alone).
#[derive(Debug)]
pub struct FlowMaps {
    maps: PinnedMaps,
    pools: ArrayView<PoolLine, MappingMut>,
    zones: ArrayView<Zone, MappingMut>,
    counts: ArrayView<u64, MappingMut>,
    table: FlowTable<MappingMut>,
}

impl FlowMaps {
    /// Opens the balancer's maps under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Component::Balancer)?;
        let arrays = pins.arrays()?;
        Ok(Self {
            maps: PinnedMaps::open(bpffs)?,
            pools: arrays.view(Array::Pools),
            zones: arrays.view(Array::Zones),
            counts: arrays.view(Array::FlowCounts),
            table: pins.flows()?,
        })
    }

    /// The table, to change.
    pub fn table(&self) -> &FlowTable<MappingMut> {
        &self.table
    }

    /// Turns off the displaced check of a pool by one store, unless a flow got a cell after `last_displaced`.
    pub fn clear(&self, pool: u32, last_displaced: u64) {
        self.pools.set_word(pool, PoolLine::CLEARED, last_displaced);
    }

    /// The same of a zone.
    pub fn clear_zone(&self, zone: u32, last_displaced: u64) {
        self.zones.set_word(zone, Zone::CLEARED, last_displaced);
    }

    /// Sets how many cells a pool has; 0: all pools.
    pub fn set_count(&self, pool: u32, cells: u64) {
        self.counts.set(pool, &cells);
    }

    /// Turns all checks on for as long as cells live: those from before this layout may be of any zone.
    pub(super) fn turn_all_on(arrays: &Arrays<MappingMut>, now: Coarse) {
        let until = cells_end(now);
        let (pools, zones) =
            (arrays.view::<PoolLine>(Array::Pools), arrays.view::<Zone>(Array::Zones));
        (0..pools.entries()).for_each(|pool| pools.set_word(pool, PoolLine::LAST_DISPLACED, until));
        (0..zones.entries()).for_each(|zone| zones.set_word(zone, Zone::LAST_DISPLACED, until));
    }
}

/// When all cells of now are over that no packet renews, by any CPU's clock, in coarse units. One that a packet meets gets the
/// zone that its flow then has.
pub(super) const fn cells_end(now: Coarse) -> u64 {
    now.0 + LIFE + AHEAD
}

/// The packet path's clock may be this far ahead, in coarse units.
const AHEAD: u64 = 2;

impl Deref for FlowMaps {
    type Target = PinnedMaps;

    fn deref(&self) -> &PinnedMaps {
        &self.maps
    }
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// The pools that may have flows with cells, each with its line.
    pub fn pools_with_displaced(&self) -> impl Iterator<Item = (u32, PoolLine)> + '_ {
        let lines = (0..self.pool_count()).map(|pool| (pool, self.pool_line(pool)));
        lines.filter(|(_, line)| line.has_displaced())
    }
}

const _: () = assert!(offset_of!(PoolLine, cleared) == PoolLine::CLEARED * 8);
const _: () = assert!(offset_of!(PoolLine, last_displaced) == PoolLine::LAST_DISPLACED * 8);
const _: () = assert!(offset_of!(Zone, last_displaced) == Zone::LAST_DISPLACED * 8);
const _: () = assert!(offset_of!(Zone, cleared) == Zone::CLEARED * 8);
