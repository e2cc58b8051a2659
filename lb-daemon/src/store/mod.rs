//! What must outlive the daemon: the generation in force with its numbers, and the daemon's own hash
//! key, in one embedded database in the state directory.

mod error;
mod file;
mod record;

use std::{path::Path, time::SystemTime};

use redb::{Database, TableDefinition};

use error::Cause;
pub use error::StoreError;

use crate::{ids::Ids, model::Configuration};

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
}

/// The open database. Only one process can have it open.
#[derive(Debug)]
pub struct Store {
    file: file::StoreFile,
    /// `None` after a write failed: the database must be opened anew before the next.
    database: Option<Database>,
    hash_key: [u64; 2],
    generation: Option<Generation>,
}

impl Store {
    /// Opens the database of a state directory, or makes both.
    ///
    /// # Errors
    /// [`StoreError`] says in one sentence what is wrong with the file; it is then left as it is.
    pub fn open(state_directory: &Path) -> Result<Self, StoreError> {
        let file = file::StoreFile::new(state_directory);
        let read = || {
            let database = file.open()?;
            let record = match record::read(&database)? {
                Some(record) => record,
                None => record::create(&database)?,
            };
            Ok((database, record))
        };
        let (database, record) = read().map_err(|cause| file.error(cause))?;
        let record::Record { hash_key, generation } = record;
        Ok(Self { file, database: Some(database), hash_key, generation })
    }

    /// The daemon's own hash key, made when the store was made.
    pub fn hash_key(&self) -> [u64; 2] {
        self.hash_key
    }

    /// The generation last committed; `None` before the first.
    pub fn generation(&self) -> Option<&Generation> {
        self.generation.as_ref()
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
        Ok(())
    }
}

fn begin(database: &Database) -> Result<redb::WriteTransaction, Cause> {
    let mut transaction = database.begin_write().map_err(Cause::write)?;
    // Immediate: the commit returns after the disk has it.
    transaction.set_durability(redb::Durability::Immediate).map_err(Cause::write)?;
    Ok(transaction)
}

#[cfg(test)]
mod tests;
