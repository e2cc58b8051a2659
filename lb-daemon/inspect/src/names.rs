//! Names for the indices of the pinned maps, and spellings of what is in them.

use std::collections::BTreeMap;

use lb_common::abi::{
    backend::Backend,
    service::{ServiceKey, address_of},
};

use nix::net::if_::if_indextoname;

use lb_base::{Namespace, Quoted};
use lb_maps::{PinnedMaps, directory::Directory};

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

    /// Whether the daemon is known to be in another network namespace than this thread.
    pub fn is_of_another_namespace(&self) -> bool {
        let ours = || Namespace::current().ok();
        self.0.network_namespace.zip(ours()).is_some_and(|(theirs, ours)| theirs != ours)
    }

    /// The name of an interface by the index that the maps hold; `None`: there is none of this index, or
    /// the index belongs to another network namespace, where it means another interface than here.
    pub fn interface(&self, index: u16) -> Option<String> {
        if self.is_of_another_namespace() {
            return None;
        }
        let name = if_indextoname(index.into()).ok()?.into_string().ok()?;
        Some(name).filter(|name| !name.is_empty())
    }

    /// Indices of the published pools of a name, or of all pools, in order of their names.
    ///
    /// # Errors
    /// [`NoPool`]: no published pool has the name.
    pub fn pools_named(&self, maps: &PinnedMaps, pool: Option<&str>) -> Result<Vec<u32>, NoPool> {
        let published = self.pools(maps);
        let Some(name) = pool else { return Ok(published) };
        let of_name: Vec<_> = published.iter().copied().filter(|&i| self.pool(i) == name).collect();
        if of_name.is_empty() {
            let published = published.iter().map(|&index| self.pool(index)).collect();
            return Err(NoPool { name: name.to_owned(), published });
        }
        Ok(of_name)
    }

    /// Indices of the published pools, in order of their names.
    pub fn pools(&self, maps: &PinnedMaps) -> Vec<u32> {
        let mut published: Vec<_> =
            (0..maps.pool_count()).filter(|&pool| maps.pool(pool).now() != 0).collect();
        published.sort_by_cached_key(|&pool| self.pool(pool));
        published
    }
}

/// No published pool has a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pool {} does not exist", Quoted(.name))]
pub struct NoPool {
    pub name: String,
    /// The pools that are published.
    pub published: Vec<String>,
}

impl NoPool {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self.published.is_empty() {
            true => "no pool is published; apply a configuration first".into(),
            false => format!("the pools are: {}", self.published.join(", ")),
        }
    }
}

/// An interface in words: by its name, or by its index where the name is not known.
pub fn interface_words(name: Option<String>, index: u16) -> String {
    name.unwrap_or_else(|| format!("interface {index}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_its_name_in_the_namespace_of_the_daemon_alone() {
        let names =
            |network_namespace| Names(Directory { network_namespace, ..Directory::default() });
        let here = Namespace::current().unwrap();
        // The first of every namespace.
        for same in [None, Some(here)] {
            assert_eq!(names(same).interface(1).as_deref(), Some("lo"));
            assert!(!names(same).is_of_another_namespace());
        }
        assert_eq!(names(None).interface(u16::MAX), None);
        let other = names(Some(Namespace { inode: here.inode + 1, ..here }));
        assert_eq!(other.interface(1), None);
        assert!(other.is_of_another_namespace());
        assert_eq!(interface_words(other.interface(1), 1), "interface 1");
    }
}
