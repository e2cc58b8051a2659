use std::{io, path::PathBuf};

use redb::{DatabaseError, StorageError};

use super::Revision;
use lb_base::{lock_owner, write_hint};

/// Why the store cannot be used: `/var/lib/spillway/spillway.redb: cause`.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", .path.display())]
pub struct StoreError {
    pub(super) path: PathBuf,
    pub(super) cause: Cause,
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match &self.cause {
            Cause::Locked => {
                let other = lock_owner::named(&self.path);
                format!("stop the other one{other}, or give each its own --state-dir")
            }
            Cause::Newer(_) => {
                "run the newer spillwayd, or give this one another --state-dir".into()
            }
            Cause::NewerSchema(_) => {
                "run the newer spillwayd; or start this one with --any-schema: packets go on as they are, and the \
                 configuration waits for `spillway apply --any-schema`"
                    .into()
            }
            Cause::Foreign(_) | Cause::Damaged(_) => {
                "put a good copy in its place, or move it away to begin without configuration"
                    .into()
            }
            Cause::Inaccessible(error) => {
                let directory = self.path.parent().unwrap_or(&self.path);
                write_hint(error, directory, "--state-dir")
            }
            Cause::Write(error) if is_full(error) => {
                "make room on the disk, then apply again".into()
            }
            Cause::Write(_) => "see to the disk, then apply again".into(),
        }
    }
}

fn is_full(error: &redb::Error) -> bool {
    matches!(error, redb::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("another spillwayd uses it")]
    Locked,
    #[error("cannot be opened: {0}")]
    Inaccessible(io::Error),
    #[error("is not a store of spillwayd: {0}")]
    Foreign(String),
    #[error("was written by a newer spillwayd, in format {0}")]
    Newer(u32),
    #[error(
        "holds a configuration of a newer spillwayd, of schema revision {0}, and this one knows {current}",
        current = Revision::CURRENT
    )]
    NewerSchema(Revision),
    #[error("is damaged: {0}")]
    Damaged(String),
    #[error("cannot be written: {0}")]
    Write(Box<redb::Error>),
}

impl Cause {
    pub(super) fn write(error: impl Into<redb::Error>) -> Self {
        Self::Write(Box::new(error.into()))
    }

    pub(super) fn read(error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::Io(error) => Self::Inaccessible(error),
            error => Self::Damaged(error.to_string()),
        }
    }
}

impl From<DatabaseError> for Cause {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::Locked,
            // The magic number at its beginning is not that of a database.
            DatabaseError::Storage(StorageError::Io(error))
                if error.kind() == io::ErrorKind::InvalidData =>
            {
                Self::Foreign(error.to_string())
            }
            DatabaseError::Storage(StorageError::Io(error)) => Self::Inaccessible(error),
            error => Self::Damaged(error.to_string()),
        }
    }
}
