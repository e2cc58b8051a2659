use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{Ids, Named, space::Space};

/// How long a backend's number rests after the last map forgot it: longer than anything in the
/// packet path remembers a decision (handshake entries count for 64 s).
pub const BACKEND_REST: Duration = Duration::from_secs(128);

/// Which retired numbers are named by no map any more, and since when.
///
/// It is not kept on disk: a daemon that starts lets everything rest anew, so no clock of an earlier
/// life matters. Numbers of services, pools and regions are free as soon as no map names them;
/// those of backends after [`BACKEND_REST`].
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    backends: BTreeMap<u32, Instant>,
    services: BTreeSet<u32>,
    pools: BTreeSet<u32>,
    regions: BTreeSet<u32>,
}

impl Quarantine {
    /// `ids` came into force: what they give out rests no longer. What they retire does not rest yet
    /// either, for the maps may still name it.
    pub fn adopt(&mut self, ids: &Ids) {
        self.backends.retain(|index, _| ids.backends.is_retired(*index));
        self.services.retain(|index| ids.services.is_retired(*index));
        self.pools.retain(|index| ids.pools.is_retired(*index));
        self.regions.retain(|index| ids.regions.is_retired(*index));
    }

    /// The maps were brought to `ids` and name `named`: what is retired and not named rests from now.
    pub fn settle(&mut self, ids: &Ids, named: &Named, now: Instant) {
        self.backends = unnamed(&ids.backends, |index| named.backends.contains_key(&index))
            .map(|index| (index, self.backends.get(&index).copied().unwrap_or(now)))
            .collect();
        self.services = unnamed(&ids.services, |index| named.services.contains(&index)).collect();
        self.pools = unnamed(&ids.pools, |index| named.pools.contains(&index)).collect();
        self.regions = unnamed(&ids.regions, |index| named.regions.contains(&index)).collect();
    }

    pub(super) fn backend(&self, index: u32, now: Instant) -> bool {
        let since = self.backends.get(&index);
        since.is_some_and(|since| now.saturating_duration_since(*since) >= BACKEND_REST)
    }

    pub(super) fn service(&self, index: u32) -> bool {
        self.services.contains(&index)
    }

    pub(super) fn pool(&self, index: u32) -> bool {
        self.pools.contains(&index)
    }

    pub(super) fn region(&self, index: u32) -> bool {
        self.regions.contains(&index)
    }
}

fn unnamed<K: Ord + Clone>(
    space: &Space<K>,
    named: impl Fn(u32) -> bool,
) -> impl Iterator<Item = u32> {
    space.retired().filter(move |index| !named(*index))
}
