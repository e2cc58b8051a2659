//! Slot tables: words in chunks that are written, then published, and never changed.

use std::{fmt, sync::Arc};

use lb_common::abi::slot::{SlotWord, TABLE_HEAD, TableRef, TableShape};

use super::raw::{Mapping, MappingMut};

/// What a table was built from, as a digest. It stands in the table's head, so that a restarted daemon recognises its
/// tables without building them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName(pub [u64; 2]);

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// A table to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewTable {
    /// Where it goes: words that no published group names, in a chunk that exists.
    pub at: TableRef,
    pub name: TableName,
    pub shape: TableShape,
}

impl NewTable {
    /// Writes the table into its chunk. `fill` sets the list of each slot, in any order.
    pub(super) fn write(
        &self,
        chunk: &MappingMut,
        first: usize,
        fill: impl FnOnce(&mut dyn FnMut(u32, SlotWord)),
    ) {
        let head = first - TABLE_HEAD as usize;
        chunk.store(head + 2, 0);
        fill(&mut |slot, list| chunk.store(first + slot as usize, list.0));
        let list = |slot| SlotWord(chunk.load(first + slot as usize).unwrap_or(0));
        let owners = first + self.shape.slots as usize;
        for (index, word) in self.shape.owners(list).enumerate() {
            chunk.store(owners + index, word);
        }
        chunk.store(head, self.name.0[0]);
        chunk.store(head + 1, self.name.0[1]);
        chunk.store(head + 2, self.shape.head_word());
    }
}

/// A published slot table, in memory.
pub struct SlotTable {
    chunk: Arc<dyn AsRef<Mapping> + Send + Sync>,
    /// Word of the chunk with the first list.
    first: usize,
    at: TableRef,
    shape: TableShape,
}

impl fmt::Debug for SlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SlotTable");
        debug.field("at", &self.at).field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl SlotTable {
    /// A table in a chunk, which must hold all its words: [`first_list`].
    pub(super) fn new(
        chunk: Arc<dyn AsRef<Mapping> + Send + Sync>,
        first: usize,
        at: TableRef,
        shape: TableShape,
    ) -> Self {
        Self { chunk, first, at, shape }
    }

    fn load(&self, index: u32) -> Option<u64> {
        (*self.chunk).as_ref().load(self.first + index as usize)
    }

    /// Where it is.
    pub fn at(&self) -> TableRef {
        self.at
    }

    /// What it was built from; `None` if it is not whole, or not of the shape that its group says.
    pub fn name(&self) -> Option<TableName> {
        let words = (*self.chunk).as_ref();
        let head = self.first - TABLE_HEAD as usize;
        let whole = words.load(head + 2)? == self.shape.head_word();
        let name = TableName([words.load(head)?, words.load(head + 1)?]);
        whole.then_some(name)
    }

    /// A slot's list.
    pub fn slot(&self, index: u32) -> Option<SlotWord> {
        let word = || self.load(index);
        (index < self.shape.slots).then(word).flatten().map(SlotWord)
    }

    /// The rank of a slot's owner, from the compact array that packets read.
    pub fn owner(&self, slot: u32) -> Option<u16> {
        let word = || self.load(self.shape.owner_index(slot));
        let word = (slot < self.shape.slots).then(word).flatten();
        word.map(|word| self.shape.owner(word, slot))
    }

    pub fn slots(&self) -> impl ExactSizeIterator<Item = SlotWord> + '_ {
        let words = (*self.chunk).as_ref();
        words.range(self.first, self.shape.slots as usize).map(SlotWord)
    }
}

/// Word of its chunk with a table's first list; `None` if its words are not all in one chunk, behind the chunk's own.
pub(super) fn first_list(at: TableRef, shape: TableShape, chunk_words: usize) -> Option<usize> {
    let first = at.word(0).1 as usize;
    let end = first.checked_add((shape.words() - TABLE_HEAD) as usize)?;
    (first > TABLE_HEAD as usize && end <= chunk_words).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lies_in_one_chunk_behind_its_first_word() {
        const CHUNK: u32 = 1 << 19;
        let shape = TableShape { slots: 31, members: 3 };
        // 31 lists, and two words of owners.
        let place = |word| first_list(TableRef(word), shape, CHUNK as usize);
        assert_eq!(place(4), Some(4));
        assert_eq!(place(3 * CHUNK + 4), Some(4));
        assert_eq!(place(3 * CHUNK - 33), Some(CHUNK as usize - 33));
        for outside in [0, 3, 3 * CHUNK - 32, 3 * CHUNK - 1, 3 * CHUNK, 3 * CHUNK + 3] {
            assert_eq!(place(outside), None, "{outside}");
        }
        for slots in [CHUNK, u32::MAX] {
            let wrong = TableShape { slots, members: u32::MAX };
            assert_eq!(first_list(TableRef(4), wrong, CHUNK as usize), None);
        }
    }
}
