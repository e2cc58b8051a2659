//! Everything that is counted, read from the pinned maps: what the Stats call, the command line, the
//! metrics and the status page are made of. It works with the daemon dead.
//!
//! Counters count from when their object was made; they stay over restarts of the daemon. Those of interfaces are the
//! kernel's and the drivers' own, which see what becomes of a frame after the program.

mod driver;
mod interfaces;
mod remembered;
mod traffic;

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use lb_common::abi::{
    counter::VerdictCounter,
    verdict::{Action, Verdict},
};
use lb_maps::{MapsError, PinnedMaps, ReceiverMaps, directory::Directory};
use lb_model::capacity::Connections;
use serde::Serialize;

use crate::names::Names;

pub use driver::DropStage;
pub use interfaces::{DriverDrops, InterfaceStats, TracepointDrops, interfaces};
pub use remembered::{EventStats, FlowsHeld, Remembered};
pub use traffic::{BackendStats, ServiceStats, Traffic};

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
    /// Interfaces that the program is attached to or sends out of, by name.
    pub interfaces: Vec<InterfaceStats>,
}

impl Stats {
    /// Reads the counters of a balancer's maps, which are pinned under a BPF file system, and of its interfaces.
    ///
    /// # Errors
    /// What the kernel answers, or [`MapsError::Changing`].
    pub fn read(bpffs: &Path, maps: &PinnedMaps, names: &Names) -> Result<Self, MapsError> {
        Ok(Self {
            verdicts: maps.verdicts()?.into_iter().map(Into::into).collect(),
            services: traffic::services(maps, names)?,
            backends: traffic::backends(maps, names)?,
            groups: groups(maps, names)?,
            remembered: remembered::remembered(maps, names)?,
            interfaces: interfaces(bpffs, maps, names)?,
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
        Stats::read(&self.bpffs, &PinnedMaps::open(&self.bpffs)?, &names)
    }
}

/// New connections of a group: a pool's backends in one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStats {
    pub pool: String,
    pub region: String,
    /// What was counted since the group was made.
    #[serde(flatten)]
    pub connections: Connections<u64>,
}

fn groups(maps: &PinnedMaps, names: &Names) -> Result<Vec<GroupStats>, MapsError> {
    let mut groups = Vec::new();
    for pool in names.pools(maps) {
        let name = names.pool(pool);
        for (_, group) in maps.pool_members(pool)?.unwrap_or_default().groups {
            groups.push(GroupStats {
                pool: name.clone(),
                region: names.region(group.region),
                connections: maps.group_connections(group.limiter)?.into(),
            });
        }
    }
    Ok(groups)
}

/// What a receiver did, and what it lets through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiverStats {
    /// Packets under each verdict, by its number.
    pub verdicts: Vec<VerdictStats>,
    /// Prefixes that tunnel packets may come from.
    pub sources: Vec<String>,
    /// VIPs that they may be for.
    pub vips: Vec<String>,
    /// Addresses where they end.
    pub endpoints: Vec<String>,
    /// UDP port where GUE ends; `None`: nowhere.
    pub gue_port: Option<u16>,
}

impl ReceiverStats {
    /// Reads the maps that a receiver has pinned under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout, or what the kernel
    /// answers.
    pub fn read(bpffs: &Path) -> Result<Self, MapsError> {
        let maps = ReceiverMaps::open(bpffs)?;
        let allowed = maps.allowed()?;
        Ok(Self {
            verdicts: maps.verdicts()?.into_iter().map(Into::into).collect(),
            sources: allowed.sources.iter().map(ToString::to_string).collect(),
            vips: allowed.vips.iter().map(ToString::to_string).collect(),
            endpoints: allowed.endpoints.iter().map(ToString::to_string).collect(),
            gue_port: allowed.gue_port.map(Into::into),
        })
    }
}

/// Packets under one verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictStats {
    /// The verdict, as in docs/verdicts.md.
    pub verdict: Cow<'static, str>,
    /// `pass`, `drop`, `transmit` or `redirect`.
    pub action: Cow<'static, str>,
    pub packets: u64,
    /// Bytes of the frames as they came in.
    pub bytes: u64,
}

impl From<(Verdict, VerdictCounter)> for VerdictStats {
    fn from((verdict, VerdictCounter { packets, bytes }): (Verdict, VerdictCounter)) -> Self {
        let (name, action) = (verdict.name(), action_word(verdict.action()));
        Self { verdict: name.into(), action: action.into(), packets, bytes }
    }
}

/// What the driver does, in a word.
pub fn action_word(action: Action) -> &'static str {
    match action {
        Action::Pass => "pass",
        Action::Drop => "drop",
        Action::Transmit => "transmit",
        Action::Redirect => "redirect",
    }
}

/// A meaning as one line.
pub fn sentence(meaning: &str) -> String {
    meaning.split_whitespace().collect::<Vec<_>>().join(" ")
}
