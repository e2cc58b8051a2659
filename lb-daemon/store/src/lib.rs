//! What outlives the daemon: the generation in force with its numbers, the generations before it, and the daemon's own
//! hash key, in one embedded database in the state directory.
//!
//! The configurations of generations are kept in pieces that are named by their content ([`pieces`]). A piece is written
//! once, and removed with the last generation that has it. Pieces and descriptions prove themselves, so a damaged old
//! generation does not stop a start; the checksum covers all else.

use std::{
    fmt, io,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use error::Cause;
use tokio::time::timeout;

use redb::{Database, StorageError, TableDefinition};

use lb_base::background::Job;
use lb_model::{Configuration, ids::Ids};

#[cfg(test)]
extern crate self as lb_store;

mod counters;
mod earlier;
mod error;
mod file;
mod history;
mod pieces;
mod record;
mod rows;
mod schema;
mod schema_use;
mod series;
mod shared;
#[cfg(test)]
#[path = "../../fake/src/test_disk.rs"]
#[allow(unreachable_pub, reason = "public in the crate lb-fake")]
mod test_disk;

pub use counters::StoreCounters;
pub use error::StoreError;
use file::StoreFile;
pub use history::{GenerationReader, HISTORY, HistoryEntry, ReadError};
use record::Disk;
pub use record::Unusable;
pub use schema::{Revision, SchemaMismatch};
pub use schema_use::{SchemaNeed, needed_by};
pub use series::Series;
pub use shared::{EncodedConfiguration, SharedError, decode_shared, encode_shared};

pub const FILE: &str = "spillway.redb";

/// The only table; [`rows`] names its entries.
const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("spillway");

/// A configuration that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// From 1.
    pub number: u64,
    pub applied_at: SystemTime,
    pub configuration: Arc<Configuration>,
    /// The numbers of its objects in the maps.
    pub ids: Arc<Ids>,
    /// Schema revision that a daemon must understand to use it ([`needed_by`]).
    pub schema: Revision,
    /// Who applied it; empty: unknown.
    pub who: String,
    /// Why, or what the call was; empty: unknown.
    pub why: String,
    /// Objects that it changed; `None`: unknown.
    pub changes: Option<u64>,
    pub series: Series,
}

/// What a test injects into the writes of a store.
pub trait InjectedFault: fmt::Debug + Send + Sync {
    /// Called before each write, on its thread.
    ///
    /// # Errors
    /// The write fails with this error of the disk.
    fn before_write(&self) -> io::Result<()>;
}

/// A write that goes on beside the loop.
#[derive(Debug)]
struct Write {
    generation: Arc<Generation>,
    job: Job<Result<(Arc<Database>, Disk), Cause>>,
    /// Whether it was waited for in vain.
    is_stalled: bool,
}

/// The open database, and what it contains. Only one process can open it.
#[derive(Debug)]
pub struct Store {
    file: StoreFile,
    /// `None` after a failed write: the database must be opened again first.
    database: Option<Arc<Database>>,
    reader: GenerationReader,
    /// A write that goes on.
    write: Option<Write>,
    hash_key: [u64; 2],
    /// What is certainly on disk. A write has it while it lasts.
    disk: Option<Disk>,
    history: Arc<[HistoryEntry]>,
    generation: Option<Arc<Generation>>,
    /// The generation, if this version cannot use it.
    unusable: Option<Arc<Unusable>>,
    /// Why the file could only be read.
    unwritable: Option<StoreError>,
    counters: StoreCounters,
    fault: Option<Arc<dyn InjectedFault>>,
}

impl Store {
    /// Opens or creates the database of a state directory. If its disk takes no writes, the database is read, and
    /// [`Self::unwritable`] says so.
    ///
    /// # Errors
    /// [`StoreError`] says what is wrong with the file, which is left as it is. A configuration of a newer
    /// schema is refused; one that is invalid for this version becomes [`Self::unusable`].
    pub fn open(state_directory: &Path) -> Result<Self, StoreError> {
        let store = Self::open_any_schema(state_directory)?;
        match &store.unusable {
            Some(unusable) if unusable.schema > Revision::CURRENT => {
                Err(store.file.error(Cause::NewerSchema(unusable.schema)))
            }
            _ => Ok(store),
        }
    }

