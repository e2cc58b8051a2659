//! Puts in force at this balancer what the fleet has in etcd.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use lb_base::{
    conditions::{ConditionReason, Conditions, FLEET_CONFIGURATION, FLEET_CONFLICT, Subject},
    error_chain,
};
use lb_config::Reason;
use lb_control::{
    command::{Actor, Apply, Commands, OverrideChange, Refusal, Stopping},
    state::{MarkOutDecision, MarkOutDecisions, MarkedOutByPool},
    store,
};
use lb_fleet::{
    Document, DocumentError, Fleet,
    documents::{FleetMember, Generation, Liveness, SharedOverride},
    lineage::LineageGuard,
    reader::{Snapshot, Versioned, View},
};
use lb_model::{
    Configuration, Name,
    overrides::{Key, Override},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::task::TaskTracker;

use super::{
    overrides::FLEET_CLOCK,
    rebuild,
    record::{MembershipRecord, StoredView},
    sharing::{FleetView, SharingHandle},
    versions, wall_clock,
};

/// Before something that could not be put in force is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Longest wait before that: each attempt computes a plan.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Longest wait for the portions of a generation's new groups. After it they are closed until they are known.
const PORTIONS: Duration = Duration::from_secs(2);

/// Longest wait until packets follow what is marked out.
const HOMES: Duration = Duration::from_secs(3);

/// Subject of the condition that the overrides of the fleet are not in force.
const FLEET_OVERRIDES: Subject = Subject::new(ConditionReason::Overrides, "fleet overrides");

/// Subject of the condition that values of the fleet cannot be read, such as those of a newer version.
const FLEET_VALUES: Subject = Subject::new(ConditionReason::FleetConfiguration, "fleet values");

/// Subject of the condition that what the fleet has in force is not stored.
const FLEET_RECORD: Subject = Subject::new(ConditionReason::Store, "fleet record");

/// Subject of the condition that etcd does not have this balancer among the members.
const NOT_A_MEMBER: Subject = Subject::new(ConditionReason::FleetConflict, "fleet membership");

/// The subjects of a member's conditions, which end when it leaves.
pub(super) const SUBJECTS: [&Subject; 7] = [
    &FLEET_CONFIGURATION,
    &FLEET_CONFLICT,
    &FLEET_OVERRIDES,
    &FLEET_RECORD,
    &FLEET_VALUES,
    &FLEET_CLOCK,
    &NOT_A_MEMBER,
];

/// Why a balancer whose key is gone from etcd has no portions, and what to do.
pub(super) const REMOVED: &str = "etcd does not have this balancer among the members, so it gets no portions of capacities: \
                                  leave by `spillway fleet leave`, and join again";

/// What this balancer has in force of what the fleet has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InForce {
    pub(super) revision: i64,
    /// 0: none.
    pub(super) generation: u64,
    pub(super) refused: Option<RefusedGeneration>,
    /// Why etcd is not followed any more.
    pub(super) conflict: Option<String>,
    /// What etcd may have, given what is in force.
    pub(super) guard: LineageGuard,
    /// The members of the fleet.
    pub(super) members: Arc<BTreeMap<Name, FleetMember>>,
}

/// A generation that could not be put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedGeneration {
    /// 0: its number is not known.
    pub(super) generation: u64,
    pub(super) cause: String,
    /// This balancer is too old for it, and would lose a part of it.
    pub(super) is_newer: bool,
}

/// When a generation that could not be put in force is tried again.
#[derive(Debug, Default)]
pub(super) struct Retry {
    /// `mod_revision` of `config/current`, when to try it again, and how long to wait after that.
    last: Option<(i64, Instant, Duration)>,
}

impl Retry {
    fn is_due(&self, mod_revision: i64) -> bool {
        self.last.is_none_or(|(tried, at, _)| tried != mod_revision || Instant::now() >= at)
    }

