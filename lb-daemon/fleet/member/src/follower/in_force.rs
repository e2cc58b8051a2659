//! What a balancer has in force of its fleet: as it is stored, shown to the others, and waited for.

use std::{collections::BTreeMap, sync::Arc};

use lb_base::conditions::{ConditionReason, Subject};
use lb_fleet::{
    documents::{FleetMember, Liveness},
    lineage::LineageGuard,
};
use lb_model::Name;
use tokio::time::Instant;

use super::Follower;

/// Subject of the condition that what the fleet has in force is not stored.
pub(super) const FLEET_RECORD: Subject = Subject::new(ConditionReason::Store, "fleet record");

/// What this balancer has in force of what the fleet has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InForce {
    pub(crate) revision: i64,
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

impl Follower {
    /// Stores the record, if it is another one than before.
    pub(super) async fn save(&mut self) {
        if self.saved.as_ref() == Some(&self.record) {
            return;
        }
        let (record, directory) = (self.record.clone(), self.state_directory.clone());
        // If this is not waited for, leaving waits for it: the file must not come back after that.
        match self.tasks.spawn_blocking(move || record.write(&directory)).await {
            Ok(Ok(())) => {
                self.conditions.end(&FLEET_RECORD);
                self.saved = Some(self.record.clone());
            }
            Ok(Err(error)) => {
                tracing::debug!("what the fleet has in force here is not stored: {error}");
                self.conditions.begin(&FLEET_RECORD, &error.to_string());
            }
            Err(_) => {}
        }
    }

    /// Shows it to those who wait in this process, and to the other balancers.
    pub(super) fn update(&self, change: impl FnOnce(&mut InForce)) {
        let mut next = self.in_force.borrow().clone();
        change(&mut next);
        self.in_force.send_if_modified(|known| {
            let is_new = *known != next;
            *known = next.clone();
            is_new
        });
        self.liveness.send_if_modified(|liveness| {
            let InForce { revision, generation, .. } = next;
            let body =
                Liveness { revision, generation, follows: next.follows(), ..liveness.body.clone() };
            let is_new = body != liveness.body;
            if is_new {
                *liveness = Arc::new(liveness.replaced_by(body));
            }
            is_new
        });
    }
}
