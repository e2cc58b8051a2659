//! Who owns the slots of pools' tables, and whom they go to now: what the Table call and `spillway table`
//! are made of. It works with the daemon dead.

mod group;

use std::path::Path;

use lb_common::abi::slot::TableRef;
use serde::Serialize;

pub use group::{GroupTable, Member, MemberSlots, Source};

use crate::names::{self, Names, NoPool};
use lb_maps::{MapsError, PinnedMaps, PoolView, directory::Directory};

/// The tables of a pool.
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
pub fn of_pins(
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