    fn note_failure(&mut self, mod_revision: i64) {
        let wait = match self.last {
            Some((tried, _, wait)) if tried == mod_revision => (wait * 2).min(LONGEST_RETRY),
            _ => RETRY,
        };
        self.last = Some((mod_revision, Instant::now() + wait, wait));
    }
}

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

    /// Returns whether the generation of etcd is in force.
    async fn follow_configuration(&mut self, snapshot: &Snapshot) -> Result<bool, Stopping> {
        if let Some(error) = &snapshot.configuration_error {
            let is_newer = matches!(error, DocumentError::Newer { .. });
            self.refuse(snapshot, &error.to_string(), is_newer);
            return Ok(false);
        }
        // Until the fleet has one, limits stay as they are: nobody owns anything.
        let Some(shared) = &snapshot.configuration else { return Ok(true) };
        let generation = &shared.committed.document.body;
        let number = generation.number;
        // The portions of new groups have to be in force before packets see them.
        self.share(snapshot, number);
        if self.in_force.borrow().generation == number && !self.must_rebuild {
            self.conditions.end(&FLEET_CONFIGURATION);
            self.update(|in_force| in_force.refused = None);
            return Ok(true);
        }
        let mod_revision = shared.committed.mod_revision;
        if !self.retry.is_due(mod_revision) {
            return Ok(false);
        }
        let decoded = match store::decode_shared(&shared.bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.retry.note_failure(mod_revision);
                self.refuse(snapshot, &error_chain::message(&error), error.is_newer());
                return Ok(false);
            }
        };
        // A change without new groups waits for no round and for no write of the ledger, which were most of its time.
        let newest = generation.births.values().flat_map(BTreeMap::values).max();
        let newest = newest.copied().unwrap_or(0);
        // With an epoch open, or a disk that does not answer, its portions of new groups are not there yet.
        if timeout(PORTIONS, self.sharing.adopted(newest)).await.is_err()
            && timeout(PORTIONS, self.sharing.enforced(newest)).await.is_err()
        {
            tracing::warn!("the portions of generation {number} are not in force in time");
        }
        if self.must_rebuild {
            self.rebuild(snapshot, generation, &decoded).await?;
        }
        match self.apply(generation, decoded).await? {
            Ok(()) => {
                self.must_rebuild = false;
                self.conditions.end(&FLEET_CONFIGURATION);
                self.update(|in_force| {
                    in_force.generation = number;
                    in_force.refused = None;
                });
                Ok(true)
            }
            Err(cause) => {
                self.retry.note_failure(mod_revision);
                self.refuse(snapshot, &cause, false);
                Ok(false)
            }
        }
    }

    fn refuse(&self, snapshot: &Snapshot, cause: &str, is_newer: bool) {
        let current = snapshot.configuration.as_ref();
        let number = current.map_or(0, |it| it.committed.document.body.number);
        let sentence = match number {
            0 => format!("the configuration of the fleet is not in force here: {cause}"),
            number => format!("generation {number} of the fleet is not in force here: {cause}"),
        };
        self.conditions.begin(&FLEET_CONFIGURATION, &sentence);
        let refused = RefusedGeneration { generation: number, cause: cause.to_owned(), is_newer };
        self.update(|in_force| in_force.refused = Some(refused));
    }

    /// Puts in force the homes from before the last changes. If it cannot, flows that they placed may break, and no others.
    async fn rebuild(
        &self,
        snapshot: &Snapshot,
        generation: &Generation,
        present: &Configuration,
    ) -> Result<(), Stopping> {
        let (region, now) = (self.region.as_ref(), wall_clock::now());
        let marked_out = rebuild::previously_marked_out(snapshot, present, region, now);
        let marked_out = marked_out.map_or_else(|| rebuild::present(snapshot, region), Arc::new);
        self.homes.decide(MarkOutDecision::Agreed(marked_out));
        let past = self.read_past(&rebuild::needed(snapshot, present, now)).await;
        let Some(previous) = rebuild::previous(&past, (generation.applied_at, present), now) else {
            return Ok(());
        };
        // No generation of the fleet, and gone from the store with the next one, whose number is not above this one.
        let number = generation.number.saturating_add(1);
        let reason = "the homes before the last changes".into();
        let before = Generation { number, reason, ..generation.clone() };
        match self.apply(&before, previous).await? {
            Ok(()) => tracing::info!(
                "the homes before the last changes are in force first, so that flows find them"
            ),
            Err(cause) => {
                tracing::warn!("the homes before the last changes are not known here: {cause}");
            }
        }
        Ok(())
    }

    /// Generations of the history, as far as they can be read and used here: one that cannot was in force nowhere.
    async fn read_past(&self, numbers: &[u64]) -> Vec<rebuild::Since<Configuration>> {
        let fleet = self.fleet.borrow().clone();
        let mut past = Vec::new();
        let Some(fleet) = fleet else { return past };
        for number in numbers {
            let read = fleet.read_generation(*number).await.map_err(|error| error.to_string());
            let used = read.and_then(|it| {
                let decoded = store::decode_shared(&it.bytes);
                let decoded = decoded.map_err(|error| error_chain::message(&error))?;
                Ok((it.committed.document.body.applied_at, decoded))
            });
            match used {
                Ok(used) => past.push(used),
                Err(cause) => {
                    tracing::warn!("the homes of generation {number} are not known here: {cause}")
                }
            }
        }
        past
    }

    async fn apply(
        &self,
        generation: &Generation,
        configuration: Configuration,
    ) -> Result<Result<(), String>, Stopping> {
        let apply = Apply {
            configuration: configuration.into(),
            shared: Some(generation.number),
            actor: Actor::Fleet { author: generation.author.clone() },
            request: generation.reason.clone(),
            reason: Reason::new(&generation.reason).unwrap_or_default(),
            ..Apply::default()
        };
        Ok(match self.commands.apply(apply, None).await? {
            // The packet path is a condition of its own, and is retried by the state loop.
            Ok(_) | Err(Refusal::Behind { .. }) => Ok(()),
            Err(refusal) => Err(error_chain::message(&refusal)),
        })
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

    /// Stores the record, if it is another one than before.
    async fn save(&mut self) {
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
    fn update(&self, change: impl FnOnce(&mut InForce)) {
        let mut next = self.in_force.borrow().clone();
        change(&mut next);
        self.in_force.send_if_modified(|known| {
            let is_new = *known != next;
            *known = next.clone();
            is_new
        });
        self.liveness.send_if_modified(|liveness| {
            let body = &liveness.body;
            let same = (body.revision, body.generation) == (next.revision, next.generation);
            if !same {
                let (revision, generation) = (next.revision, next.generation);
                let body = Liveness { revision, generation, ..body.clone() };
                *liveness = Arc::new(liveness.replaced_by(body));
            }
            !same
        });
    }
}
