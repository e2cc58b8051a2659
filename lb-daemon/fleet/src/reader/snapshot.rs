//! What a fleet shares, as one value.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lb_model::{Name, overrides::Key};
use lb_sharing::{
    GroupKey,
    epoch::{Epoch, Membership},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Document, DocumentError, FleetKey, Keys,
    client::{Row, Rows},
    commit::{Committed, committed},
    documents::{
        Discovered, FleetMember, Generation, Homes, Liveness, SharedEpoch, SharedOverride,
    },
    lineage::{Lineage, Link},
};

use super::epochs::Epochs;

/// A value, and when it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<T> {
    pub document: Document<T>,
    pub mod_revision: i64,
}

impl<T: Serialize + DeserializeOwned + Clone> Versioned<T> {
    pub(super) fn read(row: &Row) -> Result<Self, DocumentError> {
        let document = Document::read(&row.key, &row.value)?;
        Ok(Self { document, mod_revision: row.mod_revision })
    }
}

/// The configuration in force.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedConfiguration {
    pub committed: Committed,
    /// Verified by the digests of its pieces.
    pub bytes: Arc<[u8]>,
}

/// What a lineage needs of a generation in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownLink {
    pub link: Link,
    pub mod_revision: i64,
}

impl From<&Committed> for Link {
    fn from(committed: &Committed) -> Self {
        Self { digest: committed.digest, parent: committed.document.body.parent }
    }
}

/// What the transactions of epochs compare with what was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochBase {
    /// That of the epoch in the snapshot.
    pub document: Option<Versioned<SharedEpoch>>,
    /// `mod_revision` of each of its contributions.
    pub contributed_at: BTreeMap<Name, i64>,
    /// Other epochs of which there are keys.
    pub others: BTreeSet<u64>,
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
    /// Why `configuration` is not the one that etcd has, but the last one that could be used, or none. All else is of
    /// `revision`, which must not be shown as in force meanwhile.
    pub configuration_error: Option<DocumentError>,
    /// Generations of the history, as far as a balancer needs them to know whether what it has in force is their past.
    pub links: BTreeMap<u64, KnownLink>,
    pub overrides: BTreeMap<Key, Versioned<SharedOverride>>,
    /// By region and pool.
    pub homes: BTreeMap<(Name, Name), Versioned<Homes>>,
    pub discovered: BTreeMap<Name, Versioned<Discovered>>,
    pub members: BTreeMap<Name, Versioned<FleetMember>>,
    /// Shared by all copies of the snapshot: after an Apply every balancer writes its own, which is a copy for each.
    pub alive: BTreeMap<Name, Arc<Versioned<Liveness>>>,
    /// The epoch with the highest number, with what balancers said in it. One that cannot be read as a whole is left out.
    pub epoch: Option<Arc<Epoch>>,
    pub epoch_base: EpochBase,
    /// `mod_revision` of the last change of a key of epochs.
    pub shares_revision: i64,
    /// `mod_revision` of the last change of a member, that of a removal included.
    pub members_revision: i64,
    /// Values that cannot be read, by key. What they should say is not in the snapshot.
    pub unreadable: BTreeMap<String, DocumentError>,
}

impl Snapshot {
    /// Whether nobody takes part in the fleet, so nobody owns anything: a member leaves when it owns nothing, or is the last
    /// one, and is removed when it owns nothing.
    pub fn has_no_members(&self) -> bool {
        self.members.is_empty() && self.alive.is_empty() && self.unreadable.is_empty()
    }

    /// What [`Lineage::check`] needs.
    pub fn lineage(&self) -> Lineage {
        let mut history: BTreeMap<_, _> =
            self.links.iter().map(|(number, it)| (*number, it.link)).collect();
        let current = self.configuration.as_ref().map(|it| &it.committed);
        let number = |it: &Committed| it.document.body.number;
        history.extend(current.map(|it| (number(it), Link::from(it))));
        Lineage {
            cluster: self.cluster,
            revision: self.revision,
            current: current.map(number),
            history,
            restored: current.map_or(0, |it| it.document.body.restored),
            is_current_unreadable: self.configuration_error.is_some(),
        }
    }

    /// The groups of `configuration`, each with the balancers that were alive when it was created.
    pub fn births(&self) -> BTreeMap<GroupKey, BTreeSet<Name>> {
        let generation = self.configuration.as_ref().map(|it| &it.committed.document.body);
        generation.map(Generation::groups).unwrap_or_default()
    }

    /// Who belongs to the fleet, as lb-sharing needs it. A balancer whose value cannot be read belongs to it too, and is
    /// alive if its lease holds one that cannot be read: a newer version may have written it.
    pub fn membership(&self) -> Membership {
        let members = self.members.iter().map(|(name, it)| (name.clone(), it.document.body.epoch));
        // As if it had the result of every epoch, so that none takes it for one that owns nothing.
        let unreadable = self.unreadable_names("members").map(|name| (name, u64::MAX));
        let alive = self.alive.keys().cloned().chain(self.unreadable_names("alive"));
        let statements = self
            .alive
            .iter()
            .filter_map(|(name, it)| Some((name.clone(), it.document.body.statement.clone()?)));
        Membership {
            members: members.chain(unreadable).collect(),
            alive: alive.collect(),
            statements: statements.collect(),
        }
    }

