//! The numbers by which the maps know backends, services, pools and regions.
//!
//! They are kept with each generation. A number whose owner went is *retired*: it is given out again
//! only after its rest ([`Quarantine`]), and then as the next *incarnation*, so that whatever still names
//! the old owner can tell.

mod space;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Instant,
};

use lb_common::abi::limits;
use serde::{Deserialize, Serialize};

use crate::{Configuration, Name};
use space::Space;
pub use space::{BACKEND_REST, Quarantine};

/// Number of a backend: its index in the maps, and which of the index's successive owners it is.
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
    backends: Space<IpAddr>,
    services: Space<Name>,
    pools: Space<Name>,
    regions: Space<Name>,
}

/// What the maps name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Incarnations by index of backends.
    pub backends: BTreeMap<u32, u8>,
    /// Indices of services.
    pub services: BTreeSet<u32>,
    /// Indices of pools.
    pub pools: BTreeSet<u32>,
    /// Indices of regions.
    pub regions: BTreeSet<u32>,
}

/// More numbers are needed than are free.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind}: {wanted} new ones need a number each, but {used} numbers are in use, {resting} at rest \
     and only {free} free"
)]
pub struct Exhausted {
    /// `backends`, `services`, `pools` or `regions`.
    pub kind: &'static str,
    /// New objects.
    pub wanted: usize,
    /// Numbers of objects that stay or go with this very change.
    pub used: usize,
    /// Numbers of objects that went a short time ago.
    pub resting: usize,
    /// Numbers that can be given out.
    pub free: usize,
}

impl Ids {
    /// Numbers for a daemon whose store is new or lost: those in the maps count as retired.
    pub fn reserving(named: &Named) -> Self {
        Self {
            backends: Space::reserving(named.backends.iter().map(|(index, last)| (*index, *last))),
            services: Space::reserving(named.services.iter().map(|index| (*index, 0))),
            pools: Space::reserving(named.pools.iter().map(|index| (*index, 0))),
            regions: Space::reserving(named.regions.iter().map(|index| (*index, 0))),
        }
    }

    /// The numbers for the next configuration: what stays keeps its own, what goes retires its own,
    /// what is new gets the lowest that is rested, else the lowest that was never used.
    ///
    /// # Errors
    /// [`Exhausted`]: too many are in use or at rest. Nothing changes.
    pub fn next(
        &self,
        configuration: &Configuration,
        rests: &Quarantine,
        now: Instant,
    ) -> Result<Self, Exhausted> {
        use limits::{MAX_BACKENDS, MAX_POOLS, MAX_SERVICES};
        let Configuration { regions, pools, services, .. } = configuration;
        let addresses = pools.values().flat_map(|pool| pool.backends.keys());
        let backend = |index| rests.backend(index, now);
        let service = |index| rests.service(index);
        let pool = |index| rests.pool(index);
        let region = |index| rests.region(index);
        Ok(Self {
            backends: self.backends.next("backends", addresses, MAX_BACKENDS, backend)?,
            services: self.services.next("services", services.keys(), MAX_SERVICES, service)?,
            pools: self.pools.next("pools", pools.keys(), MAX_POOLS, pool)?,
            regions: self.regions.next("regions", regions.keys(), u32::MAX, region)?,
        })
    }

    /// The number of a backend, the same in every pool that has its address.
    pub fn backend(&self, address: &IpAddr) -> Option<BackendId> {
        self.backends.get(address)
    }

    /// The index of a service.
    pub fn service(&self, name: &Name) -> Option<u32> {
        self.services.get(name).map(|id| id.index)
    }

    /// The index of a pool.
    pub fn pool(&self, name: &Name) -> Option<u32> {
        self.pools.get(name).map(|id| id.index)
    }

    /// The index of a region.
    pub fn region(&self, name: &Name) -> Option<u32> {
        self.regions.get(name).map(|id| id.index)
    }

    /// Services with their indices.
    pub fn services(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.services.iter().map(|(name, id)| (name, id.index))
    }

    /// Pools with their indices.
    pub fn pools(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.pools.iter().map(|(name, id)| (name, id.index))
    }

    /// Regions with their indices.
    pub fn regions(&self) -> impl Iterator<Item = (&Name, u32)> {
        self.regions.iter().map(|(name, id)| (name, id.index))
    }
}

#[cfg(test)]
mod tests;
