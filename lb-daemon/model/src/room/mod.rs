//! Whether the packet path's maps have room for a configuration.
//!
//! Groups and members of a new generation are written beside those of the old one, and the maps have room for both. So
//! an acknowledged generation can always be published. During a remap there is a third version and less may fit, so the
//! reconciler checks that before anything is acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{
    limits::MAX_TABLES,
    sizes::{MapSizes, Size},
};

use crate::{Configuration, Name, Pool, Service};

/// What makes other sizes take effect while maps are pinned, and what it costs.
pub const HOW_TO_RESIZE: &str = "stop the daemon, run `spillway detach` and start the daemon again: until then packets are \
                                 not balanced, and displaced connections break";

/// A configuration has more of something than the maps have room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    #[error("{number} {} exceed the {most} that the setting `{}` allows", .size.what(), .size.setting())]
    Objects { size: Size, number: usize, most: u32 },
    #[error("{number} different tables exceed the limit of {most}")]
    Tables { number: usize, most: u32 },
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
                    "`{}` may be {} at most: use several balancers",
                    size.setting(),
                    size.most()
                )
            }
            Self::Tables { .. } => "give pools the same members, weights and slots".into(),
        }
    }
}

/// How much of each size a configuration takes: all but the tables of connections.
pub fn used(configuration: &Configuration) -> [(Size, usize); 7] {
    let pools = configuration.pools.values();
    let backends: BTreeSet<_> = pools.clone().flat_map(|pool| pool.backends.keys()).collect();
    let groups = pools.clone().map(|pool| groups(pool).len()).sum();
    let members = pools.clone().map(|pool| pool.backends.len()).sum();
    let limited = pools.flat_map(|pool| pool.backends.values());
    let limited = limited.filter(|backend| backend.max_connection_rate.is_some()).count();
    let ports = configuration.services.values().map(Service::keys).sum();
    [
        (Size::Services, configuration.services.len()),
        (Size::Ports, ports),
        (Size::Pools, configuration.pools.len()),
        (Size::Groups, groups),
        (Size::Backends, backends.len()),
        (Size::PoolBackends, members),
        (Size::LimitedBackends, limited),
    ]
}

/// Refuses configurations for which the maps have no room.
///
/// # Errors
/// [`TooMany`] says of what.
pub fn fits(configuration: &Configuration, sizes: &MapSizes) -> Result<(), TooMany> {
    for (size, number) in used(configuration) {
        let most = sizes.get(size);
        if number > most as usize {
            return Err(TooMany::Objects { size, number, most });
        }
    }
    let tables: BTreeSet<_> = (configuration.pools.values())
        .flat_map(|pool| groups(pool).into_values().map(|members| (pool.slots, members)))
        .collect();
    let (number, most) = (tables.len(), MAX_TABLES / 2);
    if number > most as usize {
        return Err(TooMany::Tables { number, most });
    }
    Ok(())
}

/// What the table of each group of a pool is made of: pools with the same share it.
fn groups(pool: &Pool) -> BTreeMap<&Name, Vec<(&std::net::IpAddr, u32)>> {
    let mut groups: BTreeMap<&Name, Vec<_>> = BTreeMap::new();
    for (address, backend) in &pool.backends {
        groups.entry(&backend.region).or_default().push((address, backend.weight));
    }
    groups
}

#[cfg(test)]
mod tests;
