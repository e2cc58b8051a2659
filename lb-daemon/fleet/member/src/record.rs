//! That a balancer is a member of a fleet, and what of the fleet it has in force: `fleet.json` in the state directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use lb_base::own_file::{self, Outlives, OwnFileError};
use lb_fleet::{documents::FleetMember, lineage::LineageGuard};
use lb_model::Name;
use lb_sharing::{
    GroupKey,
    epoch::{Epoch, Membership},
};
use serde::{Deserialize, Serialize};

use super::sharing::FleetView;

const FILE: &str = "fleet.json";

/// What is written to learn whether the disk answers.
const PROBE: &str = "fleet.json.probe";

/// The version that is written, and the newest that is read.
const FORMAT: u32 = 1;

/// Most bytes of the file.
const MOST: u64 = 64 << 20;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{path}: cannot be read: {source}")]
    Unreadable { path: String, source: OwnFileError },
    #[error("{path}: is damaged: {cause}")]
    Damaged { path: String, cause: String },
    #[error("{path}: has format {format}, and this version reads up to {FORMAT}")]
    Newer { path: String, format: u32 },
    #[error("{path}: cannot be written: {source}")]
    Unwritable { path: String, source: io::Error },
}

/// Membership of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MembershipRecord {
    format: u32,
    pub fleet: Name,
    /// This balancer's name in it.
    pub balancer: Name,
    /// What is in force here of what etcd has, and whether etcd has another past by now.
    pub guard: LineageGuard,
    /// What the fleet was when etcd was last read, so that capacities are shared without etcd too.
    pub view: Option<StoredView>,
    /// The members then, as a restore writes them back.
    #[serde(default)]
    pub members: BTreeMap<Name, FleetMember>,
}

/// The part of a [`FleetView`] that outlives the daemon: which balancers are alive does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredView {
    pub generation: u64,
    /// JSON has no maps whose keys are objects.
    pub births: Vec<(GroupKey, BTreeSet<Name>)>,
    pub members: BTreeMap<Name, u64>,
    pub epoch: Option<Epoch>,
    pub peers: BTreeMap<Name, SocketAddr>,
}

impl From<&FleetView> for StoredView {
    fn from(view: &FleetView) -> Self {
        Self {
            generation: view.generation,
            births: view
                .births
                .iter()
                .map(|(group, owners)| (group.clone(), owners.clone()))
                .collect(),
            members: view.membership.members.clone(),
            epoch: view.epoch.clone(),
            peers: view.peers.clone(),
        }
    }
}

impl From<StoredView> for FleetView {
    fn from(stored: StoredView) -> Self {
        Self {
            generation: stored.generation,
            births: stored.births.into_iter().collect(),
            membership: Membership { members: stored.members, ..Membership::default() },
            epoch: stored.epoch,
            peers: stored.peers,
        }
    }
}

impl MembershipRecord {
    pub fn new(fleet: Name, balancer: Name) -> Self {
        Self {
            format: FORMAT,
            fleet,
            balancer,
            guard: LineageGuard::default(),
            view: None,
            members: BTreeMap::new(),
        }
    }

    /// Where it is kept.
    pub fn path(state_directory: &Path) -> PathBuf {
        state_directory.join(FILE)
    }

    /// `None`: the balancer is no member of a fleet.
    ///
    /// # Errors
    /// [`RecordError`]
    pub fn read(state_directory: &Path) -> Result<Option<Self>, RecordError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let path = Self::path(state_directory);
        let shown = || path.display().to_string();
        let content = match own_file::read(&path, MOST) {
            Ok(content) => content,
            Err(error) if error.is_missing() => return Ok(None),
            Err(source) => return Err(RecordError::Unreadable { path: shown(), source }),
        };
        let damaged = |error: serde_json::Error| RecordError::Damaged {
            path: shown(),
            cause: error.to_string(),
        };
        let Version { format } = serde_json::from_slice(&content).map_err(damaged)?;
        if format > FORMAT {
            return Err(RecordError::Newer { path: shown(), format });
        }
        serde_json::from_slice(&content).map(Some).map_err(damaged)
    }

    /// Replaces the file. It outlives a crash of the host.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`]
    pub fn write(&self, state_directory: &Path) -> Result<(), RecordError> {
        let path = Self::path(state_directory);
        let written = serde_json::to_vec(self)
            .map_err(io::Error::other)
            .and_then(|content| own_file::replace(&path, &content, Outlives::Host));
        written
            .map_err(|source| RecordError::Unwritable { path: path.display().to_string(), source })
    }

    /// Writes a file of its own, and waits until it is on the disk. Whether there is room for it does not matter: a record can
    /// be removed without.
    ///
    /// # Errors
    /// Never.
    #[allow(clippy::unnecessary_wraps, reason = "as all that is done with the record")]
    pub(super) fn probe(state_directory: &Path) -> Result<(), RecordError> {
        let path = state_directory.join(PROBE);
        let _full_or_read_only = own_file::replace(&path, b"", Outlives::Host);
        let _not_written = std::fs::remove_file(&path);
        Ok(())
    }

    /// The balancer is independent from now on.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`]
    pub fn remove(state_directory: &Path) -> Result<(), RecordError> {
        let path = Self::path(state_directory);
        let removed = match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| File::open(state_directory)?.sync_all()),
        };
        removed
            .map_err(|source| RecordError::Unwritable { path: path.display().to_string(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(MembershipRecord::read(directory.path()).unwrap(), None);
        let record = MembershipRecord::new(name("edge"), name("lb-1"));
        record.write(directory.path()).unwrap();
        assert_eq!(MembershipRecord::read(directory.path()).unwrap(), Some(record));
        MembershipRecord::remove(directory.path()).unwrap();
        MembershipRecord::remove(directory.path()).unwrap();
        assert_eq!(MembershipRecord::read(directory.path()).unwrap(), None);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_and_not_independence() {
        let directory = tempfile::tempdir().unwrap();
        for (content, cause) in
            [("", "is damaged"), ("{}", "is damaged"), (r#"{"format":9}"#, "format 9")]
        {
            std::fs::write(directory.path().join(FILE), content).unwrap();
            let error = MembershipRecord::read(directory.path()).unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }
}