    /// Like [`Self::open`], but accepts a configuration of a newer schema, as [`Self::unusable`].
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_any_schema(state_directory: &Path) -> Result<Self, StoreError> {
        let file = StoreFile::new(state_directory);
        let reader = GenerationReader::new(file.path());
        let read = || -> Result<_, Cause> {
            let database = file.open()?;
            let record = match record::read(&database)? {
                Some(record) => record,
                None => record::create(&database)?,
            };
            Ok((database, record, None))
        };
        let read = match read() {
            Err(cause) if cause.is_unwritable_disk() => match file.read_only() {
                Ok(Some((database, record))) => {
                    Ok((database, record, Some(file.error(cause.reopened()))))
                }
                _ => Err(cause),
            },
            read => read,
        };
        let (database, record, unwritable) = read.map_err(|cause| file.error(cause))?;
        let record::Record { hash_key, stored, mut disk } = record;
        let (generation, unusable) = match stored {
            None => (None, None),
            Some(Ok(generation)) => (Some(Arc::new(generation)), None),
            Some(Err(unusable)) => (None, Some(Arc::from(unusable))),
        };
        if let Some(generation) = &generation {
            disk.know(generation);
        }
        let (database, history) = (Arc::new(database), disk.history());
        reader.set(Some(Arc::clone(&database)));
        let is_writable = unwritable.is_none();
        Ok(Self {
            file,
            database: is_writable.then_some(database),
            reader,
            write: None,
            hash_key,
            disk: is_writable.then_some(disk),
            history,
            generation,
            unusable,
            unwritable,
            counters: StoreCounters::default(),
            fault: None,
        })
    }

    /// Counts its writes there from now on.
    pub fn count_in(&mut self, counters: StoreCounters) {
        self.counters = counters;
    }

    /// Why the file could only be read, if nothing was written since.
    pub fn unwritable(&self) -> Option<&StoreError> {
        self.unwritable.as_ref()
    }

    /// Lets a test decide what becomes of writes.
    pub fn inject(&mut self, fault: Arc<dyn InjectedFault>) {
        self.fault = Some(fault);
    }

    /// Created at random with the store.
    pub fn hash_key(&self) -> [u64; 2] {
        self.hash_key
    }

    /// The last committed generation; `None` before the first.
    pub fn generation(&self) -> Option<&Generation> {
        self.generation.as_deref()
    }

    /// The last committed generation, if this version cannot use it; [`Self::generation`] is `None` then.
    pub fn unusable(&self) -> Option<&Arc<Unusable>> {
        self.unusable.as_ref()
    }

    /// Number of the last committed generation, usable or not; 0 before the first.
    pub fn number(&self) -> u64 {
        let unusable = self.unusable.as_ref().map(|unusable| unusable.number);
        self.generation
            .as_ref()
            .map(|generation| generation.number)
            .or(unusable)
            .unwrap_or_default()
    }

    /// The series of the last committed generation, usable or not.
    pub fn series(&self) -> Series {
        let unusable = self.unusable.as_ref().map(|unusable| unusable.series);
        let usable = self.generation.as_ref().map(|generation| generation.series);
        usable.or(unusable).unwrap_or_default()
    }

    pub fn applied_at(&self) -> Option<SystemTime> {
        let unusable = self.unusable.as_ref().map(|unusable| unusable.applied_at);
        self.generation.as_ref().map(|generation| generation.applied_at).or(unusable)
    }

    pub fn ids(&self) -> Option<&Ids> {
        let unusable = self.unusable.as_ref().map(|unusable| &unusable.ids);
        self.generation.as_ref().map(|generation| &*generation.ids).or(unusable)
    }

    /// The last generations, by number. The last one is the current one. A member of a fleet has those before it joined first.
    pub fn history(&self) -> &Arc<[HistoryEntry]> {
        &self.history
    }

    /// The last generation of this balancer's own from before it joined its fleet.
    pub fn last_before_fleet(&self) -> Option<u64> {
        let own = self.history.iter().filter(|entry| entry.is_before_fleet);
        own.map(|entry| entry.number).max()
    }

    /// Reads generations of the history.
    pub fn reader(&self) -> &GenerationReader {
        &self.reader
    }

