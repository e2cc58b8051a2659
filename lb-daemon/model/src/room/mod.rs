//! Whether the packet path's maps have room for a configuration.
//!
//! Groups and members of a new generation are written beside those of the old one, and the maps have room for both. So
//! an acknowledged generation can always be published. During a remap there is a third version and less may fit, so the
//! reconciler checks that before anything is acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_common::abi::{
    limits::{CHUNK_WORDS, MAX_CHUNKS},
    sizes::{MapSizes, Size},
    slot::TableShape,
};

use crate::{Configuration, Name, Pool, Service};

/// What makes other sizes take effect while maps are pinned, and what it costs.
pub const HOW_TO_RESIZE: &str = "stop the daemon, run `spillway detach` and start the daemon again: until then packets are \
                                 not balanced, and displaced connections break";

const MIB: u64 = 1 << 20;
/// A quarter of all chunks: where tables fill more than half of a chunk, each takes a whole one.
const MOST_TABLE_MIB: u64 = MAX_CHUNKS as u64 / 4 * CHUNK_WORDS as u64 * 8 / MIB;

/// A configuration has more of something than the maps have room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    #[error("{number} {} exceed the {most} that the setting `{}` allows", .size.what(), .size.setting())]
    Objects { size: Size, number: usize, most: u32 },
    #[error("{mib} MiB of slot tables exceed the limit of {most}")]
    Tables { mib: u64, most: u64 },
}

impl TooMany {
    /// What the operator can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Objects { size, number, .. } if *number <= size.most() as usize => format!(
                "set `{}` to {number} or more, at most {}; then {HOW_TO_RESIZE}",
                size.setting(),
                size.most()
            ),
            Self::Objects { size, .. } => {
                format!(
                    "`{}` may be {} at most: serve a part of the configuration by other balancers",
                    size.setting(),
                    size.most()
                )
            }
            Self::Tables { .. } => "give pools the same members, weights and slots".into(),
        }
    }
}

/// How much of each size a configuration takes: all but the tables of connections.
fn used(configuration: &Configuration, groups: &[TableShape]) -> [(Size, usize); 7] {
    let pools = configuration.pools.values();
    let members = pools.clone().map(|pool| pool.backends.len()).sum();
    let backends = distinct(pools.clone().flat_map(|pool| pool.backends.keys()).collect());
    let limited = pools.flat_map(|pool| pool.backends.values());
    let limited = limited.filter(|backend| backend.max_connection_rate.is_some()).count();
    let ports = configuration.services.values().map(Service::keys).sum();
    [
        (Size::Services, configuration.services.len()),
        (Size::Ports, ports),
        (Size::Pools, configuration.pools.len()),
        (Size::Groups, groups.len()),
        (Size::Backends, backends),
        (Size::PoolBackends, members),
        (Size::LimitedBackends, limited),
    ]
}

/// Sorts, because the addresses come in sorted runs, which takes less than a set.
fn distinct(mut addresses: Vec<&IpAddr>) -> usize {
    addresses.sort();
    addresses.dedup();
    addresses.len()
}

/// Refuses configurations for which the maps have no room.
///
/// # Errors
/// [`TooMany`] says of what.
pub fn fits(configuration: &Configuration, sizes: &MapSizes) -> Result<(), TooMany> {
    let groups: Vec<_> = configuration.pools.values().flat_map(|pool| groups(pool)).collect();
    for (size, number) in used(configuration, &groups) {
        let most = sizes.get(size);
        if number > most as usize {
            return Err(TooMany::Objects { size, number, most });
        }
    }
    let mib = |words: u64| (8 * words).div_ceil(MIB);
    if mib(groups.iter().map(|table| u64::from(table.words())).sum()) <= MOST_TABLE_MIB {
        return Ok(());
    }
    // Pools with the same members share tables.
    let tables: BTreeSet<_> = (configuration.pools.values())
        .flat_map(|pool| tables(pool).into_values().map(|members| (pool.slots, members)))
        .collect();
    let words = |(slots, members): &(u32, Vec<_>)| {
        u64::from(TableShape { slots: *slots, members: members.len() as u32 }.words())
    };
    match mib(tables.iter().map(words).sum()) {
        mib if mib > MOST_TABLE_MIB => Err(TooMany::Tables { mib, most: MOST_TABLE_MIB }),
        _ => Ok(()),
    }
}

/// The tables of a pool's groups, which are few.
fn groups(pool: &Pool) -> Vec<TableShape> {
    let mut groups: Vec<(&Name, TableShape)> = Vec::new();
    for backend in pool.backends.values() {
        match groups.iter_mut().find(|(region, _)| *region == &backend.region) {
            Some((_, table)) => table.members += 1,
            None => {
                groups.push((&backend.region, TableShape { slots: pool.slots, members: 1 }));
            }
        }
    }
    groups.into_iter().map(|(_, table)| table).collect()
}

/// What the table of each group of a pool is made of.
fn tables(pool: &Pool) -> BTreeMap<&Name, Vec<(&IpAddr, u32)>> {
    let mut tables: BTreeMap<&Name, Vec<_>> = BTreeMap::new();
    for (address, backend) in &pool.backends {
        tables.entry(&backend.region).or_default().push((address, backend.weight));
    }
    tables
}

#[cfg(test)]
mod tests;
