//! Kernel memory of the packet path's maps.
//!
//! All maps except slot tables get their size when the daemon starts, whatever is configured. Slot tables stand in
//! chunks, of which the first is always there. During a remap the tables from before and after exist together.

use lb_common::abi::{limits::CHUNK_WORDS, names};

/// The memory of a chunk is a whole number of pages.
const PAGE: u64 = 4096;

/// Bytes of a chunk: the kernel's head of the map and its words, which are on separate pages because the daemon maps the
/// words.
pub const CHUNK_BYTES: u64 = PAGE + 8 * CHUNK_WORDS as u64;

/// Chunks that slot tables take. 0 and 1 are the same, because the first chunk is always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Once the change has settled.
    pub chunks: u32,
    /// While the tables from before and after the change exist.
    pub peak: u32,
}

/// Memory of the maps as created, and the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of each map by name; that of slot tables with the first chunk.
    pub made: Vec<(String, u64)>,
    /// Maximum for all maps; `None`: no limit.
    pub limit: Option<u64>,
}

/// Memory that a configuration needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of each map by name; chunks count for the array that holds them.
    pub maps: Vec<(String, u64)>,
    /// Of all maps after the remap.
    pub needed: u64,
    /// Of all maps during the remap.
    pub peak: u64,
    /// Maximum for all maps; `None`: no limit.
    pub limit: Option<u64>,
}

impl Budget {
    /// The memory of all maps with a configuration's tables.
    pub fn with(&self, tables: &TableMemory) -> Memory {
        let further = |chunks: u32| u64::from(chunks.saturating_sub(1)) * CHUNK_BYTES;
        let of = |name: &str| if name == names::TABLES { further(tables.chunks) } else { 0 };
        let maps = self.made.iter().map(|(name, bytes)| (name.clone(), bytes + of(name)));
        let made: u64 = self.made.iter().map(|(_, bytes)| bytes).sum();
        Memory {
            maps: maps.collect(),
            needed: made + further(tables.chunks),
            peak: made + further(tables.peak),
            limit: self.limit,
        }
    }
}

impl Memory {
    /// Whether the peak exceeds the limit.
    pub fn exceeds(&self) -> bool {
        self.limit.is_some_and(|limit| self.peak > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_counts_until_it_has_gone() {
        const CHUNK: u64 = 4_198_400;
        let made = vec![("ARRAYS".into(), 100), ("TABLES".into(), CHUNK + 10)];
        let budget = Budget { made, limit: Some(5 * CHUNK) };
        let memory = budget.with(&TableMemory { chunks: 2, peak: 4 });
        let maps = [("ARRAYS", 100), ("TABLES", 2 * CHUNK + 10)];
        assert_eq!(memory.maps, maps.map(|(name, bytes)| (name.to_owned(), bytes)));
        assert_eq!((memory.needed, memory.peak), (2 * CHUNK + 110, 4 * CHUNK + 110));
        assert!(!memory.exceeds());
        let tight = Memory { limit: Some(4 * CHUNK + 109), ..memory.clone() };
        assert!(tight.exceeds());
        assert!(!Memory { limit: None, ..memory }.exceeds());
        // The first chunk is there in any case.
        for chunks in [0, 1] {
            let memory = budget.with(&TableMemory { chunks, peak: chunks });
            assert_eq!((memory.needed, memory.peak), (CHUNK + 110, CHUNK + 110));
        }
    }
}
