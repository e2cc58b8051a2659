//! Puts in force at this balancer what the fleet has in etcd.
//!
//! [`Follower`] waits for nothing: it decides whether a state of etcd may be followed, and offers it to the parts, each a task
//! of its own, so that a disk that does not answer holds up only the configuration.

mod configuration;
mod homes;
mod in_force;
mod overrides;
mod progress;
mod rebuild;
mod record_writer;

use std::{path::PathBuf, sync::Arc, time::Duration};

use lb_base::conditions::{
    ConditionReason, Conditions, FLEET_CONFIGURATION, FLEET_CONFLICT, Subject,
};
use lb_control::{command::Commands, state::MarkOutDecisions};
use lb_fleet::{
    Document, Fleet,
    documents::Liveness,
    reader::{Snapshot, View},
};
use lb_model::Name;
use tokio::{sync::watch, time::Instant};
use tokio_util::task::TaskTracker;

pub(super) use self::in_force::{InForce, RefusedGeneration};
use self::{
    configuration::{ConfigurationFollower, Retry},
    homes::HomesFollower,
    in_force::Shown,
    overrides::{FLEET_OVERRIDES, OverrideFollower},
    progress::{Offer, Part, PartKind, Progress},
    record_writer::{FLEET_RECORD, RecordWriter},
};
use super::{
    overrides::FLEET_CLOCK,
    record::{MembershipRecord, StoredView},
    sharing::{FleetView, SharingHandle},
    silent_peers::FLEET_PEERS,
    space::ETCD_SPACE,
    unowned::FLEET_PORTIONS,
    versions,
};

/// Before something that could not be put in force is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Subject of the condition that values of the fleet cannot be read, such as those of a newer version.
const FLEET_VALUES: Subject = Subject::new(ConditionReason::FleetConfiguration, "fleet values");

/// Subject of the condition that etcd does not have this balancer among the members.
const NOT_A_MEMBER: Subject = Subject::new(ConditionReason::FleetConflict, "fleet membership");

/// The subjects of a member's conditions, which end when it leaves.
pub(super) const SUBJECTS: [&Subject; 10] = [
    &FLEET_CONFIGURATION,
    &FLEET_CONFLICT,
    &FLEET_OVERRIDES,
    &FLEET_RECORD,
    &FLEET_VALUES,
    &FLEET_CLOCK,
    &ETCD_SPACE,
    &FLEET_PEERS,
    &FLEET_PORTIONS,
    &NOT_A_MEMBER,
];

/// Why a balancer whose key is gone from etcd has no portions, and what to do.
pub(super) const REMOVED: &str = "etcd does not have this balancer among the members, so it gets no portions of capacities: \
                                  leave by `spillway fleet leave`, and join again";

/// What is followed, and by what.
pub(super) struct FollowerInputs {
    pub(super) commands: Commands,
    pub(super) conditions: Conditions,
    pub(super) homes: MarkOutDecisions,
    pub(super) sharing: SharingHandle,
    pub(super) views: watch::Sender<FleetView>,
    pub(super) fleet: watch::Receiver<Option<Fleet>>,
    pub(super) view: watch::Receiver<View>,
    pub(super) liveness: watch::Sender<Arc<Document<Liveness>>>,
    pub(super) in_force: watch::Sender<InForce>,
    /// As it is on disk.
    pub(super) record: MembershipRecord,
    pub(super) state_directory: PathBuf,
    pub(super) region: Option<Name>,
    /// The maps do not know what home meant before the last change.
    pub(super) must_rebuild: bool,
    /// Waits for what cannot be cancelled.
    pub(super) tasks: TaskTracker,
}

/// The tasks that follow etcd.
pub(super) struct Followers {
    pub(super) follower: Follower,
    pub(super) configuration: ConfigurationFollower,
    pub(super) overrides: OverrideFollower,
    pub(super) homes: HomesFollower,
}

