//! The status loop: what is shown of the daemon.
//!
//! It answers every question and announces every event from copies of what the state loop and the member loop tell it, so
//! that no question waits for a change, and neither of them for whoever asks. Each tells it of a change before anybody
//! else, so an answer contains all that the one who asks may know of. Conditions and log lines that follow from the
//! configuration and from health are written here too.

mod answers;
mod backends;
mod conditions;
mod demand;
mod event_log;
mod generations;
mod in_force;
mod log_lines;
mod narrow_paths;
mod overrides;
mod shared_snapshot;
mod status_loop;
mod updates;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use tokio::sync::{Semaphore, broadcast};

pub(crate) use in_force::{InForce, StatusUpdate};
pub(crate) use view::{Key, View};

use crate::{
    command::{Event, InterfaceStatus, MAX_EVENTS, Offer, OverridesInForce, PoolBackends, Query},
    reconcile::ReconcileError,
    state::Settings,
};
use backends::InterfaceNames;
use demand::{Demand, Overflows};
use event_log::EventLog;
use lb_base::queue::{Receiver, UnboundedReceiver};
use lb_model::{
    Configuration, Name,
    capacity::{GroupReading, Portions},
};
use narrow_paths::NarrowPaths;
use shared_snapshot::SharedSnapshot;

/// What the status loop needs of the packet path: it reads it.
pub trait PathReader: Send {
    /// Digest over what the packet path decides by.
    ///
    /// # Errors
    /// The maps cannot be read.
    fn checksum(&mut self) -> Result<u64, ReconcileError>;

    /// The same of each pool, by its index.
    ///
    /// # Errors
    /// The maps cannot be read.
    fn pool_checksums(&mut self) -> Result<BTreeMap<u32, u64>, ReconcileError>;

    /// The groups of each pool in order, with their counters.
    ///
    /// # Errors
    /// The maps cannot be read.
    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError>;

    /// Interfaces with the packet program.
    fn interfaces(&self) -> Vec<InterfaceStatus>;
}

/// Answers questions and announces events.
#[derive(Debug)]
pub struct StatusLoop<R> {
    settings: Settings,
    path: R,
    queries: Receiver<Query>,
    updates: UnboundedReceiver<StatusUpdate>,
    /// Until then there is nothing to show.
    has_begun: bool,
    in_force: Arc<InForce>,
    overrides: OverridesInForce,
    portions: Portions,
    view: View,
    /// Statuses of the backends of pools, until something of them changes.
    backends: BTreeMap<Name, Arc<PoolBackends>>,
    /// Whether a member changed since hold-downs were last shown to whoever keeps them over a restart.
    has_member_news: bool,
    interfaces: InterfaceNames,
    demand: Demand,
    /// What each group could take at the last reading; `None` before the first.
    offers: Option<BTreeMap<(Name, Name), Offer>>,
    overflows: Overflows,
    narrow: NarrowPaths,
    /// Pools that have too few slots for their backends.
    outgrown: BTreeSet<Name>,
    events: broadcast::Sender<Arc<Event>>,
    event_log: EventLog,
    shared_snapshot: SharedSnapshot,
    /// Generations that are read at a time.
    reading: Arc<Semaphore>,
    started: Instant,
}

impl<R: PathReader> StatusLoop<R> {
    pub(crate) fn new(
        settings: Settings,
        path: R,
        queries: Receiver<Query>,
        updates: UnboundedReceiver<StatusUpdate>,
    ) -> Self {
        let (events, _) = broadcast::channel(MAX_EVENTS);
        Self {
            portions: settings.portions.clone(),
            settings,
            path,
            queries,
            updates,
            has_begun: false,
            in_force: Arc::default(),
            overrides: OverridesInForce::default(),
            view: View::default(),
            backends: BTreeMap::new(),
            has_member_news: false,
            interfaces: InterfaceNames::default(),
            demand: Demand::default(),
            offers: None,
            overflows: Overflows::default(),
            narrow: NarrowPaths::default(),
            outgrown: BTreeSet::new(),
            events,
            event_log: EventLog::new(),
            shared_snapshot: SharedSnapshot::default(),
            reading: Arc::new(Semaphore::new(generations::AT_A_TIME)),
            started: Instant::now(),
        }
    }

    fn configuration(&self) -> &Configuration {
        &self.in_force.configuration
    }

    fn announce(&mut self, event: Event) {
        let event = Arc::new(event);
        self.shared_snapshot.add(&event);
        self.event_log.add(Arc::clone(&event));
        // Without watchers there is no receiver.
        let _ = self.events.send(event);
    }
}
