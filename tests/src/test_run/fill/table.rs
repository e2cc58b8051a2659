//! Slot tables, as large as the daemon would make them, one behind the other in chunks.

use std::net::IpAddr;

use anyhow::Result;
use aya::{
    Ebpf,
    maps::{ArrayOfMaps, MapData, MapType},
};
use lb_common::abi::{
    limits::{CHUNK_WORDS, DEFAULT_SLOTS},
    names,
    slot::{SlotWord, TABLE_HEAD, TableShape},
};
use lb_maps::MappingMut;
use lb_model::maglev;

use super::map_mut;

/// `BPF_F_MMAPABLE`, which chunks have.
const MMAPABLE: u32 = 1 << 10;

/// The chunks of the tables so far.
#[derive(Default)]
pub(super) struct Chunks {
    chunks: Vec<(MapData, MappingMut)>,
    /// First free word of the last chunk.
    free: u32,
}

/// Slots of a table of ten equal members, and of the shared pool's.
fn slots(members: usize) -> u32 {
    if members <= 10 { 1_009 } else { DEFAULT_SLOTS }
}

impl Chunks {
    /// Makes the table of equal members. Answers how a group names it and how many slots it has.
    pub(super) fn make(&mut self, members: &[IpAddr]) -> Result<(u32, u32)> {
        let shape = TableShape { slots: slots(members.len()), members: members.len() as u32 };
        let members: Vec<_> = members
            .iter()
            .map(|&address| maglev::Member { key: address.into(), weight: 1 })
            .collect();
        let table = maglev::build(&members, shape.slots)?;
        if self.chunks.is_empty() || self.free + shape.words() > CHUNK_WORDS {
            let kind = MapType::Array as u32;
            let chunk = aya_obj::Map::new_from_params(kind, 4, 8, CHUNK_WORDS, MMAPABLE);
            let chunk = MapData::create(chunk, "bench_chunk", None)?;
            // By memory: a call for each word of a thousand tables would take a minute.
            let memory = MappingMut::new(chunk.fd(), CHUNK_WORDS as usize)?;
            self.chunks.push((chunk, memory));
            self.free = 1;
        }
        let (chunk, first) = (self.chunks.len() as u32 - 1, self.free + TABLE_HEAD);
        let list = |slot: u32| SlotWord(table.words()[slot as usize]);
        let words = table.words().iter().copied().chain(shape.owners(list));
        for (word, value) in (first as usize..).zip(words) {
            self.chunks[chunk as usize].1.store(word, value);
        }
        self.free += shape.words();
        Ok((chunk * CHUNK_WORDS + first, shape.slots))
    }

    /// Puts the chunks where packets find them.
    pub(super) fn publish(self, balancer: &mut Ebpf) -> Result<()> {
        let mut chunks: ArrayOfMaps<_, MapData> =
            ArrayOfMaps::try_from(map_mut(balancer, names::TABLES)?)?;
        for (index, (chunk, _)) in (0..).zip(&self.chunks) {
            chunks.set(index, chunk, 0)?;
        }
        Ok(())
    }
}
