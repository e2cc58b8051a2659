//! Slot tables: inner maps that are written, then published, and never changed.

use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd},
    panic::resume_unwind,
    thread,
};

use aya::maps::{ArrayOfMaps, MapData, MapError, MapType};
use lb_common::abi::{
    limits::DEFAULT_SLOTS,
    names,
    slot::TableRef,
    slot::{OwnersWord, SlotWord, table_words},
};

use super::{
    MapsError,
    inner::InnerMaps,
    layout::{INNER_MAP, MMAPABLE},
    maps::map_error,
    opener::Opener,
    raw::{Mapping, MappingMut, update_batch},
};

/// Tables published by one call; each holds a file descriptor until then.
const BATCH: usize = 128;

/// Concurrent look-ups of inner maps. Before Linux 6.8 each look-up waits for a grace period (tens of
/// milliseconds), and concurrent ones wait for the same one.
const LOOKERS: usize = 64;

/// Index of the spare in each map of tables; no group names it.
pub(super) const SPARE: u32 = 0;

/// Longest name of a map, bytes (`BPF_OBJ_NAME_LEN` less the end).
const NAME_LENGTH: usize = 15;

/// The start of a table's id that fits the name of a map (60 bits in hexadecimal), so that a restarted daemon
/// recognises its tables without building them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName([u8; NAME_LENGTH]);

impl TableName {
    /// The first 15 digits of a hexadecimal digest.
    pub fn from_digest(digest: impl fmt::Display) -> Self {
        let mut name = [b'0'; NAME_LENGTH];
        for (place, digit) in name.iter_mut().zip(digest.to_string().bytes()) {
            *place = digit;
        }
        Self(name)
    }

    fn read(text: &str) -> Option<Self> {
        let name = <[u8; NAME_LENGTH]>::try_from(text.as_bytes()).ok()?;
        name.iter().all(u8::is_ascii_hexdigit).then_some(Self(name))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A table to publish.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// Where it goes. No published group may name this index.
    pub at: TableRef,
    pub name: TableName,
    /// Its [`lb_common::abi::slot::SlotWord`]s: the default number where `at` is in the map of that
    /// size.
    pub words: Vec<u64>,
}

/// A map of tables, and the spare that replaces removed tables. Replacing works in batches, while each deletion
/// would wait for a grace period of its own.
pub(super) struct TableMap {
    name: &'static str,
    outer: ArrayOfMaps<MapData>,
    inner: InnerMaps,
    spare: MapData,
    flags: u32,
}

impl fmt::Debug for TableMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).finish_non_exhaustive()
    }
}

impl TableMap {
    /// The map of tables of the default size.
    pub(super) fn default_size(pins: &Opener) -> Result<Self, MapsError> {
        Self::open(pins, names::TABLES, DEFAULT_SLOTS, MMAPABLE)
    }

    /// The map of tables of other sizes.
    pub(super) fn sized(pins: &Opener) -> Result<Self, MapsError> {
        Self::open(pins, names::SIZED_TABLES, 1, MMAPABLE | INNER_MAP)
    }

    fn open(pins: &Opener, name: &'static str, slots: u32, flags: u32) -> Result<Self, MapsError> {
        let (mut outer, inner): (ArrayOfMaps<MapData>, _) = (pins.typed(name)?, pins.inner(name)?);
        inner.make_directory()?;
        let spare = match inner.get(SPARE)? {
            Some(spare) => spare,
            None => {
                let spare = create("spare", slots, flags).map_err(map_error(name))?;
                inner.pin(SPARE, &spare)?;
                outer.set(SPARE, &spare, 0).map_err(map_error(name))?;
                spare
            }
        };
        Ok(Self { name, outer, inner, spare, flags })
    }

