//! The status loop: what is shown of the daemon.
//!
//! It answers every question and announces every event from copies of what the state loop and the member loop tell it, so
//! that no question waits for a change, and neither of them for whoever asks. Each tells it of a change before anybody
//! else, so an answer contains all that the one who asks may know of. Conditions and log lines that follow from the
//! configuration and from health are written here too.

mod announcements;
mod answers;
mod backends;
mod conditions;
mod demand;
mod event_log;
mod generations;
mod in_force;
mod log_lines;
mod missing_sources;
mod narrow_paths;
mod overrides;
mod shared_snapshot;
mod status_loop;
mod updates;
mod view;

use std::{sync::Arc, time::Instant};

use tokio::sync::Semaphore;

pub(crate) use in_force::{InForce, StatusUpdate};
pub(crate) use view::{Key, View};

use crate::{
    command::{OverridesInForce, Query},
    state::Settings,
};
use announcements::Announcements;
use backends::BackendStatuses;
use conditions::ConfigurationConditions;
use demand::GroupLoads;
use lb_base::queue::{Receiver, UnboundedReceiver};
use lb_model::{Configuration, Ipv4Prefix, capacity::Portions};
use lb_publish::reconcile::PathReader;

/// Answers questions and announces events.
#[derive(Debug)]
pub struct StatusLoop<R> {
    settings: Settings,
    path: R,
    queries: Receiver<Query>,
    updates: UnboundedReceiver<StatusUpdate>,
    known: Known,
    backends: BackendStatuses,
    loads: GroupLoads,
    conditions: ConfigurationConditions,
    announcements: Announcements,
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
        let (portions, source_prefix) = (settings.portions.clone(), settings.source_prefix);
        Self {
            conditions: ConfigurationConditions::new(&settings),
            settings,
            path,
            queries,
            updates,
            known: Known { portions, source_prefix, ..Known::default() },
            backends: BackendStatuses::default(),
            loads: GroupLoads::default(),
            announcements: Announcements::new(),
            reading: Arc::new(Semaphore::new(generations::AT_A_TIME)),
            started: Instant::now(),
        }
    }
}

/// What the other loops have told.
#[derive(Debug, Default)]
struct Known {
    /// Until then there is nothing to show.
    has_begun: bool,
    in_force: Arc<InForce>,
    overrides: OverridesInForce,
    portions: Portions,
    view: View,
    /// Whether a member changed since hold-downs were last shown to whoever keeps them over a restart.
    has_member_news: bool,
    /// The prefix that sources of IPv4 tunnels are from.
    source_prefix: Option<Ipv4Prefix>,
}

impl Known {
    fn configuration(&self) -> &Configuration {
        &self.in_force.configuration
    }
}
