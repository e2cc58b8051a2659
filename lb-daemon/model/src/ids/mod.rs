//! The numbers of backends, services, pools and regions in the maps.
//!
//! They are stored with each generation. The number of a removed object is *retired*. It is given out again only
//! after its quarantine ([`Quarantine`]), and then as the next *incarnation*, so that whatever still names the old
//! owner can be told apart.

mod space;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Instant,
};

use lb_common::abi::sizes::{MapSizes, Size};
use serde::{Deserialize, Serialize};

use crate::{Configuration, Name};
use space::Space;
pub use space::{BACKEND_QUARANTINE, Quarantine};

/// Number of a backend: its index in the maps, and which use of the index it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackendId {
    /// Index, from 1.
    pub index: u32,
    /// Incarnation of the index.
    pub incarnation: u8,
}

/// The numbers of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The same allocation in configurations with the same backends, which may be many.
    backends: Arc<Space<IpAddr>>,
    services: Space<Name>,
    pools: Space<Name>,
    regions: Space<Name>,
}

/// The numbers that the maps name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Incarnations by index.
    pub backends: BTreeMap<u32, u8>,
    pub services: BTreeSet<u32>,
    pub pools: BTreeSet<u32>,
    pub regions: BTreeSet<u32>,
}

/// There are not enough free numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind}: {needed} new ones need a number each, but only {free} numbers are free, {used} are in use and \
     {quarantined} in quarantine; the setting `{kind}` says how many there are"
)]
pub struct Exhausted {
    /// `backends`, `services` or `pools`, which is also the setting's name.
    pub kind: &'static str,
    /// New objects, which need a number each.
    pub needed: usize,
    /// Numbers of objects that stay or are removed by this change.
    pub used: usize,
    /// Numbers in quarantine.
    pub quarantined: usize,
    pub free: usize,
}

impl Ids {
    /// Numbers for a daemon whose store is new or lost: all numbers in the maps are retired.
    pub fn reserving(named: &Named) -> Self {
        Self {
            backends: Arc::new(Space::reserving(
                named.backends.iter().map(|(index, last)| (*index, *last)),
            )),
            services: Space::reserving(named.services.iter().map(|index| (*index, 0))),
            pools: Space::reserving(named.pools.iter().map(|index| (*index, 0))),
            regions: Space::reserving(named.regions.iter().map(|index| (*index, 0))),
        }
    }

    /// The same numbers for maps of other sizes: an object whose number is too high for them gets the lowest that is not
    /// in use. Maps in which its number was possible are gone, so no number of theirs is in quarantine.
    #[must_use]
    pub fn within(&self, sizes: &MapSizes) -> Self {
        Self {
            backends: Arc::new(self.backends.within(sizes.backends())),
            services: self.services.within(sizes.services()),
            pools: self.pools.within(sizes.pools()),
            regions: self.regions.clone(),
        }
    }

    /// The numbers for the next configuration. Objects that stay keep theirs, those of removed objects are retired.
    /// A new object gets the lowest number out of quarantine, else the lowest that was never used. `before` is the
    /// configuration that these numbers are of, if it is known.
    ///
    /// # Errors
    /// [`Exhausted`]
    pub fn next(
        &self,
        before: Option<&Configuration>,
        configuration: &Configuration,
        sizes: &MapSizes,
        quarantine: &Quarantine,
        now: Instant,
    ) -> Result<Self, Exhausted> {
        let Configuration { regions, pools, services, .. } = configuration;
        let backend = |index| quarantine.backend(index, now);
        let service = |index| quarantine.service(index);
        let pool = |index| quarantine.pool(index);
        let region = |index| quarantine.region(index);
        let backends = match before.is_some_and(|before| has_same_backends(before, configuration)) {
            true => Arc::clone(&self.backends),
            false => {
                let addresses = pools.values().flat_map(|pool| pool.backends.keys());
                let (setting, end) = (Size::Backends.setting(), sizes.backends());
                Arc::new(self.backends.next(setting, addresses, end, backend)?)
            }
        };
        Ok(Self {
            backends,
            services: self.services.next(
                Size::Services.setting(),
                services.keys(),
                sizes.services(),
                service,
            )?,
            pools: self.pools.next(Size::Pools.setting(), pools.keys(), sizes.pools(), pool)?,
            regions: self.regions.next("regions", regions.keys(), u32::MAX, region)?,
        })
    }

