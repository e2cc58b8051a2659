//! Follows the overrides of the fleet, beside the configuration: a drain must not wait for a generation that waits for the disk.

use std::{collections::BTreeMap, time::Duration};

use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};
use lb_config::Reason;
use lb_control::command::{Actor, Commands, OverrideChange, Stopping};
use lb_fleet::{
    documents::SharedOverride,
    reader::{Snapshot, Versioned},
};
use lb_model::overrides::{Key, Moment, Override};

use super::{RETRY, in_force::Shown, progress::Part};
use crate::wall_clock;

/// Subject of the condition that the overrides of the fleet are not in force.
pub(super) const FLEET_OVERRIDES: Subject =
    Subject::new(ConditionReason::Overrides, "fleet overrides");

/// How often it is looked whether the wall clock was set: those that end by themselves end at another moment then.
const CLOCK_LOOK: Duration = Duration::from_secs(10);

/// Puts the overrides of etcd in force. One of a backend that only a later generation has is kept, and acts once that is in
/// force.
pub(crate) struct OverrideFollower {
    commands: Commands,
    conditions: Conditions,
    shown: Shown,
    part: Part,
    in_force: Option<BTreeMap<Key, Versioned<SharedOverride>>>,
    /// When the times of those in force were computed last, by the wall clock as it was then.
    computed_at: Moment,
}

impl OverrideFollower {
    pub(super) fn new(
        commands: Commands,
        conditions: Conditions,
        shown: Shown,
        part: Part,
    ) -> Self {
        let computed_at = wall_clock::moment();
        Self { commands, conditions, shown, part, in_force: None, computed_at }
    }

    /// Runs until the daemon stops.
    pub(crate) async fn run(mut self) {
        while let Some(offer) = self.part.next_after_rebuild().await {
            match self.follow(&offer.snapshot).await {
                Ok(true) => {
                    let revision = offer.snapshot.revision;
                    self.part.put_in_force(offer);
                    self.shown.update(|in_force| in_force.overrides_revision = revision);
                    self.part.retry_after(CLOCK_LOOK);
                }
                Ok(false) => self.part.retry_after(RETRY),
                Err(Stopping) => return,
            }
        }
    }

    /// Returns whether they are in force.
    async fn follow(&mut self, snapshot: &Snapshot) -> Result<bool, Stopping> {
        // A fleet without a configuration has nothing that could replace what this balancer has.
        let now = wall_clock::moment();
        let was_set = wall_clock::was_set(self.computed_at, now);
        let is_followed = !was_set && self.in_force.as_ref() == Some(&snapshot.overrides);
        if is_followed || snapshot.configuration.is_none() {
            return Ok(true);
        }
        let shared = snapshot.overrides.iter();
        let followed: Vec<(Key, Override)> =
            shared.map(|(key, it)| (key.clone(), it.document.body.to_override(now))).collect();
        let by = (Actor::Unknown, Reason::default());
        if was_set {
            let _checked =
                self.commands.change_overrides(OverrideChange::ClockSet, false, by.clone()).await?;
        }
        let change = OverrideChange::Follow(followed);
        match self.commands.change_overrides(change, false, by).await? {
            Ok(_) => {
                self.conditions.end(&FLEET_OVERRIDES);
                self.in_force = Some(snapshot.overrides.clone());
                self.computed_at = now;
                Ok(true)
            }
            Err(refusal) => {
                self.conditions.begin(&FLEET_OVERRIDES, &error_chain::message(&refusal));
                Ok(false)
            }
        }
    }
}
