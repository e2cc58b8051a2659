use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// A file that lines are added to, which may be away for a while.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    /// `None`: it could not be opened yet, and is tried again with the next line.
    file: Option<File>,
    /// Whether it is the one that has the name, as far as is known.
    named: bool,
    /// Whether it ends within a line, as on a disk that was full.
    torn: bool,
}

impl Lines {
    /// Opens it. A pipe that is not read is opened once it is.
    ///
    /// # Errors
    /// It cannot be opened; the other error is of such a pipe.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Option<io::Error>)> {
        let (file, unread) = match append(path) {
            Ok(file) => (Some(file), None),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        Ok((Self { path: path.into(), file, named: true, torn: false }, unread))
    }

    /// Opens it anew. Where that fails the former one is written on.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.named = false;
        let file = append(&self.path)?;
        (self.file, self.named, self.torn) = (Some(file), true, false);
        Ok(())
    }

    /// Whether it could be opened.
    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Whether lines get to the file that has the name.
    pub(super) fn is_named(&self) -> bool {
        self.named
    }

    /// Adds a line, by one write: others may append to the file, too.
    pub(super) fn add(&mut self, line: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(append(&self.path)?),
        };
        let text = format!("{}{line}\n", if self.torn { "\n" } else { "" });
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Never waits for who reads a pipe.
fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(libc::O_NONBLOCK).open(path)
}
