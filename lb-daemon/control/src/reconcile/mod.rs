//! From plans, health and next hops to the maps: the one place that writes them.
//!
//! What the packet program can reach is immutable but for single words, so a change is written
//! beside what it replaces, published by one word a pool, and what it replaced is given back after a
//! grace period. A daemon that dies on the way leaves nothing half-published, and the next one finds
//! out from the maps alone what is in use.

mod allocate;
mod apply;
mod backend_states;
mod change;
mod checksum;
mod directory;
mod displaced_check;
mod error;
mod hops;
mod limits;
mod members;
mod next_hops;
mod places;
mod previous;
mod published;
mod readings;
mod room;
mod scan;
mod settings;
mod standby;
mod standing;
mod states;

use std::{collections::BTreeMap, net::IpAddr};

pub use allocate::Full;
pub use apply::Applied;
pub use checksum::{TableChecksums, checksum};
pub use directory::directory;
pub use displaced_check::{DisplacedSweeper, Round};
pub use error::ReconcileError;
pub use previous::Homes;
pub use published::Home;
pub use settings::{MOST_ANSWERS, Settings};

use lb_common::abi::clock::{Nanoseconds, USUAL_TICK};

use backend_states::Shared;
use hops::Hops;
use lb_maps::{WritableMaps, clock};
use lb_model::{ids::Named, plan::PlannedBackend};
use places::Places;
use published::Published;
use room::Room;
use states::States;

/// The maps and what is known of them.
#[derive(Debug)]
pub struct Reconciler {
    maps: WritableMaps,
    /// What the maps say, for packets.
    published: Published,
    /// What is free in them.
    room: Room,
    /// Where each member's word is.
    places: Places,
    /// What each member's word says, for those too that have none.
    states: States,
    /// What is said of backends that several pools have.
    shared: Shared,
    /// Which next hop each backend is behind.
    hops: Hops,
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
        let (published, room) = scan::take_stock(&mut maps)?;
        let shared = scan::shared(&maps)?;
        let (states, hops) = scan::members(&maps, &published, &shared);
        let reconciler = Self {
            places: Places::of(&published),
            backends: BTreeMap::new(),
            stale: false,
            checksums: TableChecksums::default(),
            tick: clock::tick().unwrap_or(USUAL_TICK),
            settings,
            maps,
            published,
            room,
            states,
            shared,
            hops,
        };
        reconciler.restate();
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