impl Followers {
    pub(super) fn new(inputs: FollowerInputs) -> Self {
        let FollowerInputs { commands, conditions, homes, region, must_rebuild, .. } = inputs;
        let FollowerInputs { in_force, liveness, record, .. } = inputs;
        let shown = Shown { in_force, liveness };
        let (offers, offers_rx) = watch::channel(None);
        let (progress, progress_rx) = watch::channel(Progress::default());
        let (is_rebuilding, is_rebuilding_rx) = watch::channel(must_rebuild);
        let part = |kind| {
            let (offers, is_rebuilding) = (offers_rx.clone(), is_rebuilding_rx.clone());
            Part::new(kind, progress.clone(), offers, is_rebuilding)
        };
        let (directory, tasks) = (inputs.state_directory, inputs.tasks);
        let writer = RecordWriter::new(directory, conditions.clone(), tasks, record.clone());
        let configuration = ConfigurationFollower {
            commands: commands.clone(),
            conditions: conditions.clone(),
            homes: homes.clone(),
            sharing: inputs.sharing,
            fleet: inputs.fleet,
            region: region.clone(),
            must_rebuild,
            is_rebuilding,
            retry: Retry::default(),
            shown: shown.clone(),
            part: part(PartKind::Configuration),
        };
        let overrides = part(PartKind::Overrides);
        let overrides =
            OverrideFollower::new(commands, conditions.clone(), shown.clone(), overrides);
        let homes = HomesFollower::new(homes, region, shown.clone(), part(PartKind::Homes));
        let follower = Follower {
            conditions,
            views: inputs.views,
            view: inputs.view,
            shown,
            record,
            writer,
            offers,
            offered: 0,
            progress: progress_rx,
            in_force: 0,
            unshown: None,
        };
        Self { follower, configuration, overrides, homes }
    }
}

/// Reads what etcd has, and offers it to what puts it in force.
pub(super) struct Follower {
    conditions: Conditions,
    views: watch::Sender<FleetView>,
    view: watch::Receiver<View>,
    shown: Shown,
    record: MembershipRecord,
    writer: RecordWriter,
    offers: watch::Sender<Option<Offer>>,
    /// Number of the last offer.
    offered: u64,
    progress: watch::Receiver<Progress>,
    /// Number of the last offer that is in force as a whole, or may not be followed any more.
    in_force: u64,
    /// The revision that is in force and not shown yet.
    unshown: Option<i64>,
}

impl Follower {
    /// Runs until the daemon stops.
    pub(super) async fn run(mut self) {
        self.view.mark_changed();
        loop {
            tokio::select! {
                changed = self.view.changed() => match changed {
                    Ok(()) => {
                        let snapshot = self.view.borrow_and_update().snapshot.clone();
                        if let Some(snapshot) = snapshot {
                            self.offer(snapshot);
                        }
                    }
                    Err(_) => return,
                },
                Ok(()) = self.progress.changed() => self.note_progress(),
                () = self.writer.changed() => {}
            }
            self.writer.save(&self.record);
            self.show();
        }
    }

    /// Offers what etcd has, if it may be followed.
    fn offer(&mut self, snapshot: Arc<Snapshot>) {
        if let Err(conflict) = self.record.guard.offer(&snapshot.lineage()) {
            let conflict = conflict.to_string();
            self.conditions.begin(&FLEET_CONFLICT, &conflict);
            self.offers.send_replace(None);
            (self.in_force, self.unshown) = (self.offered, None);
            let guard = self.record.guard;
            return self.shown.update(|in_force| {
                in_force.conflict = Some(conflict);
                in_force.conflict_since.get_or_insert_with(Instant::now);
                in_force.guard = guard;
            });
        }
        self.conditions.end(&FLEET_CONFLICT);
        self.shown.update(|in_force| (in_force.conflict, in_force.conflict_since) = (None, None));
        match snapshot.members.contains_key(&self.record.balancer) {
            true => self.conditions.end(&NOT_A_MEMBER),
            false => self.conditions.begin(&NOT_A_MEMBER, REMOVED),
        }
        self.note_unreadable(&snapshot);
        self.share(&snapshot);
        self.offered += 1;
        self.offers.send_replace(Some(Offer { number: self.offered, snapshot }));
    }

    /// Names values that are not followed.
    fn note_unreadable(&self, snapshot: &Snapshot) {
        let is_shared = |(key, _): &(&String, _)| !key.contains("/config/");
        let unreadable = snapshot.unreadable.iter().find(is_shared);
        let unreadable = unreadable.map(|(_, error)| error.to_string());
        match versions::newer_value(snapshot).or(unreadable) {
            Some(cause) => self.conditions.begin(&FLEET_VALUES, &cause),
            None => self.conditions.end(&FLEET_VALUES),
        }
    }

