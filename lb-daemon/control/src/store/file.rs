use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use redb::Database;

use super::{
    FILE,
    error::{Cause, StoreError},
};

/// Where the database is.
#[derive(Debug)]
pub(super) struct StoreFile {
    directory: PathBuf,
}

impl StoreFile {
    pub(super) fn new(state_directory: &Path) -> Self {
        Self { directory: state_directory.into() }
    }

    pub(super) fn error(&self, cause: Cause) -> StoreError {
        StoreError { path: self.directory.join(FILE), cause }
    }

    /// Opens the file, or makes it. It holds the hash key: only its owner may read it.
    pub(super) fn open(&self) -> Result<Database, Cause> {
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
