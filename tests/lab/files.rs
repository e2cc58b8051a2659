//! Where a lab has its files, what it is called, and what it says.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::programs::Program;

/// Written when everything runs: a folder without it is of a lab that is half built.
const RECORD: &str = "lab.json";

/// The names of a lab.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// What namespaces begin with, and the folder is called.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

/// A lab that is whole.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Record {
    pub(crate) balancers: u8,
    pub(crate) regions: u8,
    pub(crate) hosts: Vec<HostRecord>,
    /// In the order in which they are started.
    pub(crate) programs: Vec<Program>,
    /// What is printed of it.
    pub(crate) guide: String,
}

/// A host whose cable may be pulled.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HostRecord {
    pub(crate) node: String,
    pub(crate) v4: std::net::Ipv4Addr,
    pub(crate) v6: std::net::Ipv6Addr,
}

impl Place {
    /// Of a lab by its short name. Without a dash in it, no namespace of one lab looks like one of another.
    pub(crate) fn new(short: &str) -> Result<Self> {
        let fits = !short.is_empty() && short.len() <= 16;
        let is_plain = short.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ensure!(fits && is_plain, "--name {short:?}: must be 1 to 16 letters and digits");
        let name = format!("spillway-{short}");
        Ok(Self { folder: Path::new("/run").join(&name), name })
    }

    pub(crate) fn namespace(&self, node: &str) -> String {
        format!("{}-{node}", self.name)
    }

    pub(crate) fn node_folder(&self, node: &str) -> PathBuf {
        self.folder.join(node)
    }

    /// Its own BPF file system.
    pub(crate) fn bpf(&self) -> PathBuf {
        self.folder.join("bpf")
    }

    /// Makes the folder if need be, and keeps other commands out until the file goes.
    pub(crate) fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.folder).with_context(|| self.folder.display().to_string())?;
        let folder = File::open(&self.folder).context("open the folder of the lab")?;
        match folder.try_lock() {
            Ok(()) => Ok(folder),
            Err(TryLockError::WouldBlock) => {
                bail!("another `cargo xtask lab` is at work; wait for it, or end it by Ctrl-C")
            }
            Err(TryLockError::Error(error)) => Err(error).context("lock the folder of the lab"),
        }
    }

    /// What is there; `None`: nothing, or it is half built.
    pub(crate) fn record(&self) -> Result<Option<Record>> {
        match fs::read(self.folder.join(RECORD)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context(RECORD),
        }
    }

    /// Says that it is whole.
    pub(crate) fn write_record(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_string_pretty(record)?;
        fs::write(self.folder.join(RECORD), text + "\n").context(RECORD)
    }
}

/// Prints a line. A reader that is gone is no reason to stop.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// The same on standard error.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_parts_of_each_other() {
        let lab = Place::new("lab").unwrap();
        assert_eq!(lab.namespace("eu1"), "spillway-lab-eu1");
        assert!(!Place::new("lab2").unwrap().namespace("eu1").starts_with("spillway-lab-"));
        for wrong in ["", "lab-eu1", "../x", "a/b", "seventeenletters1"] {
            assert!(Place::new(wrong).is_err(), "{wrong}");
        }
    }
}
