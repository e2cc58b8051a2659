//! The BPF file system: mounted where a new machine has not, and one daemon at a time.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    mount::{MsFlags, mount},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};

use super::{DEFAULT_BPFFS, Pins};

/// Why pins cannot be kept somewhere.
#[derive(Debug, thiserror::Error)]
pub enum BpffsError {
    /// It is some other file system.
    #[error(
        "{path}: not a BPF file system: mount one with `mount -t bpf bpf {path}`",
        path = .path.display()
    )]
    NotBpf {
        /// The directory.
        path: PathBuf,
    },
    /// It could not be mounted.
    #[error("{}: cannot mount a BPF file system", .path.display())]
    Mount {
        /// The directory.
        path: PathBuf,
        source: Errno,
    },
    /// A directory or file below it cannot be made, read or removed.
    #[error("{}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// Another daemon of the component uses these pins.
    #[error(
        "{}: in use by another spillwayd: stop it first, or give this one another --bpffs",
        .path.display()
    )]
    InUse {
        /// The directory of the pins.
        path: PathBuf,
    },
}

/// Makes sure that a directory is a BPF file system; the default one is mounted if need be.
///
/// # Errors
/// [`BpffsError`] says what is in the way.
pub(super) fn prepare(bpffs: &Path) -> Result<(), BpffsError> {
    let kind = statfs(bpffs).map(|status| status.filesystem_type());
    match kind {
        Ok(BPF_FS_MAGIC) => Ok(()),
        Ok(_) if bpffs == Path::new(DEFAULT_BPFFS) => {
            let path = bpffs.display();
            tracing::info!(%path, "{path}: mounting a BPF file system");
            mount(Some("bpf"), bpffs, Some("bpf"), MsFlags::empty(), None::<&str>)
                .map_err(|source| BpffsError::Mount { path: bpffs.into(), source })
        }
        Ok(_) => Err(BpffsError::NotBpf { path: bpffs.into() }),
        Err(error) => Err(BpffsError::File { path: bpffs.into(), source: error.into() }),
    }
}

/// Makes a directory and those above it.
pub(super) fn make_directory(path: &Path) -> Result<(), BpffsError> {
    fs::create_dir_all(path).map_err(|source| BpffsError::File { path: path.into(), source })
}

/// Holds a component's pins until dropped, or until the process ends however it ends.
#[derive(Debug)]
pub(super) struct PinsLock(#[expect(dead_code, reason = "held, not used")] Flock<File>);

impl PinsLock {
    /// Takes the lock; its directory must be there.
    ///
    /// # Errors
    /// [`BpffsError::InUse`], or [`BpffsError::File`].
    pub(super) fn take(pins: &Pins) -> Result<Self, BpffsError> {
        let path = pins.root().to_owned();
        let directory = match File::open(&path) {
            Ok(directory) => directory,
            Err(source) => return Err(BpffsError::File { path, source }),
        };
        match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Self(lock)),
            Err((_, Errno::EWOULDBLOCK)) => Err(BpffsError::InUse { path }),
            Err((_, error)) => Err(BpffsError::File { path, source: error.into() }),
        }
    }
}
