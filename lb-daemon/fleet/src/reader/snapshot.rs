//! What a fleet shares, as one value.

use std::{collections::BTreeMap, sync::Arc};

use lb_model::{Name, overrides::Key};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Document, DocumentError, FleetKey, Keys,
    client::{Row, Rows},
    commit::{Committed, committed},
    documents::{Discovered, FleetMember, Homes, Liveness, SharedOverride},
    lineage::{Lineage, Link},
};

/// A value, and when it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<T> {
    pub document: Document<T>,
    pub mod_revision: i64,
}

/// The configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedConfiguration {
    pub committed: Committed,
    /// Verified by the digests of its pieces.
    pub bytes: Arc<[u8]>,
}

/// All that a fleet shares at one revision of etcd, without the balancers that are alive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub cluster: u64,
    /// Of etcd: up to where changes are contained.
    pub etcd_revision: i64,
    /// The revision: that of the last change of configuration, overrides, homes or discovered backends.
    pub revision: i64,
    /// `None`: no generation was ever committed.
    pub configuration: Option<Arc<SharedConfiguration>>,
    pub history: BTreeMap<u64, Arc<Committed>>,
    pub overrides: BTreeMap<Key, Versioned<SharedOverride>>,
    /// By region and pool.
    pub homes: BTreeMap<(Name, Name), Versioned<Homes>>,
    pub discovered: BTreeMap<Name, Versioned<Discovered>>,
    pub members: BTreeMap<Name, Versioned<FleetMember>>,
    pub alive: BTreeMap<Name, Versioned<Liveness>>,
    /// Values that cannot be read, by key. What they should say is not in the snapshot.
    pub unreadable: BTreeMap<String, DocumentError>,
}

impl Snapshot {
    /// What [`Lineage::check`] needs.
    pub fn lineage(&self) -> Lineage {
        let link = |it: &Committed| Link { digest: it.digest, parent: it.document.body.parent };
        let mut history: BTreeMap<_, _> =
            self.history.iter().map(|(number, it)| (*number, link(it))).collect();
        let current = self.configuration.as_ref().map(|it| &it.committed);
        let number = |it: &Committed| it.document.body.number;
        history.extend(current.map(|it| (number(it), link(it))));
        Lineage {
            cluster: self.cluster,
            revision: self.revision,
            current: current.map(number),
            history,
        }
    }
}

/// A snapshot whose configuration is not fetched yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) snapshot: Snapshot,
    pub(super) current: Option<Committed>,
}

impl Draft {
    /// # Errors
    /// The current generation cannot be read: without it there is nothing to follow.
    pub(super) fn read(keys: &Keys, rows: &Rows) -> Result<Self, DocumentError> {
        let mut draft = Self::default();
        draft.snapshot.cluster = rows.cluster;
        draft.snapshot.etcd_revision = rows.revision;
        for row in &rows.rows {
            draft.put(keys, row)?;
            if keys.parse(&row.key) == FleetKey::Changed {
                draft.snapshot.revision = draft.snapshot.revision.max(row.mod_revision);
            }
        }
        Ok(draft)
    }

    /// # Errors
    /// As [`Self::read`].
    pub(super) fn put(&mut self, keys: &Keys, row: &Row) -> Result<(), DocumentError> {
        let key = keys.parse(&row.key);
        let snapshot = &mut self.snapshot;
        if is_shared(&key) {
            snapshot.revision = snapshot.revision.max(row.mod_revision);
        }
        snapshot.unreadable.remove(&*String::from_utf8_lossy(&row.key));
        let unreadable = match key {
            FleetKey::Current => {
                self.current = Some(committed(row)?);
                None
            }
            FleetKey::History(number) => match committed(row) {
                Ok(it) => {
                    snapshot.history.insert(number, it.into());
                    None
                }
                Err(error) => {
                    snapshot.history.remove(&number);
                    Some(error)
                }
            },
            FleetKey::Override(key) => {
                let error = store(&mut snapshot.overrides, key.clone(), row);
                let stored = snapshot.overrides.get(&key);
                let wrong = stored.and_then(|it| it.document.check(&key, &row.key).err());
                if wrong.is_some() {
                    snapshot.overrides.remove(&key);
                }
                error.or(wrong)
            }
            FleetKey::Homes { region, pool } => store(&mut snapshot.homes, (region, pool), row),
            FleetKey::Discovered(pool) => store(&mut snapshot.discovered, pool, row),
            FleetKey::Member(name) => store(&mut snapshot.members, name, row),
            FleetKey::Alive(name) => store(&mut snapshot.alive, name, row),
            FleetKey::Chunk(_) | FleetKey::Shares(_) | FleetKey::Changed | FleetKey::Unknown => {
                None
            }
        };
        if let Some(error) = unreadable {
            let key = String::from_utf8_lossy(&row.key).into_owned();
            snapshot.unreadable.insert(key, error);
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, keys: &Keys, key: &[u8], at: i64) {
        let snapshot = &mut self.snapshot;
        snapshot.unreadable.remove(&*String::from_utf8_lossy(key));
        let key = keys.parse(key);
        if is_shared(&key) {
            snapshot.revision = snapshot.revision.max(at);
        }
        match key {
            FleetKey::Current => self.current = None,
            FleetKey::History(number) => drop(snapshot.history.remove(&number)),
            FleetKey::Override(key) => drop(snapshot.overrides.remove(&key)),
            FleetKey::Homes { region, pool } => drop(snapshot.homes.remove(&(region, pool))),
            FleetKey::Discovered(pool) => drop(snapshot.discovered.remove(&pool)),
            FleetKey::Member(name) => drop(snapshot.members.remove(&name)),
            FleetKey::Alive(name) => drop(snapshot.alive.remove(&name)),
            FleetKey::Chunk(_) | FleetKey::Shares(_) | FleetKey::Changed | FleetKey::Unknown => {}
        }
    }
}

/// Whether a change of the key sets the revision. `changed` is written with each of them, but is watched apart from them: by
/// it alone a snapshot would have the new revision before it has what changed.
const fn is_shared(key: &FleetKey) -> bool {
    matches!(
        key,
        FleetKey::Current
            | FleetKey::Override(_)
            | FleetKey::Homes { .. }
            | FleetKey::Discovered(_)
    )
}

/// Returns why the value cannot be read.
fn store<K: Ord, T: Serialize + DeserializeOwned + Clone>(
    map: &mut BTreeMap<K, Versioned<T>>,
    key: K,
    row: &Row,
) -> Option<DocumentError> {
    match Document::read(&row.key, &row.value) {
        Ok(document) => {
            map.insert(key, Versioned { document, mod_revision: row.mod_revision });
            None
        }
        Err(error) => {
            map.remove(&key);
            Some(error)
        }
    }
}
