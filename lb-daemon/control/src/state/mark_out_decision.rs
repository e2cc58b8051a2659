//! Who decides what is marked out: this balancer alone, or the balancers of its region together.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;

use lb_model::{Name, plan::MarkedOut};

/// What is marked out, by pool; pools with nothing marked out may be left out.
pub type MarkedOutByPool = BTreeMap<Name, MarkedOut>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MarkOutDecision {
    /// This balancer decides alone, by its own view.
    #[default]
    Alone,
    /// The balancers of its region decide, and it is not known yet what: what the maps have stays.
    Unknown,
    /// What the balancers of its region agreed on.
    Agreed(Arc<MarkedOutByPool>),
}

/// The decision, and what each second makes of it. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MarkOutDecisions {
    decision: watch::Sender<MarkOutDecision>,
    own_view: watch::Sender<Option<Arc<MarkedOutByPool>>>,
    in_force: watch::Sender<Option<MarkOutDecision>>,
}

impl MarkOutDecisions {
    /// The state loop follows within a second, and with the next apply. What a decision names and the configuration in force
    /// does not have is left out, and acts once the configuration has it.
    pub fn decide(&self, decision: MarkOutDecision) {
        self.decision.send_replace(decision);
    }

    pub fn decision(&self) -> MarkOutDecision {
        self.decision.borrow().clone()
    }

    /// What this balancer would mark out: what is in force and does not return, and what has been out of service for the settle
    /// time by its own checks. `None` until it is known. Once a second, if it changed.
    pub fn own_view(&self) -> watch::Receiver<Option<Arc<MarkedOutByPool>>> {
        self.own_view.subscribe()
    }

    /// The decision that the packet path follows; `None` before the first. While it cannot follow another one, for example
    /// because the maps have no room, this stays the one before.
    pub fn in_force(&self) -> watch::Receiver<Option<MarkOutDecision>> {
        self.in_force.subscribe()
    }

    pub(super) fn show_own_view(&self, out: MarkedOutByPool) {
        self.own_view.send_if_modified(|shown| {
            let is_other = shown.as_deref() != Some(&out);
            if is_other {
                *shown = Some(Arc::new(out));
            }
            is_other
        });
    }

    pub(super) fn show_in_force(&self, decision: MarkOutDecision) {
        self.in_force.send_if_modified(|shown| {
            let is_other = shown.as_ref() != Some(&decision);
            if is_other {
                *shown = Some(decision);
            }
            is_other
        });
    }
}
