//! Small files that the daemon keeps for its own next start: read as the input of a stranger, and replaced as a whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use nix::{fcntl::OFlag, unistd::geteuid};

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum OwnFileError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("is not a regular file of this user")]
    NotOwn,
    #[error("has more than {0} bytes")]
    TooLarge(u64),
}

impl OwnFileError {
    /// Whether there is no file, as before the first write.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a file of up to `most` bytes.
///
/// # Errors
/// It cannot be read, or is not one that this user's daemon wrote.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, OwnFileError> {
    // Neither a FIFO nor a symbolic link holds up the start or leads elsewhere.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
        return Err(OwnFileError::NotOwn);
    }
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(OwnFileError::TooLarge(most));
    }
    Ok(content)
}

/// What a replaced file must outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlives {
    /// The daemon: nothing is forced to the disk.
    Daemon,
    /// A crash of the host.
    Host,
}

/// Replaces a file, which only its owner may read: a reader sees the old content or the new one, whole.
///
/// # Errors
/// It cannot be written. The old content stays.
pub fn replace(path: &Path, content: &[u8], outlives: Outlives) -> io::Result<()> {
    let mut next = path.as_os_str().to_owned();
    next.push(".next");
    let next = Path::new(&next);
    let written = write_next(next, content, outlives).and_then(|()| fs::rename(next, path));
    if written.is_err() {
        let _the_first_error_says_more = fs::remove_file(next);
    }
    written?;
    match (outlives, path.parent()) {
        (Outlives::Host, Some(directory)) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

fn write_next(next: &Path, content: &[u8], outlives: Outlives) -> io::Result<()> {
    match fs::remove_file(next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // What a killed daemon left.
        _ => {}
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(next)?;
    file.write_all(content)?;
    match outlives {
        Outlives::Daemon => Ok(()),
        Outlives::Host => file.sync_all(),
    }
}
