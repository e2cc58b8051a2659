//! Whether the packet path has room for a configuration.
//!
//! Tables, groups and members of a new generation are written beside those of the old one, so each
//! generation may have half of those maps: then an acknowledged generation can always be published. While
//! a change of home settles there is a third version, so then less may fit: the packet path is asked
//! before anything is acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{limits, meter::FIRST_METER};

use super::super::invalid::{Invalid, Place};
use crate::model::{Configuration, Name, Pool, Service};

// Index 0 of services, pools and backends is never given out.
const MOST_SERVICES: usize = limits::MAX_SERVICES as usize - 1;
const MOST_KEYS: usize = limits::MAX_SERVICE_KEYS as usize;
const MOST_POOLS: usize = limits::MAX_POOLS as usize - 1;
const MOST_BACKENDS: usize = limits::MAX_BACKENDS as usize - 1;
const MOST_GROUPS: usize = limits::MAX_GROUPS as usize / 2;
const MOST_MEMBERS: usize = limits::MAX_MEMBERS as usize / 2;
const MOST_TABLES: usize = limits::MAX_TABLES as usize / 2;
const MOST_METERS: usize = (limits::MAX_METERS - FIRST_METER) as usize / 2;

/// Refuses what would not fit.
pub(super) fn enough(configuration: &Configuration) -> Result<(), Invalid> {
    let pools = configuration.pools.values();
    let backends: BTreeSet<_> = pools.clone().flat_map(|pool| pool.backends.keys()).collect();
    let groups: Vec<_> = pools.clone().flat_map(groups).collect();
    let tables: BTreeSet<_> = groups.iter().collect();
    let members = pools.clone().map(|pool| pool.backends.len()).sum();
    let limited = pools.flat_map(|pool| pool.backends.values());
    let limited = limited.filter(|backend| backend.max_connection_rate.is_some()).count();
    let meters = groups.len() + limited;
    let keys = configuration.services.values().map(Service::keys).sum();
    for (field, what, number, most) in [
        ("services", "services", configuration.services.len(), MOST_SERVICES),
        ("services", "ports of services (any_port and fragments are one each)", keys, MOST_KEYS),
        ("pools", "pools", configuration.pools.len(), MOST_POOLS),
        ("pools", "distinct backend addresses", backends.len(), MOST_BACKENDS),
        ("pools", "backends in all", members, MOST_MEMBERS),
        ("pools", "groups (a pool's backends in one region)", groups.len(), MOST_GROUPS),
        ("pools", "different tables", tables.len(), MOST_TABLES),
        ("pools", "groups and backends with a limit of their own", meters, MOST_METERS),
    ] {
        if number > most {
            let cause = format!("{number} {what} are more than the {most} there is room for");
            return Err(Place::default().wrong(field, cause));
        }
    }
    Ok(())
}

/// What the table of each group of a pool is made of: pools with the same share it.
fn groups(pool: &Pool) -> impl Iterator<Item = (u32, Vec<(&std::net::IpAddr, u32)>)> {
    let mut groups: BTreeMap<&Name, Vec<_>> = BTreeMap::new();
    for (address, backend) in &pool.backends {
        groups.entry(&backend.region).or_default().push((address, backend.weight));
    }
    groups.into_values().map(|members| (pool.slots, members))
}
