//! From plans, health and next hops to the maps: the one place that writes them.
//!
//! What the packet program can reach is immutable but for single words, so a change is written
//! beside what it replaces, published by one word a pool, and what it replaced is given back after a
//! grace period. A daemon that dies on the way leaves nothing half-published, and the next one finds
//! out from the maps alone what is in use.

mod apply;
mod backend_states;
mod checksum;
mod displaced_check;
mod free_space;
mod limits;
mod map_change;
mod member_states;
mod members;
mod next_hop_table;
mod next_hops;
mod previous;
mod published;
mod scan;
mod standby;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use backend_states::SharedStates;
use free_space::FreeSpace;
use lb_common::abi::clock::{Nanoseconds, USUAL_TICK};
use member_states::MemberStates;
use next_hop_table::NextHopTable;
use published::{MemberLocations, Published};

use lb_base::Namespace;
use lb_maps::{MapsError, WritableMaps, clock, directory::Directory};
use lb_model::{
    Name,
    ids::{Ids, Named},
    plan::PlannedBackend,
};

pub use apply::ApplySummary;
pub use checksum::{TableChecksums, checksum};
pub use displaced_check::{DisplacedSweeper, Round};
pub use free_space::Full;
pub use previous::PoolHomes;
pub use published::Home;

/// The maps and what is known of them.
#[derive(Debug)]
pub struct Reconciler {
    maps: WritableMaps,
    /// What the maps say, for packets.
    published: Published,
    /// What is free in them.
    free_space: FreeSpace,
    /// Where each member's word is.
    locations: MemberLocations,
    /// What each member's word says, for those too that have none.
    states: MemberStates,
    /// What is said of backends that several pools have.
    shared: SharedStates,
    /// Which next hop each backend is behind.
    next_hops: NextHopTable,
    /// The last plan's backends.
    backends: BTreeMap<IpAddr, PlannedBackend>,
    /// Whether a change failed half-way, so that the maps must be read again before the next.
    stale: bool,
    checksums: TableChecksums,
    /// Steps that the packet path's clock goes in.
    tick: Nanoseconds,
    settings: Settings,
}

impl Reconciler {
    /// Takes over the maps as they are: what is published stays, what is not is free.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn new(maps: WritableMaps, settings: Settings) -> Result<Self, ReconcileError> {
        let mut maps = maps;
        let (published, free_space) = scan::scan_published(&mut maps)?;
        let shared = scan::shared(&maps)?;
        let (states, next_hops) = scan::members(&maps, &published, &shared);
        let reconciler = Self {
            locations: MemberLocations::new(&published),
            backends: BTreeMap::new(),
            stale: false,
            checksums: TableChecksums::default(),
            tick: clock::tick().unwrap_or(USUAL_TICK),
            settings,
            maps,
            published,
            free_space,
            states,
            shared,
            next_hops,
        };
        reconciler.rewrite_member_words();
        reconciler.write_budgets();
        Ok(reconciler)
    }

    /// What the maps name: these numbers belong to somebody, and may not be given to others.
    pub fn named(&self) -> Named {
        let mut named = Named::default();
        for service in self.published.services.values() {
            named.services.insert(service.index);
            named.pools.insert(service.pool);
        }
        named.pools.extend(self.published.pools.keys());
        for group in self.published.groups.values() {
            named.regions.insert(group.group.region);
            let members = group.members.iter();
            named.backends.extend(members.map(|member| (member.id.index, member.id.incarnation)));
        }
        named
            .backends
            .extend(self.maps.backend_states().map(|(index, host)| (index, host.incarnation())));
        named
    }

    /// Digest over what packets are decided by, read back from the maps: see [`mod@checksum`].
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn checksum(&mut self) -> Result<u64, ReconcileError> {
        Ok(checksum(&self.maps, &mut self.checksums)?)
    }

    /// The maps, to read.
    pub fn maps(&self) -> &WritableMaps {
        &self.maps
    }
}

// What the daemon is told of the packet path at its start, beside the configuration.

/// The most that a rate can be, a second.
pub const MOST_ANSWERS: u32 = 1_000_000;

/// What the packet path is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Ids of the VLANs whose tag goes on what leaves by an interface, by index of the interface.
    pub vlans: BTreeMap<u32, u16>,
    /// Indices of the interfaces that have the program.
    pub attached: BTreeSet<u32>,
    /// ICMP errors that it may make, a second; 0: none. Each is at most 1,280 bytes, so what a flood of packets
    /// that are too large can have sent is 100 Mbit/s by default.
    pub icmp_errors: u32,
    /// Echo requests that it answers, a second; 0: none.
    pub icmp_echoes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            vlans: BTreeMap::new(),
            attached: BTreeSet::new(),
            icmp_errors: 10_000,
            icmp_echoes: 1_000,
        }
    }
}

/// Why the maps could not be brought to what is wanted.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The kernel refused something.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// A map has no free_space; nothing was changed.
    #[error(transparent)]
    Full(#[from] Full),
    /// A map has no free_space while remaps settle; nothing was changed.
    #[error(
        "{full}; {pools} pools are still settling after a remap, and give back what they \
         needed before when their settle time is over"
    )]
    Settling {
        /// What there is no room for.
        full: Full,
        /// Pools that have two versions.
        pools: usize,
    },
    /// A number is another's: the ids do not go with these maps. Nothing was changed.
    #[error("backend {address}: its number {index} belongs to {owner}, which the maps still name")]
    NumberTaken {
        /// The backend.
        address: IpAddr,
        /// Its number.
        index: u32,
        /// Whose it is.
        owner: IpAddr,
    },
    /// A next-hop word has 16 bits for the interface.
    #[error("interface {0}: its index is beyond 65535, which a next hop cannot name")]
    InterfaceIndex(u32),
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
