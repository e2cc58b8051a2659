//! What must outlive the daemon: the generation in force with its numbers, and the daemon's own hash
//! key, in one embedded database in the state directory.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use error::Cause;
use redb::{Database, TableDefinition};

use lb_model::{Configuration, ids::Ids};

mod error;
mod record;
mod schema;

pub use error::StoreError;
pub use record::Unusable;
pub use schema::{Revision, SchemaMismatch};

/// Name of the database in the state directory.
pub const FILE: &str = "spillway.redb";

/// Everything stands in one table, by the names in [`record`].
const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("spillway");

/// A configuration that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number, from 1.
    pub number: u64,
    /// When it came into force.
    pub applied_at: SystemTime,
    /// The configuration.
    pub configuration: Configuration,
    /// Its numbers in the maps.
    pub ids: Ids,
    /// Schema revision of the daemon that put it in force.
    pub schema: Revision,
}

/// The open database. Only one process can have it open.
#[derive(Debug)]
pub struct Store {
    file: StoreFile,
    /// `None` after a write failed: the database must be opened anew before the next.
    database: Option<Database>,
    hash_key: [u64; 2],
    generation: Option<Generation>,
    /// What stands in the place of a generation that this version cannot use.
    unusable: Option<Unusable>,
}

impl Store {
    /// Opens the database of a state directory, or makes both.
    ///
    /// # Errors
    /// [`StoreError`] says in one sentence what is wrong with the file; it is then left as it is. A configuration
    /// of a newer schema is refused; one that breaks the rules of this version is [`Self::unusable`].
    pub fn open(state_directory: &Path) -> Result<Self, StoreError> {
        let store = Self::open_any_schema(state_directory)?;
        match &store.unusable {
            Some(Unusable { schema, .. }) if *schema > Revision::CURRENT => {
                Err(store.file.error(Cause::NewerSchema(*schema)))
            }
            _ => Ok(store),
        }
    }

    /// As [`Self::open`], but a configuration of a newer schema is [`Self::unusable`] too.
    ///
    /// # Errors
    /// As there.
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
        let record::Record { hash_key, stored } = record;
        let (generation, unusable) = match stored {
            None => (None, None),
            Some(Ok(generation)) => (Some(generation), None),
            Some(Err(unusable)) => (None, Some(*unusable)),
        };
        Ok(Self { file, database: Some(database), hash_key, generation, unusable })
    }

    /// The daemon's own hash key, made when the store was made.
    pub fn hash_key(&self) -> [u64; 2] {
        self.hash_key
    }

    /// The generation last committed; `None` before the first.
    pub fn generation(&self) -> Option<&Generation> {
        self.generation.as_ref()
    }

    /// The generation last committed where this version cannot use it; then [`Self::generation`] is `None`.
    pub fn unusable(&self) -> Option<&Unusable> {
        self.unusable.as_ref()
    }

    /// Number of the generation last committed, whether it can be used or not; 0 before the first.
    pub fn number(&self) -> u64 {
        let unusable = self.unusable.as_ref().map(|unusable| unusable.number);
        self.generation
            .as_ref()
            .map(|generation| generation.number)
            .or(unusable)
            .unwrap_or_default()
    }

    /// When it was committed.
    pub fn applied_at(&self) -> Option<SystemTime> {
        let unusable = self.unusable.as_ref().map(|unusable| unusable.applied_at);
        self.generation.as_ref().map(|generation| generation.applied_at).or(unusable)
    }

    /// Its numbers in the maps.
    pub fn ids(&self) -> Option<&Ids> {
        let unusable = self.unusable.as_ref().map(|unusable| &unusable.ids);
        self.generation.as_ref().map(|generation| &generation.ids).or(unusable)
    }

    /// The generation is valid and still of no use. On disk it stays as it is.
    pub fn set_aside(&mut self, cause: String) {
        if let Some(generation) = self.generation.take() {
            self.unusable = Some(Unusable::from_generation(generation, cause));
        }
    }

    /// Puts a generation in the place of the last one. It is on disk when this returns.
    ///
    /// # Errors
    /// [`StoreError`]: the last one stands, here; on disk either may be found after a crash.
    pub fn commit(&mut self, generation: Generation) -> Result<(), StoreError> {
        let mut write = || {
            let database = match self.database.take() {
                Some(database) => database,
                None => self.file.open()?,
            };
            record::write(&database, &self.hash_key, Some(&generation))?;
            self.database = Some(database);
            Ok(())
        };
        write().map_err(|cause| self.file.error(cause))?;
        self.generation = Some(generation);
        self.unusable = None;
        Ok(())
    }
}

fn begin_write(database: &Database) -> Result<redb::WriteTransaction, Cause> {
    let mut transaction = database.begin_write().map_err(Cause::write)?;
    // Immediate: the commit returns after the disk has it.
    transaction.set_durability(redb::Durability::Immediate).map_err(Cause::write)?;
    Ok(transaction)
}

#[cfg(test)]
mod tests;

/// Where the database is.
#[derive(Debug)]
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

    /// Opens the file, or makes it. It holds the hash key: only its owner may read it.
    fn open(&self) -> Result<Database, Cause> {
        let made = || -> io::Result<File> {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(&self.directory)?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(self.directory.join(FILE))?;
            // A new file is there after a crash only once its directory is on disk.
            File::open(&self.directory)?.sync_all()?;
            Ok(file)
        };
        let file = made().map_err(Cause::Inaccessible)?;
        Ok(Database::builder().create_file(file)?)
    }
}
