//! The memory of the balancer's arrays, and typed views of each.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use aya::maps::{MapData, MapError};
use lb_common::abi::{
    arrays::{Array, ArrayLayout, CLOCK_AHEAD_WORD},
    names::ARRAYS,
    pod::{Pod, bytes_of, from_bytes},
    sizes::{MapSizes, Size},
};

use super::{
    Component, MapsError,
    clock::PacketClock,
    layout::MMAPABLE,
    opener::{Access, Opener},
    raw::{Mapping, MappingMut, SharedWord, create_array},
};

const WORD: usize = size_of::<u64>();
const HEAD_WORDS: usize = (Size::ALL.len() * size_of::<u32>()).div_ceil(WORD);

/// All arrays, shared with the kernel.
#[derive(Debug)]
pub struct Arrays<M> {
    memory: Arc<M>,
    layout: ArrayLayout,
}

impl<M: Access> Arrays<M> {
    /// Opens the balancer's arrays under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says that the pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        Opener::new(bpffs, Component::Balancer)?.arrays()
    }

    /// Maps the arrays of a map that was made for some sizes.
    ///
    /// # Errors
    /// As [`Mapping::new`].
    pub fn new(map: &MapData, sizes: &MapSizes) -> io::Result<Self> {
        let layout = ArrayLayout::new(sizes);
        Ok(Self { memory: Arc::new(M::words(map, layout.bytes() as usize / WORD)?), layout })
    }

    pub(super) fn clock(&self) -> PacketClock<M> {
        PacketClock::new(Arc::clone(&self.memory))
    }

    /// One of them.
    ///
    /// # Panics
    /// If `T` is not what its elements are.
    pub fn view<T: Pod>(&self, array: Array) -> ArrayView<T, M> {
        assert_eq!(array.element_bytes() as usize, size_of::<T>(), "elements of {array:?}");
        let region = self.layout.region(array);
        ArrayView {
            memory: Arc::clone(&self.memory),
            first: region.start as usize / WORD,
            entries: region.entries,
            values: PhantomData,
        }
    }
}

/// Creates the map for some sizes, which its first words then tell.
///
/// # Errors
/// What the kernel answers.
pub(super) fn create(sizes: &MapSizes) -> Result<MapData, MapError> {
    let bytes = ArrayLayout::new(sizes).bytes();
    let create = |source| MapError::CreateError { name: ARRAYS.into(), io_error: source };
    let map: OwnedFd = create_array(ARRAYS, bytes, MMAPABLE).map_err(create)?;
    let head = MappingMut::new(map.as_fd(), HEAD_WORDS).map_err(MapError::IoError)?;
    for (at, pair) in sizes.numbers().chunks(2).enumerate() {
        let high = pair.get(1).copied().unwrap_or(0);
        head.store(at, u64::from(pair[0]) | u64::from(high) << 32);
    }
    MapData::from_fd(map)
}

/// The sizes that a map was made for; `None`: another build made it.
///
/// # Errors
/// As [`Mapping::new`].
pub(super) fn sizes(map: &MapData) -> io::Result<Option<MapSizes>> {
    let head = Mapping::new(map.fd(), HEAD_WORDS)?;
    let words = head.range(0, HEAD_WORDS).flat_map(|word| [word as u32, (word >> 32) as u32]);
    let mut numbers = [0; Size::ALL.len()];
    numbers.iter_mut().zip(words).for_each(|(number, word)| *number = word);
    Ok(MapSizes::from_numbers(numbers))
}

/// Writes into a map by how many nanoseconds the packet path's clock is ahead of CLOCK_MONOTONIC_COARSE.
///
/// # Errors
/// As [`MappingMut::new`].
pub(super) fn set_clock_ahead(map: &MapData, ahead: i64) -> io::Result<()> {
    let head = MappingMut::new(map.fd(), CLOCK_AHEAD_WORD + 1)?;
    head.store(CLOCK_AHEAD_WORD, ahead.cast_unsigned());
    Ok(())
}

/// An array of `T` (a whole number of 64-bit words), shared with the kernel.
///
/// Values are read and written word by word: while another side writes a value, only single words are consistent.
#[derive(Debug)]
pub struct ArrayView<T, M = Mapping> {
    memory: Arc<M>,
    /// Words before it.
    first: usize,
    entries: u32,
    values: PhantomData<T>,
}

impl<T: Pod> ArrayView<T, MappingMut> {
    /// Writes a value word by word. Only for values that nothing names yet, or that are a single word.
    ///
    /// # Panics
    /// If `index` is not below the number of entries.
    pub fn set(&self, index: u32, value: &T) {
        for (place, chunk) in bytes_of(value).chunks_exact(WORD).enumerate() {
            let mut word = [0; WORD];
            word.copy_from_slice(chunk);
            self.set_word(index, place, u64::from_ne_bytes(word));
        }
    }

    /// Writes one word of a value by one store; `word` counts from the value's start.
    ///
    /// # Panics
    /// If `index` is not below the number of entries, or the value has not that many words.
    pub fn set_word(&self, index: u32, word: usize, value: u64) {
        self.memory.store(self.place(index, word), value);
    }

    /// One word of a value, which packets change too; `word` counts from the value's start.
    ///
    /// # Panics
    /// As [`Self::set_word`].
    pub(super) fn shared_word(&self, index: u32, word: usize) -> SharedWord<'_> {
        self.memory.word(self.place(index, word))
    }

    fn place(&self, index: u32, word: usize) -> usize {
        assert!(index < self.entries && word < words_of::<T>(), "word {word} of {index}");
        self.first + index as usize * words_of::<T>() + word
    }
}

impl<T: Pod, M: AsRef<Mapping>> ArrayView<T, M> {
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// A value; `None` where `index` is out of range.
    pub fn get(&self, index: u32) -> Option<T> {
        if index >= self.entries {
            return None;
        }
        let words = words_of::<T>();
        let first = self.first + index as usize * words;
        let mut bytes = [0; MAX_SIZE];
        for (i, chunk) in bytes.chunks_exact_mut(WORD).take(words).enumerate() {
            chunk.copy_from_slice(&(*self.memory).as_ref().load(first + i)?.to_ne_bytes());
        }
        from_bytes(&bytes[..size_of::<T>()])
    }
}

/// Largest value, bytes.
const MAX_SIZE: usize = 128;

const fn words_of<T>() -> usize {
    const { assert!(size_of::<T>().is_multiple_of(WORD) && size_of::<T>() <= MAX_SIZE) }
    size_of::<T>() / WORD
}
