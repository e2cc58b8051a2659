//! A slot table, as large as the daemon would make it.

use std::net::IpAddr;

use anyhow::Result;
use aya::{
    Ebpf,
    maps::{ArrayOfMaps, MapData, MapType},
};
use lb_common::abi::{
    limits::DEFAULT_SLOTS,
    names,
    slot::{OwnersWord, TableRef, table_words},
};
use lb_maps::MappingMut;
use lb_model::maglev;

use super::map_mut;

/// `BPF_F_MMAPABLE`, which the inner arrays of `TABLES` have.
const MMAPABLE: u32 = 1 << 10;

/// Makes the table of equal members and puts it under a number. Answers how a group names it and how many slots it has.
pub(super) fn make(balancer: &mut Ebpf, number: u32, members: &[IpAddr]) -> Result<(u32, u32)> {
    let slots = DEFAULT_SLOTS;
    let members: Vec<_> =
        members.iter().map(|&address| maglev::Member { key: address.into(), weight: 1 }).collect();
    let table = maglev::build(&members, slots)?;
    let words = table_words(slots);
    let shape = aya_obj::Map::new_from_params(MapType::Array as u32, 4, 8, words, MMAPABLE);
    let inner = MapData::create(shape, "bench_table", None)?;
    // By memory: a call for each word of a thousand tables would take a minute.
    let memory = MappingMut::new(inner.fd(), words as usize)?;
    let all = table.words().iter().copied().chain(OwnersWord::from_lists(table.words()));
    for (index, word) in all.enumerate() {
        memory.store(index, word);
    }
    let mut tables: ArrayOfMaps<_, MapData> =
        ArrayOfMaps::try_from(map_mut(balancer, names::TABLES)?)?;
    tables.set(number, &inner, 0)?;
    Ok((TableRef::default_size(number).0, slots))
}
