//! The difference between two configurations, as `spillway diff` shows it.

mod fields;
mod movement;
mod table_diffs;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use crate::{Configuration, Name, ObjectReference, Pool};
pub use movement::{Effect, Movement, movements};
pub use table_diffs::{Owners, TableDiffs, TableMembers, kept_owners, owners};

/// One object that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub object: ObjectReference,
    /// Empty unless it changed.
    pub fields: Vec<FieldChange>,
    /// Slots whose owner differs, of all tables of a pool.
    pub slots_moved: u64,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Its name in the configuration file, or `backends` of a group whose members or weights differ.
    pub field: &'static str,
    /// Region of the group that it is of; `None`: it is of the object itself.
    pub region: Option<Name>,
    pub old: String,
    pub new: String,
    /// More than the values say, like `1 new, 1 gone`; mostly empty.
    pub note: String,
}

impl Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, region, old, new, note } = self;
        f.write_str(field)?;
        if let Some(region) = region {
            write!(f, " in {region}")?;
        }
        write!(f, ": {old} -> {new}")?;
        if note.is_empty() { Ok(()) } else { write!(f, " ({note})") }
    }
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
    each(ObjectReference::Region, &old.regions, &new.regions, fields::region, &mut changes);
    each(
        ObjectReference::HealthCheck,
        &old.health_checks,
        &new.health_checks,
        fields::health_check,
        &mut changes,
    );
    for (name, old, new) in join(&old.pools, &new.pools) {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => pool(name, old, new, diffs, &mut changes),
            _ => {
                let object = ObjectReference::Pool(name.clone());
                changes.extend(change(object, old, new, |old, new| fields::pool(old, new)));
            }
        }
    }
    each(ObjectReference::Service, &old.services, &new.services, fields::service, &mut changes);
    each(ObjectReference::Vip, &old.vips, &new.vips, fields::vip, &mut changes);
    if old.hash_key != new.hash_key {
        let fields = fields::hash_key(old.hash_key, new.hash_key);
        let (kind, object) = (Kind::Changed, ObjectReference::HashKey);
        changes.push(Change { kind, object, fields, slots_moved: 0 });
    }
    let fields = fields::whole(old, new);
    if !fields.is_empty() {
        let (kind, object) = (Kind::Changed, ObjectReference::Balancers);
        changes.push(Change { kind, object, fields, slots_moved: 0 });
    }
    changes
}

fn pool(name: &Name, old: &Pool, new: &Pool, diffs: &TableDiffs<'_>, changes: &mut Vec<Change>) {
    let mut fields = fields::pool(old, new);
    let moved = tables::moved(old, new, diffs);
    fields.extend(moved.fields);
    if !fields.is_empty() {
        let (kind, object) = (Kind::Changed, ObjectReference::Pool(name.clone()));
        changes.push(Change { kind, object, fields, slots_moved: moved.slots });
    }
    let backend = |address| ObjectReference::Backend { pool: Some(name.clone()), address };
    each(backend, &old.backends, &new.backends, fields::backend, changes);
}

fn each<K: Ord + Clone, V: PartialEq>(
    reference: impl Fn(K) -> ObjectReference,
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
    fields: impl Fn(&V, &V) -> Vec<FieldChange>,
    changes: &mut Vec<Change>,
) {
    for (key, old, new) in join(old, new) {
        changes.extend(change(reference(key.clone()), old, new, &fields));
    }
}

fn change<V: PartialEq>(
    object: ObjectReference,
    old: Option<&V>,
    new: Option<&V>,
    fields: impl Fn(&V, &V) -> Vec<FieldChange>,
) -> Option<Change> {
    let (kind, fields) = match (old, new) {
        (None, None) => return None,
        (None, Some(_)) => (Kind::Added, vec![]),
        (Some(_), None) => (Kind::Removed, vec![]),
        (Some(old), Some(new)) if old == new => return None,
        (Some(old), Some(new)) => (Kind::Changed, fields(old, new)),
    };
    Some(Change { kind, object, fields, slots_moved: 0 })
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
