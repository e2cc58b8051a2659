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

mod apply;
mod demand;
mod direct;
mod history;
mod homes;
mod lines;
mod listing;
mod members;
mod narrow;
mod overflows;
mod packet_path;
mod packets;
mod panic;
mod regions;
mod run;
mod sensors;
mod shares;
mod sources;
mod start;
#[cfg(test)]
mod tests;
mod unusable;
mod warnings;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::PathBuf,
    time::{Instant, SystemTime},
};

use tokio::sync::broadcast;

pub use packet_path::PacketPath;
pub use packets::Packets;
pub use run::{Ended, Inbox};
pub use sensors::Sensors;

use crate::PublishCounters;
use crate::{
    FollowedFile, WaitingSettings,
    command::{Event, Offer},
    store::{Revision, Store},
};
use demand::Demand;
use homes::HomeKeeper;
use lb_base::conditions::Conditions;
use lb_model::{
    Configuration, Name,
    ids::{Ids, Quarantine},
    map_memory::Budget,
    next_hop::NextHop,
    plan::{Plan, Sources},
};
use members::Members;
use narrow::Narrow;
use overflows::Overflows;

/// Events that a watcher may be behind before it must ask anew.
const EVENTS: usize = 4096;

/// What the daemon is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Region it stands in.
    pub region: Option<Name>,
    /// Sources of tunnels.
    pub sources: Sources,
    /// Where the names of numbers are written for the command line.
    pub state_directory: PathBuf,
    /// What the maps take and may take.
    pub map_memory: Budget,
    /// What is wrong elsewhere in the daemon.
    pub conditions: Conditions,
    /// Changed settings that wait for the next start.
    pub waiting_settings: WaitingSettings,
    /// Where what it publishes is counted.
    pub publish_counters: PublishCounters,
    /// The file that the configuration is read from again.
    pub followed: FollowedFile,
    /// Its schema revision, which is [`Revision::CURRENT`] but in tests of a later one.
    pub schema: Revision,
    /// Whether the file that it reads may replace a configuration of a newer schema.
    pub any_schema: bool,
}

/// What is wanted, what is known, and the packet path.
#[derive(Debug)]
pub struct State<P> {
    settings: Settings,
    store: Store,
    path: P,
    sensors: Sensors,
    /// Numbers in force.
    ids: Ids,
    rests: Quarantine,
    /// The plan of the generation in force; `None` before the first.
    plan: Option<Plan>,
    /// Why the packet path is not at that plan; `None`: it is.
    behind: Option<String>,
    members: Members,
    hops: BTreeMap<IpAddr, Result<NextHop, String>>,
    demand: Demand,
    /// What each region of each pool could take at the last look; `None` before the first.
    offers: Option<BTreeMap<(Name, Name), Offer>>,
    overflows: Overflows,
    homes: HomeKeeper,
    narrow: Narrow,
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
