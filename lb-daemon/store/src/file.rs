//! The file of the store.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{Database, StorageBackend as _, backends::InMemoryBackend};

use super::{
    FILE, GenerationReader, StoreError,
    error::Cause,
    record::{self, Disk, Record},
};

#[derive(Clone, Debug)]
pub(super) struct StoreFile {
    directory: PathBuf,
}

impl StoreFile {
    pub(super) fn new(state_directory: &Path) -> Self {
        Self { directory: state_directory.into() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    pub(super) fn error(&self, cause: Cause) -> StoreError {
        StoreError { path: self.path(), cause }
    }

    /// Opens or creates the file. Only its owner may read it, because it contains the hash key.
    pub(super) fn open(&self) -> Result<Database, Cause> {
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

    /// Opens the file again after a failed write, and says what it has, unless that is of no use any more. Waits for
    /// generations that are being read.
    pub(super) fn reopen(
        &self,
        reader: &GenerationReader,
        hash_key: [u64; 2],
    ) -> Result<(Arc<Database>, Disk), Cause> {
        // A file can be opened once at a time.
        reader.set(None);
        let database = Arc::new(self.open()?);
        let disk = match record::read(&database) {
            Ok(Some(record)) if record.hash_key == hash_key => record.disk,
            Err(cause @ Cause::Inaccessible(_)) => return Err(cause),
            _ => Disk::replaced(),
        };
        reader.set(Some(Arc::clone(&database)));
        Ok((database, disk))
    }

    /// What the file has, by a copy in memory: the database library mends a file of a killed daemon, which needs writes.
    pub(super) fn read_only(&self) -> Result<Option<(Database, Record)>, Cause> {
        let content = fs::read(self.directory.join(FILE)).map_err(Cause::Inaccessible)?;
        let memory = InMemoryBackend::new();
        let filled = memory.set_len(content.len() as u64).and_then(|()| memory.write(0, &content));
        filled.map_err(Cause::Inaccessible)?;
        let database = Database::builder().create_with_backend(memory)?;
        let record = record::read(&database)?;
        Ok(record.map(|record| (database, record)))
    }
}
