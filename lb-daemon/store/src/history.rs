//! The last generations: what is kept of them, and how an old one is read.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::SystemTime,
};

use redb::{Database, ReadableDatabase};

use super::{
    Revision, Series, StoreError, TABLE,
    error::Cause,
    record,
    rows::{Description, FORMAT, Rows, before_fleet_key, fixed, generation_key},
};
use lb_model::Configuration;
use lb_pieces::Digest;

/// Generations that the store keeps, the current one among them.
pub const HISTORY: usize = 20;

/// A generation as the history lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    pub number: u64,
    /// `None`: its description is damaged.
    pub applied_at: Option<SystemTime>,
    /// Who applied it; empty: unknown.
    pub who: String,
    /// Why, or what the call was; empty: unknown.
    pub why: String,
    /// Objects that it changed; `None`: unknown.
    pub changes: Option<u64>,
    /// Why it cannot be used, as far as that is known before it is read.
    pub unusable: Option<String>,
    /// It is this balancer's own, from before it joined its fleet, and cannot be read until it has left.
    pub is_before_fleet: bool,
}

/// A generation in the store.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) number: u64,
    /// Or what is wrong with it.
    pub(super) description: Result<Description, String>,
}

impl Kept {
    pub(super) fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.description.iter().flat_map(|description| description.pieces.digests())
    }

    /// `broken` are pieces that are missing or damaged, with the cause.
    pub(super) fn entry(&self, broken: &BTreeMap<Digest, String>) -> HistoryEntry {
        let number = self.number;
        match &self.description {
            Err(cause) => HistoryEntry {
                number,
                applied_at: None,
                who: String::new(),
                why: String::new(),
                changes: None,
                unusable: Some(cause.clone()),
                is_before_fleet: false,
            },
            Ok(description) => {
                let damage = description.pieces.digests().find_map(|digest| broken.get(digest));
                let unusable = damage.cloned().or_else(|| newer(description.schema));
                HistoryEntry {
                    number,
                    applied_at: Some(description.applied_at),
                    who: description.who.clone(),
                    why: description.why.clone(),
                    changes: description.changes,
                    unusable,
                    is_before_fleet: false,
                }
            }
        }
    }
}

/// Why a generation of another schema cannot be used.
pub(super) fn newer(schema: Revision) -> Option<String> {
    let own = Revision::CURRENT;
    (schema > own)
        .then(|| format!("it has schema revision {schema}, and this version supports {own}"))
}

/// The generations that are kept, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Of the series in force; the last one is the current generation.
    pub(super) generations: Vec<Kept>,
    /// Those of this balancer alone, while it is a member of a fleet.
    pub(super) before_fleet: Vec<Kept>,
}

impl History {
    /// Those that stay when the generation `number` of `series` is committed: not those that are too old, of another series
    /// or not from before it. A balancer's own are kept while it is a member of a fleet, and come back when it leaves.
    pub(super) fn retain(self, number: u64, series: Series) -> Self {
        let Self { generations, before_fleet } = self;
        // All on disk are of one series, so one whose description is damaged is of that too.
        let last = generations.iter().rev().find_map(|kept| kept.description.as_ref().ok());
        let last = last.map(|last| last.series);
        let was_shared = last.is_some_and(Series::is_shared);
        let is_of_series = last.is_none_or(|last| last.number == series.number);
        let is_sound = |kept: &Kept| kept.description.is_ok();
        let (mut generations, before_fleet) = match (was_shared, series.is_shared()) {
            (false, true) => (Vec::new(), generations.into_iter().filter(is_sound).collect()),
            (true, false) if !before_fleet.is_empty() => {
                (before_fleet.into_iter().filter(is_sound).collect(), Vec::new())
            }
            (_, is_shared) => {
                let before = if is_shared { before_fleet } else { Vec::new() };
                (if is_of_series { generations } else { Vec::new() }, before)
            }
        };
        generations.retain(|kept| kept.number < number);
        generations.sort_by_key(|kept| kept.number);
        generations.drain(..generations.len().saturating_sub(HISTORY - 1));
        Self { generations, before_fleet }
    }