    /// Takes note of what is in force as a whole. That is not so if a newer version wrote a part of it.
    fn note_progress(&mut self) {
        let offer = self.progress.borrow_and_update().of_all().cloned();
        let Some(Offer { number, snapshot }) = offer else { return };
        if number <= self.in_force || versions::newer_value(&snapshot).is_some() {
            return;
        }
        self.in_force = number;
        self.record.guard.put_in_force(&snapshot.lineage());
        self.record.view = Some(StoredView::from(&*self.views.borrow()));
        let members = snapshot.members.iter();
        self.record.members =
            members.map(|(name, it)| (name.clone(), it.document.body.clone())).collect();
        self.unshown = Some(snapshot.revision);
    }

    /// Shows what is in force once it is stored, or at once if the disk takes nothing.
    fn show(&mut self) {
        if self.writer.is_awaited() {
            return;
        }
        let Some(revision) = self.unshown.take() else { return };
        let (guard, members) = (self.record.guard, Arc::new(self.record.members.clone()));
        self.shown.update(|in_force| {
            in_force.revision = revision;
            in_force.guard = guard;
            in_force.members = members;
        });
    }

    /// Has capacities shared by it, before new groups are in force.
    fn share(&self, snapshot: &Snapshot) {
        self.views.send_if_modified(|known| {
            let next = shared_view(snapshot, known).filter(|next| next != known);
            let is_new = next.is_some();
            if let Some(next) = next {
                *known = next;
            }
            is_new
        });
    }
}

/// What capacities are shared by. While the configuration that etcd has cannot be read, the groups stay those that are `known`,
/// and balancers come and go as always. `None`: there are no groups, so limits stay as they are, since nobody owns anything.
fn shared_view(snapshot: &Snapshot, known: &FleetView) -> Option<FleetView> {
    let current =
        snapshot.configuration.as_ref().filter(|_| snapshot.configuration_error.is_none());
    let (generation, births) = match current {
        Some(shared) => (shared.committed.document.body.number, snapshot.births()),
        None if snapshot.configuration_error.is_some() && known.generation > 0 => {
            (known.generation, known.births.clone())
        }
        None => return None,
    };
    let peers = snapshot.members.iter();
    let peers = peers.map(|(name, it)| (name.clone(), it.document.body.address));
    Some(FleetView {
        generation,
        births,
        membership: snapshot.membership(),
        epoch: snapshot.epoch.as_deref().cloned(),
        peers: peers.collect(),
    })
}

#[cfg(test)]
mod tests {
    use lb_fleet::{DocumentError, documents::FleetMember, reader::Versioned};
    use lb_model::Name;
    use lb_sharing::GroupKey;

    use super::*;

    #[test]
    fn balancers_come_and_go_beside_a_configuration_that_cannot_be_read() {
        let name = |text: &str| Name::new(text).unwrap();
        let mut snapshot = Snapshot::default();
        for (balancer, address) in [("lb-1", "192.0.2.1:7946"), ("lb-3", "192.0.2.3:7946")] {
            let address = address.parse().unwrap();
            let (version, schema) = (String::new(), 1);
            let member =
                FleetMember { address, region: None, incarnation: 1, epoch: 0, version, schema };
            let member = Versioned { document: member.into(), mod_revision: 9 };
            snapshot.members.insert(name(balancer), member);
        }
        let before = FleetView::default();
        assert_eq!(shared_view(&snapshot, &before), None, "no configuration yet");
        let error = DocumentError::Newer { key: "config/current".into(), format: 7 };
        snapshot.configuration_error = Some(error);
        assert_eq!(shared_view(&snapshot, &before), None, "no groups are known");
        // As it was stored, with a balancer that has left since.
        let group = GroupKey { pool: name("web"), region: name("eu"), birth: 4 };
        let mut stored = FleetView { generation: 5, ..FleetView::default() };
        stored.births.insert(group, [name("lb-1"), name("lb-2")].into());
        stored.peers.insert(name("lb-2"), "192.0.2.2:7946".parse().unwrap());
        let view = shared_view(&snapshot, &stored).unwrap();
        assert_eq!((view.generation, &view.births), (5, &stored.births));
        let members = [name("lb-1"), name("lb-3")];
        assert!(view.membership.members.keys().eq(&members), "{:?}", view.membership);
        assert!(view.peers.keys().eq(&members), "{:?}", view.peers);
    }
}
