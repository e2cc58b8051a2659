//! Puts in force at this balancer what the fleet has in etcd.

mod configuration;
mod in_force;
mod rebuild;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use lb_base::{
    conditions::{ConditionReason, Conditions, FLEET_CONFIGURATION, FLEET_CONFLICT, Subject},
    error_chain,
};
use lb_config::Reason;
use lb_control::{
    command::{Actor, Commands, OverrideChange, Stopping},
    state::{MarkOutDecision, MarkOutDecisions, MarkedOutByPool},
};
use lb_fleet::{
    Document, Fleet,
    documents::{Liveness, SharedOverride},
    reader::{Snapshot, Versioned, View},
};
use lb_model::{
    Name,
    overrides::{Key, Override},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use self::in_force::FLEET_RECORD;
pub(super) use self::{
    configuration::Retry,
    in_force::{InForce, RefusedGeneration},
};
use super::{
    overrides::FLEET_CLOCK,
    record::{MembershipRecord, StoredView},
    sharing::{FleetView, SharingHandle},
    space::ETCD_SPACE,
    unowned::FLEET_PORTIONS,
    versions, wall_clock,
};

/// Before something that could not be put in force is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Longest wait until packets follow what is marked out.
const HOMES: Duration = Duration::from_secs(3);

/// Subject of the condition that the overrides of the fleet are not in force.
const FLEET_OVERRIDES: Subject = Subject::new(ConditionReason::Overrides, "fleet overrides");

/// Subject of the condition that values of the fleet cannot be read, such as those of a newer version.
const FLEET_VALUES: Subject = Subject::new(ConditionReason::FleetConfiguration, "fleet values");

/// Subject of the condition that etcd does not have this balancer among the members.
const NOT_A_MEMBER: Subject = Subject::new(ConditionReason::FleetConflict, "fleet membership");

/// The subjects of a member's conditions, which end when it leaves.
pub(super) const SUBJECTS: [&Subject; 9] = [
    &FLEET_CONFIGURATION,
    &FLEET_CONFLICT,
    &FLEET_OVERRIDES,
    &FLEET_RECORD,
    &FLEET_VALUES,
    &FLEET_CLOCK,
    &ETCD_SPACE,
    &FLEET_PORTIONS,
    &NOT_A_MEMBER,
];

/// Why a balancer whose key is gone from etcd has no portions, and what to do.
pub(super) const REMOVED: &str = "etcd does not have this balancer among the members, so it gets no portions of capacities: \
                                  leave by `spillway fleet leave`, and join again";

/// Reads what etcd has, and puts it in force.
pub(super) struct Follower {
    pub(super) commands: Commands,
    pub(super) conditions: Conditions,
    pub(super) homes: MarkOutDecisions,
    pub(super) sharing: SharingHandle,
    pub(super) views: watch::Sender<FleetView>,
    pub(super) fleet: watch::Receiver<Option<Fleet>>,
    pub(super) view: watch::Receiver<View>,
    pub(super) liveness: watch::Sender<Arc<Document<Liveness>>>,
    pub(super) in_force: watch::Sender<InForce>,
    pub(super) record: MembershipRecord,
    /// As it is on disk.
    pub(super) saved: Option<MembershipRecord>,
    pub(super) state_directory: PathBuf,
    pub(super) region: Option<Name>,
    /// The maps do not know what home meant before the last change.
    pub(super) must_rebuild: bool,
    /// The overrides and homes in force.
    pub(super) overrides: Option<BTreeMap<Key, Versioned<SharedOverride>>>,
    pub(super) marked_out: Option<Arc<MarkedOutByPool>>,
    pub(super) retry: Retry,
    /// Waits for what cannot be cancelled.
    pub(super) tasks: TaskTracker,
}

impl Follower {
    /// Runs until the daemon stops.
    pub(super) async fn run(mut self) {
        loop {
            let snapshot = self.view.borrow_and_update().snapshot.clone();
            let is_done = match snapshot {
                Some(snapshot) => match self.follow(&snapshot).await {
                    Ok(is_done) => is_done,
                    Err(Stopping) => return,
                },
                None => true,
            };
            let retry = async {
                match is_done {
                    true => std::future::pending().await,
                    false => sleep(RETRY).await,
                }
            };
            tokio::select! {
                changed = self.view.changed() => if changed.is_err() { return },
                () = retry => {}
            }
        }
    }

    /// Returns whether everything is in force. What goes wrong with one part does not keep the others from being followed.
    async fn follow(&mut self, snapshot: &Snapshot) -> Result<bool, Stopping> {
        let lineage = snapshot.lineage();
        if let Err(conflict) = self.record.guard.offer(&lineage) {
            let conflict = conflict.to_string();
            self.conditions.begin(&FLEET_CONFLICT, &conflict);
            self.save().await;
            let guard = self.record.guard;
            self.update(|in_force| {
                in_force.conflict = Some(conflict);
                in_force.guard = guard;
            });
            return Ok(true);
        }
        self.conditions.end(&FLEET_CONFLICT);
        self.update(|in_force| in_force.conflict = None);
        match snapshot.members.contains_key(&self.record.balancer) {
            true => self.conditions.end(&NOT_A_MEMBER),
            false => self.conditions.begin(&NOT_A_MEMBER, REMOVED),
        }
        let is_configured = self.follow_configuration(snapshot).await?;
        // A fleet without a configuration has nothing that could replace what this balancer has.
        let has_followed = if snapshot.configuration.is_some() {
            let has_followed = self.follow_overrides(snapshot).await?;
            self.follow_homes(snapshot).await;
            has_followed
        } else {
            true
        };
        let has_all = self.note_unreadable(snapshot);
        if is_configured && has_followed && has_all {
            self.record.guard.put_in_force(&lineage);
            self.record.view = Some(StoredView::from(&*self.views.borrow()));
            let members = snapshot.members.iter();
            self.record.members =
                members.map(|(name, it)| (name.clone(), it.document.body.clone())).collect();
            self.save().await;
            let (revision, guard) = (snapshot.revision, self.record.guard);
            let members = Arc::new(self.record.members.clone());
            self.update(|in_force| {
                in_force.revision = revision;
                in_force.guard = guard;
                in_force.members = members;
            });
        }
        Ok(is_configured && has_followed)
    }

    /// Names values that are not followed. Returns whether what the fleet has may be said to be in force without them: not
    /// if a newer version wrote one.
    fn note_unreadable(&self, snapshot: &Snapshot) -> bool {
        let newer = versions::newer_value(snapshot);
        let is_shared = |(key, _): &(&String, _)| !key.contains("/config/");
        let unreadable = snapshot.unreadable.iter().find(is_shared);
        match newer.clone().or_else(|| unreadable.map(|(_, error)| error.to_string())) {
            Some(cause) => self.conditions.begin(&FLEET_VALUES, &cause),
            None => self.conditions.end(&FLEET_VALUES),
        }
        newer.is_none()
    }

    /// Returns whether they are in force.
    async fn follow_overrides(&mut self, snapshot: &Snapshot) -> Result<bool, Stopping> {
        if self.overrides.as_ref() == Some(&snapshot.overrides) {
            return Ok(true);
        }
        let now = wall_clock::moment();
        let shared = snapshot.overrides.iter();
        let followed: Vec<(Key, Override)> =
            shared.map(|(key, it)| (key.clone(), it.document.body.to_override(now))).collect();
        let by = (Actor::Unknown, Reason::default());
        let change = OverrideChange::Follow(followed);
        match self.commands.change_overrides(change, false, by).await? {
            Ok(_) => {
                self.conditions.end(&FLEET_OVERRIDES);
                self.overrides = Some(snapshot.overrides.clone());
                Ok(true)
            }
            Err(refusal) => {
                self.conditions.begin(&FLEET_OVERRIDES, &error_chain::message(&refusal));
                Ok(false)
            }
        }
    }

    /// Returns once packets follow, or after a while: the maps may have no room yet.
    async fn follow_homes(&mut self, snapshot: &Snapshot) {
        let marked_out = rebuild::present(snapshot, self.region.as_ref());
        if self.marked_out.as_ref() == Some(&marked_out) {
            return;
        }
        let decision = MarkOutDecision::Agreed(Arc::clone(&marked_out));
        self.homes.decide(decision.clone());
        self.marked_out = Some(marked_out);
        if self.in_force.borrow().generation > 0 {
            let mut in_force = self.homes.in_force();
            let follows = in_force.wait_for(|shown| shown.as_ref() == Some(&decision));
            let _ = timeout(HOMES, follows).await.map(|follows| follows.map(drop));
        }
    }

    fn share(&self, snapshot: &Snapshot, generation: u64) {
        let peers = snapshot.members.iter();
        let peers = peers.map(|(name, it)| (name.clone(), it.document.body.address));
        let view = FleetView {
            generation,
            births: snapshot.births(),
            membership: snapshot.membership(),
            epoch: snapshot.epoch.as_deref().cloned(),
            peers: peers.collect(),
        };
        self.views.send_if_modified(|known| {
            let is_new = *known != view;
            *known = view;
            is_new
        });
    }
}