    /// Marks a valid generation as unusable. It stays unchanged on disk.
    pub fn set_aside(&mut self, cause: String) {
        if let Some(generation) = self.generation.take() {
            self.unusable = Some(Arc::new(Unusable::from_generation(&generation, cause)));
        }
    }

    /// Replaces the last generation, and those of another series too. The new one is on disk when this returns. Only what differs is written. The
    /// disk is waited for on a thread of its own. If this is cancelled, the write goes on, and the next one waits for it.
    ///
    /// # Errors
    /// [`StoreError`]: the last generation stays in force; after a crash either may be on disk.
    pub async fn commit(&mut self, generation: Generation) -> Result<(), StoreError> {
        // Whatever became of it, the new one replaces it.
        let _ = self.finish_write().await;
        self.begin_write(generation);
        self.finish_write().await
    }

    /// As [`Self::commit`], but waits no longer than `limit`, and not at all for a disk that was waited for in vain and has
    /// not answered since. `None`: the write goes on, or did not begin. The next call may be with the same generation.
    ///
    /// # Errors
    /// As for [`Self::commit`].
    pub async fn commit_within(
        &mut self,
        generation: Generation,
        limit: Duration,
    ) -> Option<Result<(), StoreError>> {
        if self.is_stalled() {
            return None;
        }
        if self.write.as_ref().is_some_and(|write| *write.generation == generation) {
            return self.finish_within(limit).await;
        }
        let committed = timeout(limit, self.commit(generation)).await;
        self.note_stall(committed.is_err());
        committed.ok()
    }

    async fn finish_within(&mut self, limit: Duration) -> Option<Result<(), StoreError>> {
        let finished = timeout(limit, self.finish_write()).await;
        self.note_stall(finished.is_err());
        finished.ok()
    }

    fn note_stall(&mut self, is_stalled: bool) {
        if let Some(write) = &mut self.write {
            write.is_stalled = is_stalled;
        }
    }

    /// Whether a write was waited for in vain and still goes on.
    fn is_stalled(&self) -> bool {
        self.write.as_ref().is_some_and(|write| write.is_stalled && !write.job.is_done())
    }

    fn begin_write(&mut self, generation: Generation) {
        let generation = Arc::new(generation);
        let (file, hash_key) = (self.file.clone(), self.hash_key);
        let (open, reader) = (self.database.clone().zip(self.disk.take()), self.reader.clone());
        let after = Arc::clone(&generation);
        let fault = self.fault.clone();
        let write = move || {
            let injected = fault.map_or(Ok(()), |fault| fault.before_write());
            injected.map_err(|error| Cause::write(StorageError::Io(error)))?;
            let (database, disk) = match open {
                Some(open) => open,
                None => file.reopen(&reader, hash_key).map_err(Cause::reopened)?,
            };
            let disk = record::write(&database, &hash_key, disk, &after)?;
            Ok((database, disk))
        };
        let counters = self.counters.clone();
        let job = Job::start(move || counters.measure(write));
        self.write = Some(Write { generation, job, is_stalled: false });
    }

    /// Waits for a write that goes on, if there is one.
    ///
    /// # Errors
    /// As for [`Self::commit`].
    pub async fn finish_write(&mut self) -> Result<(), StoreError> {
        let Some(Write { job, .. }) = &mut self.write else { return Ok(()) };
        let written = job.done().await.map_err(Cause::Inaccessible).and_then(|written| written);
        let Some(Write { generation, .. }) = self.write.take() else { return Ok(()) };
        let (database, disk) = written.map_err(|cause| {
            // What is on disk is not certain any more.
            self.database = None;
            self.file.error(cause)
        })?;
        self.database = Some(database);
        self.history = disk.history();
        self.disk = Some(disk);
        self.generation = Some(generation);
        self.unusable = None;
        self.unwritable = None;
        Ok(())
    }

    /// Whether the last write failed, or the disk took none at the start.
    pub fn has_failed(&self) -> bool {
        self.database.is_none() && self.write.is_none()
    }
}

fn begin_write(database: &Database) -> Result<redb::WriteTransaction, Cause> {
    let mut transaction = database.begin_write().map_err(Cause::write)?;
    // The commit returns only after the data is on disk.
    transaction.set_durability(redb::Durability::Immediate).map_err(Cause::write)?;
    Ok(transaction)
}

#[cfg(test)]
mod tests;