    fn all(&self) -> impl Iterator<Item = &Kept> {
        self.before_fleet.iter().chain(&self.generations)
    }

    pub(super) fn pieces(&self) -> BTreeSet<Digest> {
        self.all().flat_map(Kept::digests).copied().collect()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = String> {
        let before = self.before_fleet.iter().map(|kept| before_fleet_key(kept.number));
        before.chain(self.generations.iter().map(|kept| generation_key(kept.number)))
    }

    /// The rows of those whose key is to be written and whose description is sound.
    ///
    /// # Errors
    /// A description cannot be encoded.
    pub(super) fn rows(&self, is_written: impl Fn(&str) -> bool) -> Result<Rows<Vec<u8>>, Cause> {
        let written = self.keys().zip(self.all()).filter(|(key, _)| is_written(key));
        let sound = written.filter_map(|(key, kept)| Some((key, kept.description.as_ref().ok()?)));
        sound.map(|(key, description)| description.row(key)).collect()
    }

    /// As they are listed.
    pub(super) fn entries(&self, broken: &BTreeMap<Digest, String>) -> Vec<HistoryEntry> {
        let before = self.before_fleet.iter().map(|kept| kept.entry(broken));
        let before = before.map(|entry| HistoryEntry { is_before_fleet: true, ..entry });
        before.chain(self.generations.iter().map(|kept| kept.entry(broken))).collect()
    }
}

/// Reads generations beside the loops. Clones read the same store.
#[derive(Clone, Debug, Default)]
pub struct GenerationReader(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    path: PathBuf,
    /// `None` while the database is opened again. Locked while it is read.
    database: RwLock<Option<Arc<Database>>>,
}

/// Why a generation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store does not have it.
    #[error("not kept")]
    NotKept,
    /// It is damaged, or this version refuses it.
    #[error("{0}")]
    Unusable(String),
    /// The file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GenerationReader {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(Arc::new(Shared { path, database: RwLock::default() }))
    }

    /// Waits until nothing is read.
    pub(super) fn set(&self, database: Option<Arc<Database>>) {
        *self.0.database.write().unwrap_or_else(PoisonError::into_inner) = database;
    }

    /// Reads and decodes the configuration of a generation. Waits for the disk, so it is not for a loop.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn read(&self, number: u64) -> Result<Configuration, ReadError> {
        let Shared { path, database } = &*self.0;
        let database = database.read().unwrap_or_else(PoisonError::into_inner);
        let failed = |cause| ReadError::Store(StoreError { path: path.clone(), cause });
        let database = database.as_ref().ok_or_else(|| {
            failed(Cause::Inaccessible(std::io::Error::other("the last write failed")))
        })?;
        let bytes = (|| -> Result<_, Cause> {
            let transaction = database.begin_read().map_err(Cause::read)?;
            let table = transaction.open_table(TABLE).map_err(Cause::read)?;
            let format = table.get(FORMAT).map_err(Cause::read)?;
            let format = format.and_then(|row| fixed(row.value())).map(u32::from_le_bytes);
            let key = generation_key(number);
            let row = table.get(&*key).map_err(Cause::read)?;
            let Some(row) = row.filter(|_| format == Some(record::CURRENT_FORMAT)) else {
                return Ok(Err(ReadError::NotKept));
            };
            let description = match Description::read(&key, number, row.value()) {
                Ok(description) => description,
                Err(cause) => return Ok(Err(ReadError::Unusable(cause))),
            };
            if let Some(cause) = newer(description.schema) {
                return Ok(Err(ReadError::Unusable(cause)));
            }
            let bytes = record::join_pieces(&table, &description.pieces)?;
            Ok(bytes.map_err(ReadError::Unusable))
        })();
        let bytes = bytes.map_err(failed)??;
        record::decode(&bytes).map_err(ReadError::Unusable)
    }
}
