//! Free words of the chunks that slot tables stand in.

use std::collections::BTreeSet;

use lb_common::abi::limits::CHUNK_WORDS;

use super::free_space::{Extent, Extents, Full, FullMap};

/// No setting sizes them.
const TABLES: FullMap = FullMap { what: "slot tables", size: None };

/// The chunks that there are, or are to be, and what of them is free. The first one stays when it is empty.
#[derive(Clone, Debug)]
pub(super) struct TableSpace {
    /// Words count through all chunks. The first word of each is never free, so no range leaves its chunk.
    free: Extents,
    chunks: BTreeSet<u32>,
    /// Chunks that `TABLES` has room for.
    most: u32,
}

impl TableSpace {
    /// All of these chunks is free.
    pub(super) fn new(most: u32, chunks: &BTreeSet<u32>) -> Self {
        let mut space = Self { free: Extents::new(TABLES, 0), chunks: BTreeSet::new(), most };
        chunks.iter().for_each(|chunk| space.add(*chunk));
        space
    }

    /// The chunks that tables stand in, and the first one.
    pub(super) fn chunks(&self) -> &BTreeSet<u32> {
        &self.chunks
    }

    /// Takes words that a table has already. False, without any change, if a part of them is taken.
    pub(super) fn reserve(&mut self, extent: Extent) -> bool {
        self.free.reserve(extent)
    }

    /// Words of one chunk: of the smallest range of free ones that fits, or else of a new chunk.
    pub(super) fn allocate(&mut self, words: u32) -> Result<Extent, Full> {
        let full = match self.free.allocate(words) {
            Err(full) if words <= of_chunk(0).length => full,
            allocated => return allocated,
        };
        let chunk = (0..self.most).find(|chunk| !self.chunks.contains(chunk)).ok_or(full)?;
        self.add(chunk);
        self.free.allocate(words)
    }

    pub(super) fn free(&mut self, extent: Extent) {
        self.free.free(extent);
    }

    /// Gives up the chunks but the first in which all is free, and returns their indices.
    pub(super) fn remove_empty(&mut self) -> Vec<u32> {
        let Self { free, chunks, .. } = self;
        let empty = chunks.iter().skip(1).filter(|chunk| free.is_range(of_chunk(**chunk)));
        let empty: Vec<u32> = empty.copied().collect();
        for chunk in &empty {
            self.free.reserve(of_chunk(*chunk));
            self.chunks.remove(chunk);
        }
        empty
    }

    fn add(&mut self, chunk: u32) {
        if self.chunks.insert(chunk) {
            self.free.free(of_chunk(chunk));
        }
    }
}

/// What tables have of a chunk: all words but its first.
const fn of_chunk(chunk: u32) -> Extent {
    Extent { start: chunk * CHUNK_WORDS + 1, length: CHUNK_WORDS - 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    const MOST: u32 = 5;
    /// Words of a chunk for tables.
    const ROOM: u32 = 524_287;

    fn space() -> TableSpace {
        TableSpace::new(MOST, &[0].into())
    }

    /// By chunk, the lengths of the runs of words that no table has. Panics where tables overlap or a table leaves its
    /// chunk.
    fn free_runs(tables: &[Extent], chunks: &BTreeSet<u32>) -> BTreeMap<u32, Vec<u32>> {
        let mut by_chunk: BTreeMap<u32, Vec<Extent>> =
            chunks.iter().map(|chunk| (*chunk, Vec::new())).collect();
        for table in tables {
            by_chunk.get_mut(&(table.start >> 19)).expect("a chunk of the set").push(*table);
        }
        let runs = by_chunk.into_iter().map(|(chunk, mut tables)| {
            tables.sort();
            let (mut next, end) = ((chunk << 19) + 1, (chunk << 19) + 524_288);
            let mut runs = Vec::new();
            for table in tables {
                assert!(table.start >= next, "{table:?} overlaps");
                runs.push(table.start - next);
                next = table.start + table.length;
            }
            assert!(next <= end, "a table leaves chunk {chunk}");
            runs.push(end - next);
            (chunk, runs)
        });
        runs.collect()
    }

    fn table_words() -> impl Strategy<Value = u32> {
        prop_oneof![1..2_000_u32, 70_000..90_000_u32, 200_000..=ROOM]
    }

    proptest! {
        #[test]
        fn tables_never_overlap_and_chunks_come_and_go_by_need(
            steps in vec((table_words(), any::<prop::sample::Index>(), 0..5_u8), 1..150),
        ) {
            let mut space = space();
            let mut tables: Vec<Extent> = Vec::new();
            for (words, which, kind) in steps {
                let runs = free_runs(&tables, space.chunks());
                let free = runs.values().flatten().copied();
                match kind {
                    0 | 1 if !tables.is_empty() => {
                        space.free(tables.swap_remove(which.index(tables.len())));
                    }
                    2 => {
                        let empty = space.remove_empty();
                        let expected: Vec<u32> = runs
                            .iter()
                            .filter(|(chunk, runs)| **chunk != 0 && **runs == [ROOM])
                            .map(|(chunk, _)| *chunk)
                            .collect();
                        prop_assert_eq!(&empty, &expected);
                        let left: BTreeSet<u32> =
                            runs.keys().copied().filter(|chunk| !empty.contains(chunk)).collect();
                        prop_assert_eq!(space.chunks(), &left);
                    }
                    _ => {
                        let before = space.chunks().clone();
                        let fitting = free.clone().filter(|run| *run >= words).min();
                        match space.allocate(words) {
                            Ok(table) => {
                                prop_assert_eq!(table.length, words);
                                let chunk = table.start >> 19;
                                if let Some(run) = fitting {
                                    prop_assert_eq!(space.chunks(), &before);
                                    tables.push(table);
                                    let after = free_runs(&tables, space.chunks());
                                    let split = after[&chunk].iter().sum::<u32>() + words;
                                    prop_assert_eq!(split, runs[&chunk].iter().sum::<u32>());
                                    prop_assert!(runs[&chunk].contains(&run));
                                } else {
                                    prop_assert!(!before.contains(&chunk));
                                    prop_assert_eq!(space.chunks().len(), before.len() + 1);
                                    tables.push(table);
                                }
                            }
                            Err(full) => {
                                let largest = free.max().unwrap_or(0);
                                prop_assert!(before.len() as u32 == MOST && largest < words);
                                prop_assert_eq!((full.needed, full.free), (words, largest));
                            }
                        }
                    }
                }
                free_runs(&tables, space.chunks());
            }
            // What is read from the maps gives the same.
            let mut read = TableSpace::new(MOST, space.chunks());
            for table in &tables {
                prop_assert!(read.reserve(*table));
                prop_assert!(!read.reserve(*table));
            }
            for table in tables {
                read.free(table);
                space.free(table);
            }
            for mut space in [read, space] {
                space.remove_empty();
                prop_assert_eq!(space.chunks(), &BTreeSet::from([0]));
                prop_assert_eq!(space.allocate(ROOM), Ok(Extent { start: 1, length: ROOM }));
            }
        }
    }

    #[test]
    fn a_table_larger_than_a_chunk_takes_none() {
        let mut space = space();
        let full = space.allocate(ROOM + 1).unwrap_err().to_string();
        assert_eq!(
            full,
            "slot tables: 524288 contiguous entries are needed, the largest free range has 524287"
        );
        assert_eq!(space.chunks(), &BTreeSet::from([0]));
    }
}
