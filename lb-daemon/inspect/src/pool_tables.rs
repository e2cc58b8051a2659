//! Who owns the slots of pools' tables, and whom they go to now: what the Table call and `spillway table`
//! are made of. It works with the daemon dead.

use std::{borrow::Cow, path::Path};

use lb_common::abi::{
    member::{Accepts, MemberWord},
    next_hop::NextHopWord,
    slot::TableRef,
    slot::{RANKS_PER_SLOT, SlotWord},
};
use lb_maps::{MapsError, PinnedMaps, PoolView, directory::Directory};
use lb_model::maglev;
use serde::Serialize;

use crate::names::{self, Names, NoPool, interface_words};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolTable {
    /// Name.
    pub pool: String,
    /// In the order in which they are asked; none: the pool has no backends.
    pub regions: Vec<GroupTable>,
}

/// Why there are no tables to show.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// No published pool has the name.
    #[error(transparent)]
    NoPool(#[from] NoPool),
    /// The maps cannot be read.
    #[error(transparent)]
    Maps(#[from] MapsError),
}

/// Reads the tables of a pool, or of all by name, by the maps pinned in a BPF file system and the names in
/// a state directory, with the generation of the names.
///
/// # Errors
/// As [`read`], and what [`PinnedMaps::open`] says.
pub fn read_pinned(
    bpffs: &Path,
    state_directory: &Path,
    pool: Option<&str>,
) -> Result<(u64, Vec<PoolTable>), TablesError> {
    let names = Directory::read(state_directory).map(Names).unwrap_or_default();
    let maps = PinnedMaps::open(bpffs)?;
    Ok((names.0.generation, read(&maps, &names, pool)?))
}

/// Reads the tables of a pool, or of all by name, by maps that are open.
///
/// # Errors
/// No published pool has the name, or the maps cannot be read.
pub fn read(
    maps: &PinnedMaps,
    names: &Names,
    pool: Option<&str>,
) -> Result<Vec<PoolTable>, TablesError> {
    let mut pools = Vec::new();
    for index in names.pools_named(maps, pool)? {
        let view = maps.pool_view(index)?;
        let regions = view.map_or_else(Vec::new, |view| groups(maps, names, &view));
        pools.push(PoolTable { pool: names.pool(index), regions });
    }
    Ok(pools)
}

fn groups(maps: &PinnedMaps, names: &Names, view: &PoolView) -> Vec<GroupTable> {
    let group = |(_, group): &(u32, lb_common::abi::pool::Group)| {
        let head = group.head;
        let table = view.tables.get(&TableRef(head.table));
        let member = |rank| {
            let word = maps.member(head.members.saturating_add(rank))?;
            let hop = maps.next_hop(u32::from(word.next_hop()));
            let backend = view.backends.get(&word.backend());
            Some(Member {
                address: backend.map_or_else(|| "?".into(), names::address),
                word,
                hop,
                interface: names.interface(hop.interface()),
            })
        };
        GroupTable::new(&Source {
            region: names.region(group.region),
            words: table.map_or_else(Vec::new, |t| t.slots().map(|word| word.0).collect()),
            members: (0..head.member_count).filter_map(member).collect(),
        })
    };
    view.groups.iter().map(group).collect()
}

/// What the maps say of a group.
#[derive(Clone, Debug)]
pub struct Source {
    pub region: String,
    /// The slots' lists.
    pub words: Vec<u64>,
    /// Members by rank.
    pub members: Vec<Member>,
}

/// What the maps say of a member.
#[derive(Clone, Debug)]
pub struct Member {
    pub address: String,
    pub word: MemberWord,
    /// Its next hop.
    pub hop: NextHopWord,
    /// Name of the interface that the next hop is on, where it is known.
    pub interface: Option<String>,
}

/// A pool's backends in one region, and their slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupTable {
    pub region: String,
    /// Slots of the table.
    pub slots: u32,
    /// Of the table: equal on all balancers with the same members, weights and size.
    pub checksum: String,
    /// Slots whose lists hold no backend for a new connection now; these go by other slots' lists.
    pub slots_unserved_now: u32,
    /// Its backends.
    pub members: Vec<MemberSlots>,
}

/// A backend's part of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberSlots {
    /// Address.
    pub backend: String,
    pub slots: u32,
    /// Slots whose lists give a new connection to it now.
    pub slots_now: u32,
    /// `up`, `unfit` or `dead`.
    pub accepts: Cow<'static, str>,
    /// `null`: unresolved; it takes nothing.
    pub next_hop: Option<String>,
}

impl GroupTable {
    /// Counts the slots of a group.
    pub fn new(source: &Source) -> Self {
        let shares = maglev::shares(&source.words, source.members.len());
        let usable: Vec<_> = source
            .members
            .iter()
            .map(|member| member.word.accepts() == Accepts::All && member.hop.is_resolved())
            .collect();
        let mut now = vec![0; source.members.len()];
        let mut unserved = 0;
        for &word in &source.words {
            match first_usable(SlotWord(word), &usable) {
                Some(rank) => now[rank] += 1,
                None => unserved += 1,
            }
        }
        let counted = source.members.iter().zip(shares).zip(now);
        let members = counted.map(|((member, slots), slots_now)| MemberSlots {
            backend: member.address.clone(),
            slots,
            slots_now,
            accepts: member.word.accepts().name().into(),
            next_hop: next_hop(member),
        });
        Self {
            region: source.region.clone(),
            slots: source.words.len() as u32,
            checksum: format!("{:016x}", maglev::checksum(&source.words)),
            slots_unserved_now: unserved,
            members: members.collect(),
        }
    }
}

/// The first rank of a list that may have a new connection; slow start aside.
fn first_usable(word: SlotWord, usable: &[bool]) -> Option<usize> {
    (0..RANKS_PER_SLOT as u32)
        .map(|place| usize::from(word.rank(place)))
        .find(|&rank| usable.get(rank).copied().unwrap_or(false))
}

fn next_hop(member: &Member) -> Option<String> {
    let mac = member.hop.mac().map(|byte| format!("{byte:02x}")).join(":");
    let interface = || interface_words(member.interface.clone(), member.hop.interface());
    member.hop.is_resolved().then(|| format!("{mac} on {}", interface()))
}
