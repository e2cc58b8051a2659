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
    /// Last incarnation of each unused index.
    retired: BTreeMap<u32, u8>,
}

/// Indices of one part.
const PART: u32 = 256;

fn part_of(index: u32) -> u32 {
    index / PART
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

    /// See [`super::Ids::within`]; indices are below `end`.
    pub(super) fn within(&self, end: u32) -> Self {
        if self.used.len() >= end as usize {
            // Some must go, and which of them is not known yet: a number for each that stays is free only if all are.
            return Self::default();
        }
        let mut used: BTreeMap<K, Id> = self.used.clone();
        used.retain(|_, id| id.index < end);
        let mut retired = self.retired.clone();
        retired.retain(|index, _| *index < end);
        let taken: BTreeSet<u32> = used.values().map(|id| id.index).collect();
        let free = (1..end).filter(|index| !taken.contains(index));
        let too_high = self.used.iter().filter(|(_, id)| id.index >= end);
        for ((key, _), index) in too_high.zip(free) {
            let incarnation = retired.remove(&index).map_or(0, |last| last.wrapping_add(1));
            used.insert(key.clone(), Id { index, incarnation });
        }
        Self { used, retired }
    }

    /// See [`super::Ids::next`]; indices are below `end`.
    pub(super) fn next<'a>(
        &self,
        kind: &'static str,
        keys: impl Iterator<Item = &'a K>,
        end: u32,
        is_free: impl Fn(u32) -> bool,
    ) -> Result<Self, Exhausted>
    where
        K: 'a,
    {
        let keys: BTreeSet<&K> = keys.collect();
        let mut used = BTreeMap::new();
        // Numbers that are retired now are not free yet, whatever `is_free` says of an earlier use.
        let mut retired = self.retired.clone();
        for (key, id) in &self.used {
            if keys.contains(key) {
                used.insert(key.clone(), *id);
            } else {
                retired.insert(id.index, id.incarnation);
            }
        }
        let released: Vec<u32> =
            self.retired.keys().copied().filter(|index| *index < end && is_free(*index)).collect();
        let taken: BTreeSet<u32> =
            retired.keys().copied().chain(self.used.values().map(|id| id.index)).collect();
        let fresh = end.saturating_sub(1) as usize - taken.range(..end).count();
        let new: Vec<&K> = keys.into_iter().filter(|key| !used.contains_key(*key)).collect();
        let free = released.len() + fresh;
        if new.len() > free {
            let (needed, quarantined) = (new.len(), self.retired.len() - released.len());
            return Err(Exhausted { kind, needed, used: self.used.len(), quarantined, free });
        }
        let untouched = (1..end).filter(|index| !taken.contains(index));
        for (key, index) in new.into_iter().zip(released.into_iter().chain(untouched)) {
            let incarnation = retired.remove(&index).map_or(0, |last| last.wrapping_add(1));
            used.insert(key.clone(), Id { index, incarnation });
        }
        Ok(Self { used, retired })
    }

    /// Collects the parts in which entries differ from those of an earlier space.
    pub(super) fn find_changed(&self, before: &Self, parts: &mut BTreeSet<u32>) {
        let (mut old, mut new) = (before.used.iter().peekable(), self.used.iter().peekable());
        loop {
            // Both are sorted, so equal entries come at the same time.
            let (old_next, new_next) = (old.peek().copied(), new.peek().copied());
            if old_next.is_some() && old_next == new_next {
                old.next();
                new.next();
                continue;
            }
            let next = match (old_next, new_next) {
                (None, None) => break,
                (Some(_), None) => old.next(),
                (None, Some(_)) => new.next(),
                (Some((a, _)), Some((b, _))) => {
                    if a <= b {
                        old.next()
                    } else {
                        new.next()
                    }
                }
            };
            parts.extend(next.map(|(_, id)| part_of(id.index)));
        }
        for (one, other) in [(before, self), (self, before)] {
            let differs = |(index, last): &(&u32, &u8)| other.retired.get(index) != Some(last);
            parts.extend(one.retired.iter().filter(differs).map(|(index, _)| part_of(*index)));
        }
    }

    /// The wanted parts that have entries.
    pub(super) fn parts(&self, wanted: impl Fn(u32) -> bool) -> BTreeMap<u32, Self> {
        let mut parts: BTreeMap<u32, Self> = BTreeMap::new();
        for (key, id) in self.used.iter().filter(|(_, id)| wanted(part_of(id.index))) {
            let part = parts.entry(part_of(id.index)).or_default();
            part.used.insert(key.clone(), *id);
        }
        for (index, last) in self.retired.iter().filter(|(index, _)| wanted(part_of(**index))) {
            parts.entry(part_of(*index)).or_default().retired.insert(*index, *last);
        }
        parts
    }

    /// Adds the entries of another space.
    pub(super) fn extend(&mut self, other: Self) {
        self.used.extend(other.used);
        self.retired.extend(other.retired);
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

/// Quarantine of a backend's number, from when no map names it any more. It is longer than the packet path
/// remembers any decision without naming the incarnation (handshake entries count for 64 s).
pub const BACKEND_QUARANTINE: Duration = Duration::from_secs(128);

/// The retired numbers that no map names any more, and since when.
///
/// It is not stored: quarantine begins again when a daemon starts, so no clock of an earlier run matters. Numbers
/// of services, pools and regions are free as soon as no map names them, those of backends after
/// [`BACKEND_QUARANTINE`].
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    backends: BTreeMap<u32, Instant>,
    services: BTreeSet<u32>,
    pools: BTreeSet<u32>,
    regions: BTreeSet<u32>,
}

impl Quarantine {
    /// Call this when `ids` come into force: numbers that they use leave the quarantine. Those that they retire
    /// do not enter it yet, because the maps may still name them.
    pub fn adopt(&mut self, ids: &Ids) {
        self.backends.retain(|index, _| ids.backends.is_retired(*index));
        self.services.retain(|index| ids.services.is_retired(*index));
        self.pools.retain(|index| ids.pools.is_retired(*index));
        self.regions.retain(|index| ids.regions.is_retired(*index));
    }

    /// Call this when the maps agree with `ids` and name `named`: the quarantine of retired numbers that are not
    /// named begins.
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
        since.is_some_and(|since| now.saturating_duration_since(*since) >= BACKEND_QUARANTINE)
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
