//! The guard against changes that remove too much at once: a template that was filled from an empty answer, a file that was
//! cut off, the wrong generation. Such a change has to be forced.
//!
//! Only what leaves the configuration counts. A backend that is drained, disabled or has weight 0 is still there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use crate::{Configuration, Name, ObjectReference, Pool};

/// Pools with fewer backends may lose any number, as long as no service loses all.
pub const LEAST_BACKENDS: usize = 4;

/// Most backends of a pool that one change may remove unforced, percent.
pub const MOST_PERCENT: usize = 30;

/// Part of a change that removes too much at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// No backend is left at all, although services had some. Stands for everything else that the change removes.
    All {
        /// How many there were, over all pools.
        backends: usize,
    },
    /// A service that stays has no backends any more.
    Service {
        service: Name,
        /// How many it had.
        backends: usize,
    },
    /// A pool loses more than [`MOST_PERCENT`] of at least [`LEAST_BACKENDS`] backends, or goes with them.
    Pool {
        pool: Name,
        removed: usize,
        /// How many it had.
        backends: usize,
    },
}

impl Removal {
    /// What it is about; `None`: the whole configuration.
    pub fn object(&self) -> Option<ObjectReference> {
        match self {
            Self::All { .. } => None,
            Self::Service { service, .. } => Some(ObjectReference::Service(service.clone())),
            Self::Pool { pool, .. } => Some(ObjectReference::Pool(pool.clone())),
        }
    }

    /// How many backends are removed, and of how many.
    pub const fn numbers(&self) -> (usize, usize) {
        match self {
            Self::All { backends } | Self::Service { backends, .. } => (*backends, *backends),
            Self::Pool { removed, backends, .. } => (*removed, *backends),
        }
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All { backends } => {
                write!(f, "the configuration loses all backends, of which it has {backends}")
            }
            Self::Service { service, backends } => {
                write!(f, "service {service} loses all backends, of which it has {backends}")
            }
            Self::Pool { pool, removed, backends } => {
                write!(
                    f,
                    "pool {pool} loses {removed} of {backends} backends, more than {MOST_PERCENT} %"
                )
            }
        }
    }
}

/// What a change from `old` to `new` removes too much of; empty: it needs no force.
///
/// A pool that goes counts as one that loses all, if services used it. What services that stay have of its backends in
/// another pool is not lost: the pool has another name then.
pub fn removals(old: &Configuration, new: &Configuration) -> Vec<Removal> {
    let count = |configuration: &Configuration| -> usize {
        configuration.pools.values().map(|pool| pool.backends.len()).sum()
    };
    let has_backends = old.services.values().any(|it| backends(old, &it.pool).is_some());
    if has_backends && count(new) == 0 {
        return vec![Removal::All { backends: count(old) }];
    }
    let mut removals = Vec::new();
    let mut emptied = BTreeSet::new();
    for (name, before) in &old.services {
        let after = new.services.get(name);
        if let (Some(had), Some(after)) = (backends(old, &before.pool), after)
            && backends(new, &after.pool).is_none()
        {
            removals.push(Removal::Service { service: name.clone(), backends: had.len() });
            emptied.insert(&before.pool);
        }
    }
    // The services of these say it already.
    let pools = old.pools.iter().filter(|(name, _)| !emptied.contains(name));
    for (name, before) in pools {
        let all = before.backends.len();
        let removed = removed(name, before, old, new);
        if all >= LEAST_BACKENDS && removed * 100 > all * MOST_PERCENT {
            removals.push(Removal::Pool { pool: name.clone(), removed, backends: all });
        }
    }
    removals
}

/// The backends of a pool; `None`: it has none.
fn backends<'a>(
    configuration: &'a Configuration,
    pool: &Name,
) -> Option<&'a BTreeMap<IpAddr, crate::Backend>> {
    let backends = &configuration.pools.get(pool)?.backends;
    (!backends.is_empty()).then_some(backends)
}

/// How many backends a pool loses.
fn removed(name: &Name, before: &Pool, old: &Configuration, new: &Configuration) -> usize {
    if let Some(after) = new.pools.get(name) {
        let gone = before.backends.keys().filter(|it| !after.backends.contains_key(it));
        return gone.count();
    }
    let mut services = old.services.iter().filter(|(_, it)| it.pool == *name).peekable();
    if services.peek().is_none() {
        return 0;
    }
    let others: Vec<_> = services
        .filter_map(|(service, _)| backends(new, &new.services.get(service)?.pool))
        .collect();
    let is_kept = |address: &IpAddr| others.iter().any(|pool| pool.contains_key(address));
    before.backends.keys().filter(|address| !is_kept(address)).count()
}

#[cfg(test)]
mod tests;