    /// The number of a backend, the same in every pool that has its address.
    pub fn backend(&self, address: &IpAddr) -> Option<BackendId> {
        self.backends.get(address)
    }

    /// The numbers in parts, by which part of the indices they are of, each a set of ids of its own; see [`Self::join`].
    pub fn parts(&self) -> BTreeMap<u32, Self> {
        self.parts_of(|_| true)
    }

    /// The parts that differ from those of earlier ids. A part that is empty is gone.
    pub fn changed_parts(&self, before: &Self) -> BTreeMap<u32, Self> {
        let mut changed = BTreeSet::new();
        if !self.has_backends_of(before) {
            self.backends.find_changed(&before.backends, &mut changed);
        }
        self.services.find_changed(&before.services, &mut changed);
        self.pools.find_changed(&before.pools, &mut changed);
        self.regions.find_changed(&before.regions, &mut changed);
        let mut parts = self.parts_of(|part| changed.contains(&part));
        for part in changed {
            parts.entry(part).or_default();
        }
        parts
    }

    fn parts_of(&self, wanted: impl Fn(u32) -> bool) -> BTreeMap<u32, Self> {
        let mut parts: BTreeMap<u32, Self> = BTreeMap::new();
        for (part, backends) in self.backends.parts(&wanted) {
            parts.entry(part).or_default().backends = Arc::new(backends);
        }
        for (part, services) in self.services.parts(&wanted) {
            parts.entry(part).or_default().services = services;
        }
        for (part, pools) in self.pools.parts(&wanted) {
            parts.entry(part).or_default().pools = pools;
        }
        for (part, regions) in self.regions.parts(&wanted) {
            parts.entry(part).or_default().regions = regions;
        }
        parts
    }

    /// The ids that parts are of.
    pub fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut ids = Self::default();
        let mut backends = Space::default();
        for part in parts {
            backends.extend(Arc::unwrap_or_clone(part.backends));
            ids.services.extend(part.services);
            ids.pools.extend(part.pools);
            ids.regions.extend(part.regions);
        }
        ids.backends = Arc::new(backends);
        ids
    }

    /// Whether some numbers are retired.
    pub fn has_retired(&self) -> bool {
        self.backends.retired().next().is_some()
            || [&self.services, &self.pools, &self.regions]
                .iter()
                .any(|names| names.retired().next().is_some())
    }

    /// Whether the backends and their numbers are those of other ids, as far as is known without looking at each.
    pub fn has_backends_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backends, &other.backends)
    }

    pub fn service(&self, name: &Name) -> Option<u32> {
        self.services.get(name).map(|id| id.index)
    }

    pub fn pool(&self, name: &Name) -> Option<u32> {
        self.pools.get(name).map(|id| id.index)
    }

    pub fn region(&self, name: &Name) -> Option<u32> {
        self.regions.get(name).map(|id| id.index)
    }

    pub fn services(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.services.iter().map(|(name, id)| (name, id.index))
    }

    pub fn pools(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.pools.iter().map(|(name, id)| (name, id.index))
    }

    pub fn regions(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.regions.iter().map(|(name, id)| (name, id.index))
    }
}

fn has_same_backends(before: &Configuration, after: &Configuration) -> bool {
    let mut pools = before.pools.iter().zip(&after.pools);
    before.pools.len() == after.pools.len()
        && pools.all(|((name, pool), (other_name, other))| {
            name == other_name && (pool == other || pool.backends.keys().eq(other.backends.keys()))
        })
}

#[cfg(test)]
mod tests;
