//! The names behind the indices of the pinned maps, in a file beside the store, so that the command
//! line can name things while the daemon is dead.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use lb_base::Namespace;

/// Where the daemon keeps its state, unless said otherwise.
pub const DEFAULT_STATE_DIRECTORY: &str = "/var/lib/spillway";

/// Name of the file in the state directory.
pub const FILE: &str = "directory.json";

/// The names of one generation. Backends have no names: `BACKENDS` holds their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// The generation; the maps may be one behind or ahead while it is written.
    pub generation: u64,
    /// The network namespace that indices of interfaces belong to: the daemon's. `None`: an older daemon
    /// wrote the file, or this one has no procfs.
    #[serde(default)]
    pub network_namespace: Option<Namespace>,
    /// The daemon's own region.
    pub own_region: Option<String>,
    /// Regions by the index that a group holds.
    pub regions: BTreeMap<u32, String>,
    /// Pools by the index of their word.
    pub pools: BTreeMap<u32, String>,
    /// Services by the index of their counters.
    pub services: BTreeMap<u32, String>,
}

/// Why the directory cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The file cannot be opened, written or renamed.
    #[error("{}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{}: not a list of names that spillwayd wrote", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Directory {
    /// Reads the file of a state directory.
    ///
    /// # Errors
    /// [`DirectoryError`] says what is wrong with the file; it is missing before the first apply.
    pub fn read(state_directory: &Path) -> Result<Self, DirectoryError> {
        let path = state_directory.join(FILE);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|source| DirectoryError::Content { path, source }),
            Err(source) => Err(DirectoryError::File { path, source }),
        }
    }

    /// Replaces the file of a state directory: a reader sees the old one or the new one, whole.
    ///
    /// # Errors
    /// [`DirectoryError::File`]: the old file stands.
    pub fn write(&self, state_directory: &Path) -> Result<(), DirectoryError> {
        let path = state_directory.join(FILE);
        let next = state_directory.join(format!("{FILE}.next"));
        let written = serde_json::to_vec_pretty(self)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&next, text))
            .and_then(|()| fs::rename(&next, &path));
        written.map_err(|source| DirectoryError::File { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_reads_back_as_written_and_leaves_no_other_file() {
        let state = tempfile::tempdir().unwrap();
        let mut directory = Directory { generation: 1, ..Directory::default() };
        directory.write(state.path()).unwrap();
        directory.generation = 2;
        directory.own_region = Some("eu".into());
        directory.network_namespace = Some(Namespace { device: 4, inode: 4_026_531_840 });
        directory.pools.insert(7, "web".into());
        directory.write(state.path()).unwrap();
        assert_eq!(Directory::read(state.path()).unwrap(), directory);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_an_older_daemon_names_no_namespace() {
        let state = tempfile::tempdir().unwrap();
        let text = r#"{"generation":3,"own_region":null,"regions":{},"pools":{},"services":{}}"#;
        fs::write(state.path().join(FILE), text).unwrap();
        let read = Directory::read(state.path()).unwrap();
        assert_eq!((read.generation, read.network_namespace), (3, None));
    }

    #[test]
    fn a_missing_and_a_broken_file_are_told_apart() {
        let state = tempfile::tempdir().unwrap();
        let missing = Directory::read(state.path()).unwrap_err();
        assert!(
            matches!(&missing, DirectoryError::File { source, .. }
            if source.kind() == io::ErrorKind::NotFound),
            "{missing}"
        );
        fs::write(state.path().join(FILE), "{").unwrap();
        let broken = Directory::read(state.path()).unwrap_err();
        assert!(matches!(broken, DirectoryError::Content { .. }), "{broken}");
    }
}
