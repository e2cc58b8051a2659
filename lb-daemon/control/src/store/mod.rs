//! What outlives the daemon: the generation in force with its numbers, and the daemon's own hash key, in one
//! embedded database in the state directory.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use error::Cause;
use redb::{Database, TableDefinition};

use lb_base::background;
use lb_model::{Configuration, ids::Ids};

mod error;
mod record;
mod rows;
mod schema;

pub use error::StoreError;
pub use record::Unusable;
pub use schema::{Revision, SchemaMismatch};

pub const FILE: &str = "spillway.redb";

/// The only table; [`record`] names its entries.
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
    /// Schema revision of the daemon that applied it.
    pub schema: Revision,
}

/// The open database, and what it contains. Only one process can open it.
#[derive(Debug)]
pub struct Store {
    file: StoreFile,
    /// `None` after a failed write: the database must be opened again first. Whoever writes has it, so that a disk that
    /// does not answer holds up nobody else.
    database: Option<Database>,
    hash_key: [u64; 2],
    /// What is certainly on disk, in the current format: a commit writes what differs from it.
    written: Option<Arc<Generation>>,
    generation: Option<Arc<Generation>>,
    /// The generation, if this version cannot use it.
    unusable: Option<Arc<Unusable>>,
}

impl Store {
    /// Opens or creates the database of a state directory.
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
        let read = || {
            let database = file.open()?;
            let record = match record::read(&database)? {
                Some(record) => record,
                None => record::create(&database)?,
            };
            Ok((database, record))
        };
        let (database, record) = read().map_err(|cause| file.error(cause))?;
        let record::Record { hash_key, stored, is_current } = record;
        let (generation, unusable) = match stored {
            None => (None, None),
            Some(Ok(generation)) => (Some(Arc::new(generation)), None),
            Some(Err(unusable)) => (None, Some(Arc::from(unusable))),
        };
        let written = generation.clone().filter(|_| is_current);
        Ok(Self { file, database: Some(database), hash_key, written, generation, unusable })
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

    pub fn applied_at(&self) -> Option<SystemTime> {
        let unusable = self.unusable.as_ref().map(|unusable| unusable.applied_at);
        self.generation.as_ref().map(|generation| generation.applied_at).or(unusable)
    }

    pub fn ids(&self) -> Option<&Ids> {
        let unusable = self.unusable.as_ref().map(|unusable| &unusable.ids);
        self.generation.as_ref().map(|generation| &*generation.ids).or(unusable)
    }

    /// Marks a valid generation as unusable. It stays unchanged on disk.
    pub fn set_aside(&mut self, cause: String) {
        if let Some(generation) = self.generation.take() {
            self.unusable = Some(Arc::new(Unusable::from_generation(&generation, cause)));
        }
    }

    /// Replaces the last generation. The new one is on disk when this returns. Only what differs is written. The disk is
    /// waited for on a thread of its own.
    ///
    /// # Errors
    /// [`StoreError`]: the last generation stays in force; after a crash either may be on disk.
    pub async fn commit(&mut self, generation: Generation) -> Result<(), StoreError> {
        let generation = Arc::new(generation);
        let (file, database, hash_key) = (self.file.clone(), self.database.take(), self.hash_key);
        let (before, after) = (self.written.take(), Arc::clone(&generation));
        let write = move || {
            let database = match database {
                Some(database) => database,
                None => file.open()?,
            };
            record::write(&database, &hash_key, before.as_deref(), &after)?;
            Ok(database)
        };
        let database = background::run(write).await.map_err(Cause::Inaccessible);
        let database = database.and_then(|written| written);
        self.database = Some(database.map_err(|cause| self.file.error(cause))?);
        self.written = Some(Arc::clone(&generation));
        self.generation = Some(generation);
        self.unusable = None;
        Ok(())
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

#[derive(Clone, Debug)]
struct StoreFile {
    directory: PathBuf,
}

impl StoreFile {
    fn new(state_directory: &Path) -> Self {
        Self { directory: state_directory.into() }
    }

    fn error(&self, cause: Cause) -> StoreError {
        StoreError { path: self.directory.join(FILE), cause }
    }

    /// Opens or creates the file. Only its owner may read it, because it contains the hash key.
    fn open(&self) -> Result<Database, Cause> {
        let made = || -> io::Result<File> {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(&self.directory)?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(self.directory.join(FILE))?;
            // After a crash a new file exists only if its directory is on disk too.
            File::open(&self.directory)?.sync_all()?;
            Ok(file)
        };
        let file = made().map_err(Cause::Inaccessible)?;
        Ok(Database::builder().create_file(file)?)
    }
}
