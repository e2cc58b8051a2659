use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{BackendId as Id, Exhausted, Ids, Named};

/// Numbers of one kind of object, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize + Ord", deserialize = "K: DeserializeOwned + Ord"))]
pub(super) struct Space<K> {
    used: BTreeMap<K, Id>,
    /// Last incarnation of each index that nobody uses any more.
    retired: BTreeMap<u32, u8>,
}

impl<K> Default for Space<K> {
    fn default() -> Self {
        Self { used: BTreeMap::new(), retired: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Space<K> {
    /// A space whose indices in `named` (with their incarnations) are retired.
    pub(super) fn reserving(named: impl Iterator<Item = (u32, u8)>) -> Self {
        Self { used: BTreeMap::new(), retired: named.filter(|(index, _)| *index != 0).collect() }
    }

    /// See [`super::Ids::next`]; indices are below `end`.
    pub(super) fn next<'a>(
        &self,
        kind: &'static str,
        wanted: impl Iterator<Item = &'a K>,
        end: u32,
        rested: impl Fn(u32) -> bool,
    ) -> Result<Self, Exhausted>
    where
        K: 'a,
    {
        let wanted: BTreeSet<&K> = wanted.collect();
        let mut used = BTreeMap::new();
        // Whoever goes now is not rested yet, whatever `rested` says of an earlier owner.
        let mut retired = self.retired.clone();
        for (key, id) in &self.used {
            if wanted.contains(key) {
                used.insert(key.clone(), *id);
            } else {
                retired.insert(id.index, id.incarnation);
            }
        }
        let rested: Vec<u32> =
            self.retired.keys().copied().filter(|index| rested(*index)).collect();
        let taken: BTreeSet<u32> =
            retired.keys().copied().chain(self.used.values().map(|id| id.index)).collect();
        let fresh = end.saturating_sub(1) as usize - taken.len();
        let new: Vec<&K> = wanted.into_iter().filter(|key| !used.contains_key(*key)).collect();
        let free = rested.len() + fresh;
        if new.len() > free {
            let (wanted, resting) = (new.len(), self.retired.len() - rested.len());
            return Err(Exhausted { kind, wanted, used: self.used.len(), resting, free });
        }
        let untouched = (1..end).filter(|index| !taken.contains(index));
        for (key, index) in new.into_iter().zip(rested.into_iter().chain(untouched)) {
            let incarnation = retired.remove(&index).map_or(0, |last| last.wrapping_add(1));
            used.insert(key.clone(), Id { index, incarnation });
        }
        Ok(Self { used, retired })
    }

    pub(super) fn get(&self, key: &K) -> Option<Id> {
        self.used.get(key).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, Id)> {
        self.used.iter().map(|(key, id)| (key, *id))
    }

    pub(super) fn is_retired(&self, index: u32) -> bool {
        self.retired.contains_key(&index)
    }

    pub(super) fn retired(&self) -> impl Iterator<Item = u32> {
        self.retired.keys().copied()
    }
}

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
