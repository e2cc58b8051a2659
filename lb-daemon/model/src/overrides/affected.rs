//! What follows from overrides, so that a change of few looks at little.

use std::{
    collections::{BTreeMap, HashSet},
    net::IpAddr,
};

use super::Target;
use crate::{Configuration, Name, Pool};

/// What of a pool must be looked at again after overrides changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    pub pool: Name,
    pub backends: Vec<IpAddr>,
    /// Whether the limits of its groups may be others.
    pub has_groups: bool,
}

/// What of each pool of a configuration follows from overrides of these targets.
pub fn affected<'a>(
    targets: impl IntoIterator<Item = &'a Target>,
    configuration: &Configuration,
) -> Vec<Affected> {
    let mut by_pool: BTreeMap<&Name, Vec<&Target>> = BTreeMap::new();
    for target in targets {
        match target.pool() {
            Some(name) => {
                if let Some((name, pool)) = configuration.pools.get_key_value(name)
                    && target.concerns(name, pool)
                {
                    by_pool.entry(name).or_default().push(target);
                }
            }
            None => {
                let concerned = configuration.pools.iter();
                for (name, _) in concerned.filter(|(name, pool)| target.concerns(name, pool)) {
                    by_pool.entry(name).or_default().push(target);
                }
            }
        }
    }
    let affected = by_pool.into_iter().filter_map(|(name, targets)| {
        let pool = configuration.pools.get(name)?;
        Some(affected_of_pool(name, pool, &targets))
    });
    affected.collect()
}

fn affected_of_pool(name: &Name, pool: &Pool, targets: &[&Target]) -> Affected {
    let mut backends: HashSet<IpAddr> = HashSet::new();
    let mut has_groups = false;
    for target in targets {
        let in_region = |region: &Name| {
            let backends = pool.backends.iter();
            let inside = backends.filter(move |(_, backend)| backend.region == *region);
            inside.map(|(address, _)| *address).collect::<Vec<_>>()
        };
        match target {
            Target::Backend { address, .. } => drop(backends.insert(*address)),
            Target::Pool(_) => backends.extend(pool.backends.keys()),
            Target::Group { region, .. } | Target::Region(region) => {
                backends.extend(in_region(region));
            }
        }
        has_groups |= !matches!(target, Target::Backend { .. });
    }
    let mut backends: Vec<_> = backends.into_iter().collect();
    backends.sort_unstable();
    Affected { pool: name.clone(), backends, has_groups }
}