    /// The tables that exist and have their pin, published or not, by index. Removes pins without a table, which a
    /// killed daemon left.
    pub(super) fn present(&self) -> Result<Vec<(u32, Option<TableName>)>, MapsError> {
        let mut pinned = self.inner.pinned()?;
        pinned.retain(|index| *index != SPARE);
        let look = |indices: &[u32]| -> Result<Vec<_>, MapsError> {
            let found = indices.iter().map(|index| Ok(self.table(*index)?.map(|it| (*index, it))));
            found.filter_map(Result::transpose).collect()
        };
        let share = pinned.len().div_ceil(LOOKERS).max(1);
        thread::scope(|scope| {
            let lookers: Vec<_> =
                pinned.chunks(share).map(|indices| scope.spawn(move || look(indices))).collect();
            let mut present = Vec::with_capacity(pinned.len());
            for looker in lookers {
                present.extend(looker.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok(present)
        })
    }

    /// The name of the table at an index. Removes the pin if there is no table.
    fn table(&self, index: u32) -> Result<Option<Option<TableName>>, MapsError> {
        let Some(inner) = self.inner.get(index)? else {
            self.inner.unpin(index)?;
            return Ok(None);
        };
        let info = inner.info().map_err(map_error(self.name))?;
        Ok(Some(info.name_as_str().and_then(TableName::read)))
    }

    /// Publishes tables by index, a batch at a time.
    pub(super) fn publish(&mut self, tables: &[&NewTable]) -> Result<(), MapsError> {
        for batch in tables.chunks(BATCH) {
            let mut made = Vec::with_capacity(batch.len());
            for table in batch {
                let (at, inner) = (table.at.index(), self.write(table)?);
                self.inner.pin(at, &inner)?;
                made.push((at, inner));
            }
            let elements: Vec<_> = made.iter().map(|(at, map)| (*at, map.fd().as_fd())).collect();
            self.update(&elements)?;
        }
        Ok(())
    }

    fn write(&self, table: &NewTable) -> Result<MapData, MapsError> {
        let slots = table.words.len() as u32;
        let inner =
            create(&table.name.to_string(), slots, self.flags).map_err(map_error(self.name))?;
        let memory = MappingMut::new(inner.fd(), table_words(slots) as usize);
        let memory = memory.map_err(|source| self.failed(source))?;
        let words = table.words.iter().copied().chain(OwnersWord::from_lists(&table.words));
        for (i, word) in words.enumerate() {
            memory.store(i, word);
        }
        Ok(inner)
    }

    /// Frees the memory of tables that no reader can have any more.
    pub(super) fn retire(&mut self, indices: &[u32]) -> Result<(), MapsError> {
        for batch in indices.chunks(BATCH) {
            let spare = self.spare.fd().as_fd();
            let elements: Vec<_> = batch.iter().map(|index| (*index, spare)).collect();
            self.update(&elements)?;
            batch.iter().try_for_each(|index| self.inner.unpin(*index))?;
        }
        Ok(())
    }

    /// Waits until all packets of now have left the programs: the kernel does so before an update of a single
    /// element returns.
    pub(super) fn wait_for_readers(&mut self) -> Result<(), MapsError> {
        self.outer.set(SPARE, &self.spare, 0).map_err(map_error(self.name))
    }

    fn update(&self, elements: &[(u32, BorrowedFd<'_>)]) -> Result<(), MapsError> {
        update_batch(&self.inner, elements).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> MapsError {
        MapsError::Call { map: self.name, source }
    }
}

/// An empty table.
fn create(name: &str, slots: u32, flags: u32) -> Result<MapData, MapError> {
    let kind = MapType::Array as u32;
    let (key, value) = (size_of::<u32>() as u32, size_of::<u64>() as u32);
    let shape = aya_obj::Map::new_from_params(kind, key, value, table_words(slots), flags);
    MapData::create(shape, name, None)
}

/// A published slot table, in memory.
#[derive(Debug)]
pub struct SlotTable {
    words: Mapping,
    slots: u32,
    id: u32,
}

impl SlotTable {
    pub(super) fn open(inner: &MapData, slots: u32) -> io::Result<Self> {
        let id = inner.info().map_err(io::Error::other)?.id();
        Ok(Self { words: Mapping::new(inner.fd(), table_words(slots) as usize)?, slots, id })
    }

    /// The kernel's id of the map; a table keeps its content for as long as it has its id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// A slot's list.
    pub fn slot(&self, index: u32) -> Option<SlotWord> {
        let word = || self.words.load(index as usize);
        (index < self.slots).then(word).flatten().map(SlotWord)
    }

    /// The rank of a slot's owner, from the compact array that packets read.
    pub fn owner(&self, slot: u32) -> Option<u16> {
        let word = || self.words.load(OwnersWord::index(self.slots, slot) as usize);
        (slot < self.slots).then(word).flatten().map(|word| OwnersWord(word).owner(slot))
    }

    pub fn slots(&self) -> impl ExactSizeIterator<Item = SlotWord> + '_ {
        self.words.iter().take(self.slots as usize).map(SlotWord)
    }
}
