//! The one owner of the configuration in force.
//!
//! One loop executes applies in turn, and completes each before it begins the next, so there are no locks. Only this loop
//! writes the store, assigns numbers and publishes plans. What checks and next hops change is written by the member loop
//! ([`crate::members`]), which never waits for this one; questions are answered by the status loop ([`crate::status`]).
//!
//! An apply computes the difference, the numbers and the plan, and checks that the maps have room. Then it
//! writes the store, from which moment the generation is in force, then the packet path, and updates the
//! sensors. If a step before the store fails, nothing changes. If the packet path fails, the answer says so,
//! and the write is retried until it succeeds. Meanwhile this is a condition, and an apply without changes
//! retries too and gets the same answer.

mod apply;
mod mark_out_decision;
mod names;
mod publishing;
mod remaps;
mod sensors;
mod settings;
mod start;
mod state_loop;
mod storing;
#[cfg(test)]
mod tests;
mod warnings;

use std::{sync::Arc, time::Instant};

use tokio::sync::watch;

pub use mark_out_decision::{MarkOutDecision, MarkOutDecisions, MarkedOutByPool};
pub use sensors::Sensors;
pub use settings::{FollowedFile, Membership, Settings, WaitingSettings};
pub use start::{Inbox, Loops};

use crate::{
    command::ApplyRequest,
    members::{Mailbox, MemberCommands},
    publisher::Publisher,
    status::{InForce, StatusUpdate, View},
    store::Store,
};
use lb_base::queue::{Receiver, UnboundedSender};
use lb_model::{
    Configuration,
    ids::{Ids, Quarantine},
    overrides::Overrides,
    plan::Plan,
};
use names::Names;
use remaps::Remaps;

#[derive(Debug)]
pub struct State {
    settings: Settings,
    store: Store,
    publisher: Publisher,
    sensors: Sensors,
    /// The configuration in force; empty if the stored one cannot be used.
    configuration: Arc<Configuration>,
    /// Numbers in force.
    ids: Arc<Ids>,
    quarantine: Quarantine,
    /// The plan in force; `None` before the first.
    plan: Option<Arc<Plan>>,
    /// Why the packet path is not at that plan; `None` if it is.
    behind: Option<String>,
    applies: Receiver<ApplyRequest>,
    /// When a store whose last write failed was last tried again, or could be written.
    store_tried_at: Instant,
    /// What operators ask for beside the configuration.
    overrides: watch::Receiver<Arc<Overrides>>,
    /// To the override loop.
    shown: watch::Sender<Option<Arc<InForce>>>,
    /// To the member loop.
    members: MemberCommands,
    /// From the member loop.
    updates: Mailbox,
    /// To the status loop.
    status: UnboundedSender<StatusUpdate>,
    /// The configuration of which the member loop has written all pools; empty while the packet path is behind.
    configured: Arc<Configuration>,
    view: View,
    remaps: Remaps,
    names: Names,
}

impl State {
    /// Number of the generation in force, even if that generation cannot be used.
    fn generation(&self) -> u64 {
        self.store.number()
    }

    /// Tells the status loop and the override loop what is in force.
    fn tell_status(&self) {
        let settling = self.remaps.settling.iter().map(|(pool, (_, settling))| (*pool, *settling));
        let in_force = Arc::new(InForce {
            generation: self.generation(),
            applied_at: self.store.applied_at(),
            history: Arc::clone(self.store.history()),
            reader: self.store.reader().clone(),
            configuration: Arc::clone(&self.configuration),
            hash_key: self.store.hash_key(),
            unusable: self.store.unusable().cloned(),
            ids: Arc::clone(&self.ids),
            mark_outs: Arc::clone(&self.remaps.mark_outs),
            settling: settling.collect(),
            behind: self.behind.clone(),
        });
        self.shown.send_replace(Some(Arc::clone(&in_force)));
        self.send_status(StatusUpdate::InForce(in_force));
    }

    fn send_status(&self, update: StatusUpdate) {
        // Without a status loop the daemon is stopping.
        let _ = self.status.send(update);
    }
}
