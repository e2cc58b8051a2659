//! Names for the indices of the pinned maps, and spellings of what is in them.

use std::collections::BTreeMap;

use lb_common::abi::{
    backend::Backend,
    service::{ServiceKey, address_of},
};

use crate::{dataplane::PinnedMaps, directory::Directory};

/// The directory of the daemon's last generation; what it does not know is called by its number.
#[derive(Clone, Debug, Default)]
pub struct Names(pub Directory);

impl Names {
    /// A region by the index that a group holds.
    pub fn region(&self, index: u32) -> String {
        of(&self.0.regions, index)
    }

    /// A pool by the index of its word.
    pub fn pool(&self, index: u32) -> String {
        of(&self.0.pools, index)
    }

    /// A service by the index of its counters.
    pub fn service(&self, index: u32) -> String {
        of(&self.0.services, index)
    }

    /// Indices of the published pools, in order of their names.
    pub fn pools(&self, maps: &PinnedMaps) -> Vec<u32> {
        let mut published: Vec<_> =
            (0..maps.pool_count()).filter(|&pool| maps.pool(pool).current() != 0).collect();
        published.sort_by_cached_key(|&pool| self.pool(pool));
        published
    }
}

fn of(names: &BTreeMap<u32, String>, index: u32) -> String {
    names.get(&index).cloned().unwrap_or_else(|| format!("#{index}"))
}

/// A backend's address as text.
pub fn address(backend: &Backend) -> String {
    address_of(&backend.address, backend.version).to_string()
}

/// A service's protocol as text.
pub fn protocol(key: &ServiceKey) -> String {
    match key.protocol {
        6 => "tcp".into(),
        17 => "udp".into(),
        other => other.to_string(),
    }
}
