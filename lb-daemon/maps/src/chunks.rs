//! Chunks: the inner maps of `TABLES`, in which slot tables stand. All have one size, and hold tables of any.
//!
//! A look-up in an array of maps returns only the id of the inner map, and opening a map by id needs CAP_SYS_ADMIN, which
//! the daemon does not need otherwise. So each chunk has a pin named by its index. Its first word says whether it
//! stands in the array: it is set after the chunk was put there and cleared before it is taken away. Thus a pin can be
//! trusted without a look-up, which would wait for a grace period before Linux 6.8, and a mapping of a chunk that was
//! replaced is recognised.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::{self, ErrorKind},
    os::fd::AsFd as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aya::maps::{ArrayOfMaps, MapData, MapType};
use lb_common::abi::{limits::CHUNK_WORDS, names::TABLES, slot::CHUNK_IN_USE};

use super::{
    MapsError,
    layout::MMAPABLE,
    maps::map_error,
    opener::{Access, Opener, why},
    raw::{Mapping, MappingMut, update_batch},
};

/// The chunk that is never given back. It also takes the place of chunks that are: replacing works in batches, while
/// each deletion would wait for a grace period of its own.
pub(super) const FIRST: u32 = 0;

/// Chunks added or removed by one call; each added one holds a file descriptor until then.
const BATCH: usize = 128;

/// The chunks in memory, each mapped when a table in it is first used.
pub(super) struct Chunks<M> {
    pins: ChunkPins,
    open: Mutex<BTreeMap<u32, Arc<M>>>,
}

impl<M> Chunks<M> {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<M>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Access> Chunks<M> {
    pub(super) fn new(pins: &Opener) -> Self {
        Self { pins: ChunkPins(pins.inner(TABLES)), open: Mutex::default() }
    }

    /// The chunk at an index, if there is one.
    pub(super) fn get(&self, index: u32) -> Result<Option<Arc<M>>, MapsError> {
        let mut open = self.open();
        if let Some(chunk) = open.get(&index).filter(|chunk| is_in_use(chunk.as_ref())) {
            return Ok(Some(Arc::clone(chunk)));
        }
        open.retain(|_, chunk| is_in_use(chunk.as_ref()));
        let Some((_, chunk)) = self.pins.get::<M>(index, CHUNK_WORDS as usize)? else {
            return Ok(None);
        };
        let chunk = Arc::new(chunk);
        let found = is_in_use(chunk.as_ref()).then(|| Arc::clone(&chunk));
        open.extend(found.clone().map(|chunk| (index, chunk)));
        Ok(found)
    }
}

/// Whether a chunk stands in the array.
fn is_in_use(chunk: &impl AsRef<Mapping>) -> bool {
    chunk.as_ref().load(0) == Some(CHUNK_IN_USE)
}

/// The directory with a pin for each chunk.
struct ChunkPins(PathBuf);

impl ChunkPins {
    fn path(&self, index: u32) -> PathBuf {
        self.0.join(index.to_string())
    }

    /// The map that is pinned for an index, and the memory of its first words.
    fn get<M: Access>(&self, index: u32, words: usize) -> Result<Option<(MapData, M)>, MapsError> {
        let path = self.path(index);
        let map = match MapData::from_pin(&path).map_err(|error| why(path.clone(), error)) {
            Err(MapsError::Missing { .. }) => return Ok(None),
            map => map?,
        };
        let memory = M::words(&map, words);
        let memory = memory.map_err(|source| MapsError::Memory { path, source })?;
        Ok(Some((map, memory)))
    }

    /// The indices that have a pin.
    fn indices(&self) -> Result<BTreeSet<u32>, MapsError> {
        let pin_error = |source| MapsError::Pin { path: self.0.clone(), source };
        fs::create_dir_all(&self.0).map_err(pin_error)?;
        let mut indices = BTreeSet::new();
        for entry in fs::read_dir(&self.0).map_err(pin_error)? {
            let name = entry.map_err(pin_error)?.file_name();
            indices.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(indices)
    }

    /// Pins a chunk. Replaces a pin that a killed daemon left.
    fn add(&self, index: u32, map: &MapData) -> Result<(), MapsError> {
        self.remove(index)?;
        let path = self.path(index);
        map.pin(&path).map_err(|error| MapsError::Pin { path, source: io::Error::other(error) })
    }

    /// Removes a pin, if there is one.
    fn remove(&self, index: u32) -> Result<(), MapsError> {
        let path = self.path(index);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(MapsError::Pin { path, source })
            }
            _ => Ok(()),
        }
    }
}

