use std::io;

use aya::maps::MapData;
use lb_common::abi::slot::{OwnersWord, SlotWord, table_words};

use super::raw::Mapping;

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

    /// The rank of a slot's owner, from the place where packets find it.
    pub fn owner(&self, slot: u32) -> Option<u16> {
        let word = || self.words.load(OwnersWord::index(self.slots, slot) as usize);
        (slot < self.slots).then(word).flatten().map(|word| OwnersWord(word).owner(slot))
    }

    /// All slots.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = SlotWord> + '_ {
        self.words.iter().take(self.slots as usize).map(SlotWord)
    }
}
