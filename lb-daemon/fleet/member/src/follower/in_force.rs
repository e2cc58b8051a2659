//! What a balancer has in force of its fleet, as it is shown to the others and waited for.

use std::{collections::BTreeMap, sync::Arc};

use lb_fleet::{
    Document,
    documents::{FleetMember, Liveness},
    lineage::LineageGuard,
};
use lb_model::Name;
use tokio::{sync::watch, time::Instant};

/// What this balancer has in force of what the fleet has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InForce {
    /// Up to where everything is in force.
    pub(crate) revision: i64,
    /// The same of overrides, which wait for nothing else.
    pub(crate) overrides_revision: i64,
    /// 0: none.
    pub(crate) generation: u64,
    pub(crate) refused: Option<RefusedGeneration>,
    /// Why etcd is not followed any more.
    pub(crate) conflict: Option<String>,
    /// Since when it is not; `None`: it is followed.
    pub(crate) conflict_since: Option<Instant>,
    /// What etcd may have, given what is in force.
    pub(crate) guard: LineageGuard,
    /// The members of the fleet.
    pub(crate) members: Arc<BTreeMap<Name, FleetMember>>,
}

impl InForce {
    /// The cluster of etcd that it follows without a conflict; 0: none.
    fn follows(&self) -> u64 {
        let has_followed = self.revision > 0 && self.conflict.is_none();
        self.guard.in_force().filter(|_| has_followed).map_or(0, |it| it.cluster)
    }
}

/// A generation that could not be put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedGeneration {
    /// 0: its number is not known.
    pub(crate) generation: u64,
    pub(crate) cause: String,
    /// This balancer is too old for it, and would lose a part of it.
    pub(crate) is_newer: bool,
}

/// Where it is shown.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) in_force: watch::Sender<InForce>,
    pub(super) liveness: watch::Sender<Arc<Document<Liveness>>>,
}

impl Shown {
    /// Shows it to those who wait in this process, and to the other balancers.
    pub(super) fn update(&self, change: impl FnOnce(&mut InForce)) {
        self.in_force.send_if_modified(|known| {
            let before = known.clone();
            change(known);
            *known != before
        });
        self.liveness.send_if_modified(|liveness| {
            // Read here: what another part shows at the same time is not lost.
            let now = self.in_force.borrow();
            let (revision, generation, follows) = (now.revision, now.generation, now.follows());
            drop(now);
            let body = Liveness { revision, generation, follows, ..liveness.body.clone() };
            let is_new = body != liveness.body;
            if is_new {
                *liveness = Arc::new(liveness.replaced_by(body));
            }
            is_new
        });
    }
}
