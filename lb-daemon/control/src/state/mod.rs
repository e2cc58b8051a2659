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

use std::sync::Arc;

use tokio::sync::watch;

pub use mark_out_decision::{MarkOutDecision, MarkOutDecisions, MarkedOutByPool};
pub use sensors::Sensors;
pub use settings::{BalancerAddresses, FollowedFile, Membership, Settings, WaitingSettings};
pub use start::{Inbox, Loops};

use crate::{
    command::ApplyRequest,
    status::{InForce, StatusUpdate},
};
use lb_base::queue::{Receiver, UnboundedSender};
use lb_model::{
    Configuration,
    ids::{Ids, Quarantine},
    overrides::Overrides,
    plan::Plan,
};
use names::Names;
use publishing::Publishing;
use remaps::Remaps;
use storing::Storing;

#[derive(Debug)]
pub struct State {
    settings: Settings,
    storing: Storing,
    current: Current,
    publishing: Publishing,
    remaps: Remaps,
    names: Names,
    applies: Receiver<ApplyRequest>,
    /// What operators ask for beside the configuration.
    overrides: watch::Receiver<Arc<Overrides>>,
    status: StatusSenders,
}

/// What is in force, apart from what is marked out.
#[derive(Debug)]
struct Current {
    /// Empty if the stored one cannot be used.
    configuration: Arc<Configuration>,
    ids: Arc<Ids>,
    quarantine: Quarantine,
    /// `None` before the first.
    plan: Option<Arc<Plan>>,
    /// Why the packet path is not at that plan; `None` if it is.
    behind: Option<String>,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            configuration: Arc::new(Configuration::EMPTY),
            ids: Arc::default(),
            quarantine: Quarantine::default(),
            plan: None,
            behind: None,
        }
    }
}

/// To the loops that follow what is in force.
#[derive(Debug)]
struct StatusSenders {
    overrides: watch::Sender<Option<Arc<InForce>>>,
    status: UnboundedSender<StatusUpdate>,
}

impl StatusSenders {
    fn show(&self, in_force: Arc<InForce>) {
        self.overrides.send_replace(Some(Arc::clone(&in_force)));
        self.send(StatusUpdate::InForce(in_force));
    }

    fn send(&self, update: StatusUpdate) {
        // Without a status loop the daemon is stopping.
        let _ = self.status.send(update);
    }
}

impl State {
    /// Tells the status loop and the override loop what is in force.
    fn tell_status(&self) {
        let (store, current) = (&self.storing.store, &self.current);
        let settling = self.remaps.settling.iter().map(|(pool, (_, settling))| (*pool, *settling));
        self.status.show(Arc::new(InForce {
            generation: store.number(),
            applied_at: store.applied_at(),
            history: Arc::clone(store.history()),
            reader: store.reader().clone(),
            configuration: Arc::clone(&current.configuration),
            hash_key: store.hash_key(),
            unusable: store.unusable().cloned(),
            ids: Arc::clone(&current.ids),
            mark_outs: Arc::clone(&self.remaps.mark_outs),
            settling: settling.collect(),
            behind: current.behind.clone(),
        }));
    }
}
