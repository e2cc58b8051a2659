use std::{
    io,
    ops::Deref,
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicU64, Ordering, fence},
};

use lb_common::word::Word;
use memmap2::{MmapOptions, MmapRaw};

/// The memory of an array map, shared with the kernel, as 64-bit words that can be read.
///
/// A map's memory never moves or shrinks while it is mapped, also when the map itself is gone from
/// every table, pin and program.
#[derive(Debug)]
pub struct Mapping {
    memory: MmapRaw,
    words: usize,
}

/// The memory of an array map as 64-bit words that can be read and written.
#[derive(Debug)]
pub struct MappingMut(Mapping);

impl Mapping {
    /// Maps the first `words` words of the array map behind `fd`.
    ///
    /// # Errors
    /// What mmap answers: the map has not that many words, or was made without `BPF_F_MMAPABLE`.
    pub fn new(fd: impl AsFd, words: usize) -> io::Result<Self> {
        let memory = options(words).map_raw_read_only(fd.as_fd().as_raw_fd())?;
        Ok(Self { memory, words })
    }

    /// Words in it.
    pub fn len(&self) -> usize {
        self.words
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// A word, read at once, and everything that was written before it was.
    pub fn load(&self, index: usize) -> Option<u64> {
        let word = self.cells().get(index)?.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        Some(word)
    }

    /// Up to `count` words from the index `first` on, each read at once.
    pub fn range(&self, first: usize, count: usize) -> impl ExactSizeIterator<Item = u64> + '_ {
        let cells = self.cells().get(first..).unwrap_or_default();
        cells[..count.min(cells.len())].iter().map(|cell| cell.load(Ordering::Relaxed))
    }

    fn cells(&self) -> &[AtomicU64] {
        let start = self.memory.as_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping is page-aligned and holds `words` words for as long as `self` lives;
        // the kernel and other processes may change them at any time, which atomics allow for. The
        // memory may be read-only: only relaxed loads are made of it unless it is a `MappingMut`.
        unsafe { std::slice::from_raw_parts(start, self.words) }
    }
}

impl MappingMut {
    /// Maps the first `words` words of the array map behind `fd`.
    ///
    /// # Errors
    /// What mmap answers: the map has not that many words, was made without `BPF_F_MMAPABLE`, or
    /// is frozen.
    pub fn new(fd: impl AsFd, words: usize) -> io::Result<Self> {
        let memory = options(words).map_raw(fd.as_fd().as_raw_fd())?;
        Ok(Self(Mapping { memory, words }))
    }

    /// Writes a word at once, after everything that was written before.
    ///
    /// # Panics
    /// Where `index` is not below [`Mapping::len`].
    pub fn store(&self, index: usize, word: u64) {
        self.cells()[index].store(word, Ordering::Release);
    }

    /// A word that packets write too.
    ///
    /// # Panics
    /// Where `index` is not below [`Mapping::len`].
    pub fn word(&self, index: usize) -> SharedWord<'_> {
        SharedWord(&self.cells()[index])
    }
}

/// A word that the daemon and packets change.
#[derive(Clone, Copy, Debug)]
pub struct SharedWord<'m>(&'m AtomicU64);

impl Word for SharedWord<'_> {
    fn load(self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn exchange(self, from: u64, to: u64) -> Result<(), u64> {
        self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).map(drop)
    }

    fn add(self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::SeqCst)
    }
}

impl Deref for MappingMut {
    type Target = Mapping;

    fn deref(&self) -> &Mapping {
        &self.0
    }
}

impl AsRef<Mapping> for Mapping {
    fn as_ref(&self) -> &Mapping {
        self
    }
}

impl AsRef<Mapping> for MappingMut {
    fn as_ref(&self) -> &Mapping {
        &self.0
    }
}

fn options(words: usize) -> MmapOptions {
    let mut options = MmapOptions::new();
    options.len(words * size_of::<u64>());
    options
}