/// `TABLES` itself: adds and removes chunks.
pub(super) struct ChunkArray {
    outer: ArrayOfMaps<MapData>,
    /// The same array, for batches.
    map: MapData,
    first: MapData,
    /// The chunks in the array.
    present: BTreeSet<u32>,
}

impl fmt::Debug for ChunkArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkArray").field("present", &self.present).finish_non_exhaustive()
    }
}

impl ChunkArray {
    /// Finds the chunks that there are, and removes those that a killed daemon had begun to add or to remove. Makes the
    /// first one if it is not there.
    pub(super) fn open(pins: &Opener, chunks: &Chunks<MappingMut>) -> Result<Self, MapsError> {
        let (mut present, mut rest) = (BTreeSet::new(), Vec::new());
        for index in chunks.pins.indices()? {
            match chunks.get(index)? {
                Some(_) => present.extend([index]),
                None => rest.push(index),
            }
        }
        let mut outer: ArrayOfMaps<MapData> = pins.typed(TABLES)?;
        let there = chunks.pins.get::<MappingMut>(FIRST, 1)?.filter(|_| present.contains(&FIRST));
        let first = match there {
            Some((first, _)) => first,
            None => {
                let first = create()?;
                chunks.pins.add(FIRST, &first)?;
                outer.set(FIRST, &first, 0).map_err(map_error(TABLES))?;
                mark(chunks, FIRST, CHUNK_IN_USE)?;
                present.insert(FIRST);
                first
            }
        };
        let mut array = Self { outer, map: pins.data(TABLES)?, first, present };
        rest.retain(|index| *index != FIRST);
        array.remove(chunks, &rest)?;
        Ok(array)
    }

    pub(super) fn present(&self) -> &BTreeSet<u32> {
        &self.present
    }

    /// Adds empty chunks.
    pub(super) fn add(
        &mut self,
        chunks: &Chunks<MappingMut>,
        indices: &[u32],
    ) -> Result<(), MapsError> {
        for batch in indices.chunks(BATCH) {
            let added = self.add_batch(chunks, batch);
            if added.is_err() {
                for index in batch {
                    let _already_failing = chunks.pins.remove(*index);
                }
            }
            added?;
            self.present.extend(batch);
        }
        Ok(())
    }

    fn add_batch(&self, chunks: &Chunks<MappingMut>, indices: &[u32]) -> Result<(), MapsError> {
        let mut made = Vec::with_capacity(indices.len());
        for index in indices {
            let map = create()?;
            chunks.pins.add(*index, &map)?;
            made.push((*index, map));
        }
        let elements: Vec<_> = made.iter().map(|(index, map)| (*index, map.fd().as_fd())).collect();
        update_batch(self.map.fd(), &elements).map_err(failed)?;
        indices.iter().try_for_each(|index| mark(chunks, *index, CHUNK_IN_USE))
    }

    /// Removes chunks, and with them their memory. No published group may name a table in them, and no packet may read
    /// one any more.
    pub(super) fn remove(
        &mut self,
        chunks: &Chunks<MappingMut>,
        indices: &[u32],
    ) -> Result<(), MapsError> {
        for batch in indices.chunks(BATCH) {
            for index in batch {
                mark(chunks, *index, 0)?;
                chunks.open().remove(index);
                self.present.remove(index);
            }
            let first = self.first.fd().as_fd();
            let elements: Vec<_> = batch.iter().map(|index| (*index, first)).collect();
            update_batch(self.map.fd(), &elements).map_err(failed)?;
            batch.iter().try_for_each(|index| chunks.pins.remove(*index))?;
        }
        Ok(())
    }

    /// Waits until all packets of now have left the programs: the kernel does so before an update of a single element
    /// of an array of maps returns. The element stays what it is.
    pub(super) fn wait_for_readers(&mut self) -> Result<(), MapsError> {
        self.outer.set(FIRST, &self.first, 0).map_err(map_error(TABLES))
    }
}

/// Sets the first word of a pinned chunk. Its other words are not mapped for that: 1,024 pages take half a millisecond.
fn mark(chunks: &Chunks<MappingMut>, index: u32, word: u64) -> Result<(), MapsError> {
    if let Some((_, chunk)) = chunks.pins.get::<MappingMut>(index, 1)? {
        chunk.store(0, word);
    }
    Ok(())
}

/// An empty chunk.
fn create() -> Result<MapData, MapsError> {
    let (key, value) = (size_of::<u32>() as u32, size_of::<u64>() as u32);
    let kind = MapType::Array as u32;
    let shape = aya_obj::Map::new_from_params(kind, key, value, CHUNK_WORDS, MMAPABLE);
    MapData::create(shape, "chunk", None).map_err(map_error(TABLES))
}

fn failed(source: io::Error) -> MapsError {
    MapsError::Call { map: TABLES, source }
}
