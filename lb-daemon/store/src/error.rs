use std::{io, path::PathBuf};

use redb::{DatabaseError, StorageError};

use super::Revision;
use lb_base::{lock_owner, write_hint};

/// Why the store cannot be used, such as `/var/lib/spillway/spillway.redb: cause`.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", .path.display())]
pub struct StoreError {
    pub(super) path: PathBuf,
    pub(super) cause: Cause,
}

impl StoreError {
    pub fn hint(&self) -> String {
        match &self.cause {
            Cause::Locked => {
                let other = lock_owner::named(&self.path);
                format!("stop the other daemon{other}, or give each its own --state-dir")
            }
            Cause::Newer(_) => {
                "run the newer spillwayd, or give this one another --state-dir".into()
            }
            Cause::NewerSchema(_) => {
                "run the newer spillwayd, or start this one with --any-schema: packets are forwarded as before until \
                 `spillway apply --any-schema`"
                    .into()
            }
            Cause::Foreign(_) | Cause::Damaged(_) => {
                "restore a good copy, or move the file away to start without a configuration"
                    .into()
            }
            Cause::Inaccessible(error) => {
                let directory = self.path.parent().unwrap_or(&self.path);
                write_hint(error, directory, "--state-dir")
            }
            Cause::Write(error) => match kind(error) {
                Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                    "free space on the disk, then apply again".into()
                }
                Some(io::ErrorKind::ReadOnlyFilesystem) => {
                    "the file system has become read-only, perhaps after an error of the disk (`dmesg`): repair it, mount \
                     it writable, then apply again"
                        .into()
                }
                _ => "repair the disk, then apply again".into(),
            },
        }
    }
}

fn kind(error: &redb::Error) -> Option<io::ErrorKind> {
    match error {
        redb::Error::Io(error) => Some(error.kind()),
        _ => None,
    }
}

/// Whether this is about the disk or its file system, which may still be read, and not about the file.
fn is_of_disk(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | ReadOnlyFilesystem)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("in use by another spillwayd")]
    Locked,
    #[error("cannot be opened: {0}")]
    Inaccessible(io::Error),
    #[error("is not a store of spillwayd: {0}")]
    Foreign(String),
    #[error("was written by a newer spillwayd, in format {0}")]
    Newer(u32),
    #[error(
        "holds a configuration with schema revision {0} of a newer spillwayd, and this one supports {current}",
        current = Revision::CURRENT
    )]
    NewerSchema(Revision),
    #[error("is damaged: {0}")]
    Damaged(String),
    #[error("cannot be written: {0}")]
    Write(Box<redb::Error>),
}

impl Cause {
    /// Whether the file may be readable although its disk takes no writes.
    pub(super) fn is_unwritable_disk(&self) -> bool {
        match self {
            Self::Inaccessible(error) => is_of_disk(error.kind()),
            Self::Write(error) => kind(error).is_some_and(is_of_disk),
            _ => false,
        }
    }

    /// The same for a file that was open before: whatever its disk lacks now, its path was writable.
    pub(super) fn reopened(self) -> Self {
        match self {
            Self::Inaccessible(error) => Self::write(StorageError::Io(error)),
            other => other,
        }
    }

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
            // The magic number at the beginning is not that of a database.
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
