//! The one owner of the configuration in force.
//!
//! One loop handles commands in turn, and completes each before it begins the next, so there are no locks. Only this loop
//! writes the store, assigns numbers and publishes plans. What checks and next hops change is written by the member loop
//! ([`crate::members`]), which never waits for this one; this one gets each change as an update.
//!
//! An apply computes the difference, the numbers and the plan, and checks that the maps have room. Then it
//! writes the store, from which moment the generation is in force, then the packet path, and updates the
//! sensors. If a step before the store fails, nothing changes. If the packet path fails, the answer says so,
//! and the write is retried until it succeeds. Meanwhile this is a condition, and an apply without changes
//! retries too and gets the same answer.

mod answers;
mod apply;
mod conditions;
mod demand;
mod log_lines;
mod next_hops;
mod packet_path;
mod remaps;
mod sensors;
mod settings;
mod start;
mod state_loop;
#[cfg(test)]
mod tests;
mod updates;
mod view;
mod warnings;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::{broadcast, mpsc};

pub use packet_path::{PacketPath, Packets};
pub use sensors::Sensors;
pub use settings::{FollowedFile, HealthCounters, PublishCounters, Settings, WaitingSettings};
pub use start::{Inbox, new};
pub use state_loop::LoopEnd;

use crate::{
    command::{Command, Event, Offer},
    members::{MemberCommands, MemberUpdate},
    store::Store,
};
use demand::{Demand, Overflows};
use lb_model::{
    Configuration, Name,
    ids::{Ids, Quarantine},
    plan::Plan,
};
use next_hops::NarrowPaths;
use remaps::Remaps;
use view::View;

/// Time between two readings of the counters.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Events that a watcher may lag behind before it must subscribe again.
const EVENTS: usize = 4096;

#[derive(Debug)]
pub struct State<P> {
    settings: Settings,
    store: Store,
    path: P,
    sensors: Sensors,
    /// Numbers in force.
    ids: Ids,
    quarantine: Quarantine,
    /// The plan in force; `None` before the first.
    plan: Option<Plan>,
    /// Why the packet path is not at that plan; `None` if it is.
    behind: Option<String>,
    commands: mpsc::Receiver<Command>,
    /// To the member loop.
    members: MemberCommands,
    /// From the member loop.
    updates: mpsc::UnboundedReceiver<Vec<MemberUpdate>>,
    /// The configuration that the member loop has.
    configured: Arc<Configuration>,
    view: View,
    demand: Demand,
    /// What each group could take at the last reading; `None` before the first.
    offers: Option<BTreeMap<(Name, Name), Offer>>,
    overflows: Overflows,
    remaps: Remaps,
    narrow: NarrowPaths,
    /// Pools that have too few slots for their backends.
    outgrown: BTreeSet<Name>,
    events: broadcast::Sender<Event>,
    started: Instant,
}

impl<P: PacketPath> State<P> {
    /// Number of the generation in force, even if that generation cannot be used.
    fn generation(&self) -> u64 {
        self.store.number()
    }

    fn configuration(&self) -> &Configuration {
        Self::in_force(&self.store)
    }

    fn in_force(store: &Store) -> &Configuration {
        static EMPTY: Configuration = Configuration::EMPTY;
        store.generation().map_or(&EMPTY, |generation| &generation.configuration)
    }

    fn announce(&self, event: Event) {
        // Without watchers there is no receiver.
        let _ = self.events.send(event);
    }
}

/// The wall clock, for times that are shown.
fn now() -> SystemTime {
    SystemTime::now()
}
