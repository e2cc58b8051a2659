//! The only writer of the packet path's maps: applies plans, health and next hops to them.
//!
//! What packets can reach is immutable except for single words. So a change is written beside what it
//! replaces and published with one word per pool, and what it replaced is freed after a grace period. If the
//! daemon dies on the way, nothing is half published, and the next daemon finds out from the maps alone what
//! is in use.

mod apply;
mod backend_states;
mod checksum;
mod displaced_check;
mod free_space;
mod limits;
mod map_change;
mod member_states;
mod next_hop_table;
mod next_hops;
mod previous;
mod published;
mod scan;
mod standby;
mod table_space;

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
pub use free_space::{Full, FullMap};
pub use previous::PoolHomes;
pub use published::Home;

#[derive(Debug)]
pub struct Reconciler {
    maps: WritableMaps,
    /// What packets decide by.
    published: Published,
    /// What is free in the maps.
    free_space: FreeSpace,
    /// Where each member's word is.
    locations: MemberLocations,
    /// The status of each member, including members without a word.
    states: MemberStates,
    /// States of backends that several pools have.
    shared: SharedStates,
    /// Which next hop each backend uses.
    next_hops: NextHopTable,
    /// The last plan's backends.
    backends: BTreeMap<IpAddr, PlannedBackend>,
    /// Whether a change failed half-way: then the maps must be read again first.
    stale: bool,
    checksums: TableChecksums,
    /// Step of the packet path's clock.
    tick: Nanoseconds,
    settings: Settings,
}

impl Reconciler {
    /// Takes over the maps as they are. What is not published is free.
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

    /// Numbers in use in the maps, which must not be assigned to other objects.
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

    /// Digest over what packets decide by, read back from the maps: see [`mod@checksum`].
    pub fn checksum(&mut self) -> Result<u64, ReconcileError> {
        Ok(checksum(&self.maps, &mut self.checksums)?)
    }

    pub fn maps(&self) -> &WritableMaps {
        &self.maps
    }
}

/// Largest rate, per second.
pub const MOST_ANSWERS: u32 = 1_000_000;

/// What the packet path is set to at the start, besides the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// VLAN ids for frames that leave by an interface, by index of the interface.
    pub vlans: BTreeMap<u32, u16>,
    /// Indices of the interfaces that have the program.
    pub attached: BTreeSet<u32>,
    /// ICMP errors per second; 0 for none. Each has at most 1,280 bytes, so by default a flood of packets
    /// that are too large causes at most 100 Mbit/s of answers.
    pub icmp_errors: u32,
    /// Echo requests answered per second; 0 for none.
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
