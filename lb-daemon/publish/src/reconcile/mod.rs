//! The only writers of the packet path's maps: the [`Reconciler`] brings them to a plan, and [`MemberWords`] writes what
//! follows from health and next hops.
//!
//! What packets can reach is immutable except for single words. So a change is written beside what it
//! replaces and published with one word per pool, and what it replaced is freed after a grace period. If the
//! daemon dies on the way, nothing is half published, and the next daemon finds out from the maps alone what
//! is in use.
//!
//! The reconciler may wait, for tables to be built and for grace periods. The owner of member words never does, so that
//! a failed backend gets no connections meanwhile. They share nothing: the reconciler sends steps.

mod apply;
mod checksum;
mod flow_walk;
mod free_space;
mod map_change;
mod members_change;
mod packet_path;
mod previous;
mod published;
mod reader;
mod scan;
mod table_space;
mod vips;
mod words;

use std::{net::IpAddr, path::Path, sync::Arc};

use tokio::sync::watch;

use free_space::FreeSpace;
use members_change::PlannedMembers;
use published::Published;
use reader::ReadGroups;
use words::Steps;

use lb_base::{Namespace, loops::LoopCounters};
use lb_maps::{Attached, MapsError, MemberMaps, PinnedMaps, WritableMaps, directory::Directory};
use lb_model::{Name, ids::Ids, unserved::LocalHost};
use lb_net::ConfiguredInterfaces;

pub use apply::ApplySummary;
pub use checksum::{TableChecksums, checksum, pool_checksums};
pub use flow_walk::{FlowWalk, Round};
pub use free_space::{Full, FullMap};
pub use previous::PoolHomes;
pub use published::Home;
pub use reader::{InterfaceStatus, PathReader, Reader};
pub use words::{MemberPath, MemberWords};

#[derive(Debug)]
pub struct Reconciler {
    maps: WritableMaps,
    /// What packets decide by.
    published: Published,
    /// What is free in the maps.
    free_space: FreeSpace,
    /// What the owner of member words knows of pools and backends; `None` if it was not sent all of it yet.
    planned: Option<PlannedMembers>,
    /// What this host is to VIPs.
    host: Arc<LocalHost>,
    /// To the owner of member words.
    steps: Steps,
    /// Whether a change failed half-way: then the maps must be read again first.
    stale: bool,
    /// The groups that the status shows.
    shown: watch::Sender<Arc<ReadGroups>>,
}

impl Reconciler {
    /// Takes over the maps as they are. What is not published is free.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn open(
        mut maps: WritableMaps,
        member_maps: MemberMaps,
        settings: Settings,
    ) -> Result<(Self, MemberWords), ReconcileError> {
        let (published, free_space) = scan::scan_published(&mut maps)?;
        let (words, steps) = MemberWords::new(member_maps, &published, settings)?;
        let shown = watch::Sender::new(Arc::new(reader::read_groups(&published)));
        let reconciler = Self {
            maps,
            published,
            free_space,
            planned: None,
            host: Arc::default(),
            steps,
            stale: false,
            shown,
        };
        Ok((reconciler, words))
    }

    /// Reads the same maps, which are pinned in `bpffs`.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn reader(&self, bpffs: &Path, attached: Arc<Attached>) -> Result<Reader, ReconcileError> {
        Ok(Reader::new(PinnedMaps::open(bpffs)?, attached, self.shown.subscribe()))
    }

    /// Whether the owner of member words does not know all of the plan, as after a change that failed half-way.
    fn is_incomplete(&self) -> bool {
        self.stale || self.planned.is_none()
    }

    /// Shows what is published now.
    fn show(&self) {
        self.shown.send_replace(Arc::new(reader::read_groups(&self.published)));
    }

    pub fn maps(&self) -> &WritableMaps {
        &self.maps
    }
}

/// Largest rate, per second.
pub const MOST_ANSWERS: u32 = 1_000_000;

/// What the packet path is set to at the start, besides the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The interfaces that settings name.
    pub interfaces: ConfiguredInterfaces,
    /// ICMP errors per second; 0 for none. Each has at most 1,280 bytes, so by default a flood of packets
    /// that are too large causes at most 100 Mbit/s of answers.
    pub icmp_errors: u32,
    /// Echo requests answered per second; 0 for none.
    pub icmp_echoes: u32,
    /// Of the loop that takes the steps.
    pub loop_counters: LoopCounters,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interfaces: ConfiguredInterfaces::default(),
            icmp_errors: 10_000,
            icmp_echoes: 10_000,
            loop_counters: LoopCounters::default(),
        }
    }
}

/// Why the maps could not be brought to a plan.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The kernel refused a step.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// A map has no room; nothing was changed.
    #[error(transparent)]
    Full(#[from] Full),
    /// A map has no room while remaps settle; nothing was changed.
    #[error(
        "{full}; {pools} pools are still in a remap and free entries when their settle time is over"
    )]
    Settling {
        full: Full,
        /// Pools that have a previous version.
        pools: usize,
    },
    /// Another backend has the number: ids and maps do not belong together. Nothing was changed.
    #[error("backend {address}: its number {index} is in use by {owner} in the maps")]
    NumberTaken { address: IpAddr, index: u32, owner: IpAddr },
    /// A next-hop word has 16 bits for the interface.
    #[error("interface {0}: next hops support interface indices up to 65535")]
    InterfaceIndex(u32),
    /// The owner of member words has ended.
    #[error("the daemon is stopping")]
    Stopping,
}

impl ReconcileError {
    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Settling { .. })
    }
}

/// The names of a generation's numbers, for the file that the command line reads.
pub fn directory(generation: u64, own_region: Option<&Name>, ids: &Ids) -> Directory {
    Directory {
        generation,
        network_namespace: Namespace::current().ok(),
        own_region: own_region.map(ToString::to_string),
        regions: ids.regions().map(|(name, index)| (index, name.to_string())).collect(),
        pools: ids.pools().map(|(name, index)| (index, name.to_string())).collect(),
        services: ids.services().map(|(name, index)| (index, name.to_string())).collect(),
    }
}
