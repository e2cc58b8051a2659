//! The one owner of what is wanted.
//!
//! One loop takes sensors' news and commands in turn, news first, and carries each out whole before
//! it takes the next: there are no locks. Nobody else writes the store, gives out numbers, or tells
//! the packet path anything.
//!
//! An apply goes: difference, numbers, plan, room; then the store, from where on the generation is in
//! force; then the packet path and the sensors; then the answer. What fails before the store changes
//! nothing. If the packet path fails after it, the answer says so, and it is tried again until it is
//! where the generation is. Until then it is among the conditions, and an apply that differs in nothing tries it
//! too, and answers as the first one did.

mod answers;
mod apply;
mod conditions;
mod demand;
mod log_lines;
mod members;
mod next_hops;
mod packet_path;
mod panic;
mod remaps;
mod sensors;
mod settings;
mod shares;
mod start;
mod state_loop;
#[cfg(test)]
mod tests;
mod warnings;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Instant, SystemTime},
};

use tokio::sync::broadcast;

pub use packet_path::{PacketPath, Packets};
pub use sensors::Sensors;
pub use settings::{FollowedFile, PublishCounters, Settings, WaitingSettings};
pub use state_loop::{Inbox, LoopEnd};

use crate::{
    command::{Event, Offer},
    store::Store,
};
use demand::{Demand, Overflows};
use lb_model::{
    Configuration, Name,
    ids::{Ids, Quarantine},
    next_hop::NextHop,
    plan::Plan,
};
use members::Members;
use next_hops::NarrowPaths;
use remaps::Remaps;

/// Events that a watcher may be behind before it must ask anew.
const EVENTS: usize = 4096;

/// What is wanted, what is known, and the packet path.
#[derive(Debug)]
pub struct State<P> {
    settings: Settings,
    store: Store,
    path: P,
    sensors: Sensors,
    /// Numbers in force.
    ids: Ids,
    quarantine: Quarantine,
    /// The plan of the generation in force; `None` before the first.
    plan: Option<Plan>,
    /// Why the packet path is not at that plan; `None`: it is.
    behind: Option<String>,
    members: Members,
    next_hops: BTreeMap<IpAddr, Result<NextHop, String>>,
    demand: Demand,
    /// What each region of each pool could take at the last look; `None` before the first.
    offers: Option<BTreeMap<(Name, Name), Offer>>,
    overflows: Overflows,
    remaps: Remaps,
    narrow: NarrowPaths,
    events: broadcast::Sender<Event>,
    started: Instant,
}

impl<P: PacketPath> State<P> {
    /// Number of the generation in force, or of the one that cannot be used.
    fn generation(&self) -> u64 {
        self.store.number()
    }

    /// The configuration in force.
    fn configuration(&self) -> &Configuration {
        Self::in_force(&self.store)
    }

    fn in_force(store: &Store) -> &Configuration {
        static EMPTY: Configuration = Configuration::EMPTY;
        store.generation().map_or(&EMPTY, |generation| &generation.configuration)
    }

    fn announce(&self, event: Event) {
        // Without watchers there is nobody to tell.
        let _ = self.events.send(event);
    }
}

/// Now, as people count.
fn now() -> SystemTime {
    SystemTime::now()
}
