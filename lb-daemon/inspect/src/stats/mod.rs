//! Everything that is counted, read from the pinned maps: what the Stats call, the command line, the
//! metrics and the status page are made of. It works with the daemon dead.
//!
//! Counters count from when their object was made; they stay over restarts of the daemon.

mod groups;
mod receiver;
mod remembered;
mod traffic;
mod verdicts;

use std::path::PathBuf;

use serde::Serialize;

pub use groups::GroupStats;
pub use receiver::ReceiverStats;
pub use remembered::{Budget, EventStats, Remembered, Table};
pub use traffic::{BackendStats, ServiceStats, Traffic};
pub use verdicts::{VerdictStats, action_word, sentence};

use crate::names::Names;
use lb_maps::{FlowTables, MapsError, PinnedMaps, directory::Directory};

/// What a balancer counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Packets under each verdict, by its number.
    pub verdicts: Vec<VerdictStats>,
    /// Services by address and port.
    pub services: Vec<ServiceStats>,
    /// Backends by address.
    pub backends: Vec<BackendStats>,
    /// Groups by pool, and within a pool in the order in which they are asked.
    pub groups: Vec<GroupStats>,
    /// What is remembered of connections.
    pub remembered: Remembered,
}

impl Stats {
    /// Reads the counters of a balancer's maps.
    ///
    /// # Errors
    /// What the kernel answers, or [`MapsError::Changing`].
    pub fn read(maps: &PinnedMaps, tables: &FlowTables, names: &Names) -> Result<Self, MapsError> {
        Ok(Self {
            verdicts: maps.verdicts()?.into_iter().map(Into::into).collect(),
            services: traffic::services(maps, names)?,
            backends: traffic::backends(maps, names)?,
            groups: groups::groups(maps, names)?,
            remembered: remembered::remembered(maps, tables, names)?,
        })
    }
}

/// Where a balancer's counters are.
#[derive(Clone, Debug)]
pub struct Source {
    /// The BPF file system.
    pub bpffs: PathBuf,
    /// The daemon's state directory, which has the names.
    pub state_directory: PathBuf,
}

impl Source {
    /// Reads them all. The pins are opened anew each time; it blocks for as long as that takes, some
    /// milliseconds and about a microsecond a service, backend and group.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout, or what the kernel
    /// answers.
    pub fn read(&self) -> Result<Stats, MapsError> {
        // Before the first generation there are no names, and nothing to name.
        let names = Directory::read(&self.state_directory).map(Names).unwrap_or_default();
        let maps = PinnedMaps::open(&self.bpffs)?;
        Stats::read(&maps, &FlowTables::open(&self.bpffs)?, &names)
    }
}
