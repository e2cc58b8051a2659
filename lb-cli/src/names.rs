//! Names for the indices of the maps.

use std::collections::BTreeMap;

use lb_daemon::directory::Directory;

/// The directory of the daemon's last generation; what it does not know is called by its number.
#[derive(Default)]
pub(crate) struct Names(pub(crate) Directory);

impl Names {
    /// A region by the index that a group holds.
    pub(crate) fn region(&self, index: u32) -> String {
        of(&self.0.regions, index)
    }

    /// A pool by the index of its word.
    pub(crate) fn pool(&self, index: u32) -> String {
        of(&self.0.pools, index)
    }

    /// A service by the index of its counters.
    pub(crate) fn service(&self, index: u32) -> String {
        of(&self.0.services, index)
    }
}

fn of(names: &BTreeMap<u32, String>, index: u32) -> String {
    names.get(&index).cloned().unwrap_or_else(|| format!("#{index}"))
}
