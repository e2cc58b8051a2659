//! The difference between two configurations, as `spillway diff` shows it.

mod fields;
mod movement;
mod table_diffs;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use crate::{Configuration, Pool};
pub use movement::{Effect, Movement, movements};
pub use table_diffs::{Owners, TableDiffs, TableMembers, kept_owners, owners};

/// One object that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    /// The object: `service web`, `pool web: backend 10.0.0.1`, `region eu`, `hash key`,
    /// `balancers`.
    pub object: String,
    /// Fields that differ, each `field: old -> new`; empty unless it changed.
    pub details: Vec<String>,
    /// Slots whose owner differs, of all tables of a pool.
    pub slots_moved: u64,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Removed,
    Changed,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        })
    }
}

/// The changes from `old` to `new`, by kind of object and name. Backends of an added or removed pool are not
/// listed. `diffs` are those of their tables.
pub fn between(old: &Configuration, new: &Configuration, diffs: &TableDiffs<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    each("region", &old.regions, &new.regions, fields::region, &mut changes);
    each(
        "health check",
        &old.health_checks,
        &new.health_checks,
        fields::health_check,
        &mut changes,
    );
    for (name, old, new) in join(&old.pools, &new.pools) {
        let object = format!("pool {name}");
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => pool(&object, old, new, diffs, &mut changes),
            _ => changes.extend(change(object, old, new, |old, new| fields::pool(old, new))),
        }
    }
    each("service", &old.services, &new.services, fields::service, &mut changes);
    if old.hash_key != new.hash_key {
        let details = fields::hash_key(old.hash_key, new.hash_key);
        let (kind, object) = (Kind::Changed, "hash key".into());
        changes.push(Change { kind, object, details, slots_moved: 0 });
    }
    let details = fields::whole(old, new);
    if !details.is_empty() {
        let (kind, object) = (Kind::Changed, "balancers".into());
        changes.push(Change { kind, object, details, slots_moved: 0 });
    }
    changes
}

fn pool(object: &str, old: &Pool, new: &Pool, diffs: &TableDiffs<'_>, changes: &mut Vec<Change>) {
    let mut details = fields::pool(old, new);
    let moved = tables::moved(old, new, diffs);
    details.extend(moved.details);
    if !details.is_empty() {
        let (kind, object) = (Kind::Changed, object.to_owned());
        changes.push(Change { kind, object, details, slots_moved: moved.slots });
    }
    each(&format!("{object}: backend"), &old.backends, &new.backends, fields::backend, changes);
}

fn each<K: Ord + Display, V: PartialEq>(
    kind: &str,
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
    fields: impl Fn(&V, &V) -> Vec<String>,
    changes: &mut Vec<Change>,
) {
    for (key, old, new) in join(old, new) {
        changes.extend(change(format!("{kind} {key}"), old, new, &fields));
    }
}

fn change<V: PartialEq>(
    object: String,
    old: Option<&V>,
    new: Option<&V>,
    fields: impl Fn(&V, &V) -> Vec<String>,
) -> Option<Change> {
    let (kind, details) = match (old, new) {
        (None, None) => return None,
        (None, Some(_)) => (Kind::Added, vec![]),
        (Some(_), None) => (Kind::Removed, vec![]),
        (Some(old), Some(new)) if old == new => return None,
        (Some(old), Some(new)) => (Kind::Changed, fields(old, new)),
    };
    Some(Change { kind, object, details, slots_moved: 0 })
}

/// Joins two maps by key.
fn join<'a, K: Ord, V>(
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    let keys: BTreeSet<&K> = old.keys().chain(new.keys()).collect();
    keys.into_iter().map(|key| (key, old.get(key), new.get(key)))
}

#[cfg(test)]
mod tests;
