//! Typed views of the memory of array maps.

use std::{io, marker::PhantomData, os::fd::AsFd};

use lb_common::abi::pod::{Pod, bytes_of, from_bytes};

use super::raw::{Mapping, MappingMut};

const WORD: usize = size_of::<u64>();

/// An array map of `T` (a whole number of 64-bit words), shared with the kernel.
///
/// Values are read and written word by word: while another side writes a value, only single words are consistent.
#[derive(Debug)]
pub struct ArrayView<T, M = Mapping> {
    memory: M,
    entries: u32,
    values: PhantomData<T>,
}

impl<T: Pod> ArrayView<T> {
    /// Maps an array of `entries` values for reading.
    ///
    /// # Errors
    /// As [`Mapping::new`].
    pub fn new(map: impl AsFd, entries: u32) -> io::Result<Self> {
        Ok(Self::over(Mapping::new(map, words_of::<T>() * entries as usize)?, entries))
    }
}

impl<T: Pod> ArrayView<T, MappingMut> {
    /// Maps an array of `entries` values for reading and writing.
    ///
    /// # Errors
    /// As [`MappingMut::new`].
    pub fn new(map: impl AsFd, entries: u32) -> io::Result<Self> {
        Ok(Self::over(MappingMut::new(map, words_of::<T>() * entries as usize)?, entries))
    }

    /// Writes a value word by word. Only for values that nothing names yet, or that are a single word.
    ///
    /// # Panics
    /// If `index` is not below the number of entries.
    pub fn set(&self, index: u32, value: &T) {
        let first = index as usize * words_of::<T>();
        for (i, chunk) in bytes_of(value).chunks_exact(WORD).enumerate() {
            let mut word = [0; WORD];
            word.copy_from_slice(chunk);
            self.memory.store(first + i, u64::from_ne_bytes(word));
        }
    }

    /// Writes one word of a value by one store; `word` counts from the value's start.
    ///
    /// # Panics
    /// If `index` is not below the number of entries.
    pub fn set_word(&self, index: u32, word: usize, value: u64) {
        self.memory.store(index as usize * words_of::<T>() + word, value);
    }
}

impl<T: Pod, M: AsRef<Mapping>> ArrayView<T, M> {
    fn over(memory: M, entries: u32) -> Self {
        Self { memory, entries, values: PhantomData }
    }

    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// A value; `None` where `index` is out of range.
    pub fn get(&self, index: u32) -> Option<T> {
        let words = words_of::<T>();
        let first = index as usize * words;
        let mut bytes = [0; MAX_SIZE];
        for (i, chunk) in bytes.chunks_exact_mut(WORD).take(words).enumerate() {
            chunk.copy_from_slice(&self.memory.as_ref().load(first + i)?.to_ne_bytes());
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