    /// Returns why the value cannot be read.
    pub(super) fn put_link(
        &mut self,
        number: u64,
        mod_revision: i64,
        committed: Result<&Committed, &DocumentError>,
    ) -> Option<DocumentError> {
        match committed {
            Ok(committed) => {
                let link = KnownLink { link: committed.into(), mod_revision };
                self.links.insert(number, link);
                None
            }
            Err(error) => {
                self.links.remove(&number);
                Some(error.clone())
            }
        }
    }

    fn unreadable_names(&self, folder: &str) -> impl Iterator<Item = Name> {
        self.unreadable.keys().filter_map(move |key| {
            let (path, name) = key.rsplit_once('/')?;
            let is_there = path.rsplit_once('/').is_some_and(|(_, last)| last == folder);
            Name::new(name).ok().filter(|_| is_there)
        })
    }
}

/// A snapshot whose configuration is not fetched yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) snapshot: Snapshot,
    /// What `config/current` has; `None`: the key is not there.
    pub(super) current: Option<Result<Committed, DocumentError>>,
    epochs: Epochs,
    has_new_epoch: bool,
}

impl Draft {
    pub(super) fn read(keys: &Keys, rows: &Rows) -> Self {
        let mut draft = Self::default();
        draft.snapshot.cluster = rows.cluster;
        draft.snapshot.etcd_revision = rows.revision;
        for row in &rows.rows {
            draft.put(keys, row);
            if keys.parse(&row.key) == FleetKey::Changed {
                draft.snapshot.revision = draft.snapshot.revision.max(row.mod_revision);
            }
        }
        draft.update_epoch();
        draft
    }

    /// Brings the epoch of the snapshot up to date with its keys. It is large, so not for each of them.
    pub(super) fn update_epoch(&mut self) {
        if std::mem::take(&mut self.has_new_epoch) {
            (self.snapshot.epoch, self.snapshot.epoch_base) = self.epochs.latest();
        }
    }

    /// Takes note of when keys changed, whatever the change is.
    fn note_change(&mut self, keys: &Keys, text: &[u8], key: &FleetKey, at: i64) {
        let snapshot = &mut self.snapshot;
        snapshot.unreadable.remove(&*String::from_utf8_lossy(text));
        let has_prefix = |prefix: String| text.starts_with(prefix.as_bytes());
        if is_shared(key) {
            snapshot.revision = snapshot.revision.max(at);
        } else if has_prefix(keys.shares()) {
            snapshot.shares_revision = snapshot.shares_revision.max(at);
            self.has_new_epoch = true;
        } else if has_prefix(keys.members()) {
            snapshot.members_revision = snapshot.members_revision.max(at);
        }
    }

    pub(super) fn put(&mut self, keys: &Keys, row: &Row) {
        let key = keys.parse(&row.key);
        self.note_change(keys, &row.key, &key, row.mod_revision);
        let snapshot = &mut self.snapshot;
        let unreadable = match key {
            FleetKey::Current => {
                let current = self.current.insert(committed(row));
                current.as_ref().err().cloned()
            }
            FleetKey::History(number) => {
                snapshot.put_link(number, row.mod_revision, committed(row).as_ref())
            }
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
            FleetKey::Alive(name) => match Versioned::read(row) {
                Ok(liveness) => {
                    snapshot.alive.insert(name, Arc::new(liveness));
                    None
                }
                Err(error) => {
                    snapshot.alive.remove(&name);
                    Some(error)
                }
            },
            FleetKey::Shares(number) => self.epochs.put(number, None, row),
            FleetKey::Contribution { epoch, name } => self.epochs.put(epoch, Some(name), row),
            FleetKey::Chunk(_)
            | FleetKey::ChunkRemoved
            | FleetKey::Changed
            | FleetKey::MemberRemoved
            | FleetKey::Unknown => None,
        };
        if let Some(error) = unreadable {
            let key = String::from_utf8_lossy(&row.key).into_owned();
            snapshot.unreadable.insert(key, error);
        }
    }

    pub(super) fn delete(&mut self, keys: &Keys, key: &[u8], at: i64) {
        let text = key;
        let key = keys.parse(text);
        self.note_change(keys, text, &key, at);
        let snapshot = &mut self.snapshot;
        match key {
            FleetKey::Current => self.current = None,
            FleetKey::History(number) => drop(snapshot.links.remove(&number)),
            FleetKey::Override(key) => drop(snapshot.overrides.remove(&key)),
            FleetKey::Homes { region, pool } => drop(snapshot.homes.remove(&(region, pool))),
            FleetKey::Discovered(pool) => drop(snapshot.discovered.remove(&pool)),
            FleetKey::Member(name) => drop(snapshot.members.remove(&name)),
            FleetKey::Alive(name) => drop(snapshot.alive.remove(&name)),
            FleetKey::Shares(number) => self.epochs.delete(number, None),
            FleetKey::Contribution { epoch, name } => self.epochs.delete(epoch, Some(name)),
            FleetKey::Chunk(_)
            | FleetKey::ChunkRemoved
            | FleetKey::Changed
            | FleetKey::MemberRemoved
            | FleetKey::Unknown => {}
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
pub(super) fn store<K: Ord, T: Serialize + DeserializeOwned + Clone>(
    map: &mut BTreeMap<K, Versioned<T>>,
    key: K,
    row: &Row,
) -> Option<DocumentError> {
    match Versioned::read(row) {
        Ok(value) => {
            map.insert(key, value);
            None
        }
        Err(error) => {
            map.remove(&key);
            Some(error)
        }
    }
}
