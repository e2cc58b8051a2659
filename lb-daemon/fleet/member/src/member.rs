//! A balancer that is a member of a fleet, while the daemon runs.

use std::{
    collections::BTreeSet,
    fmt,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use lb_base::conditions::{Conditions, FLEET_INSECURE};
use lb_control::command::{Commands, OverrideEnds};
use lb_fleet::{
    Document, Fleet, FleetSettings,
    documents::Liveness,
    reader::{Snapshot, View},
    settings::EtcdTls,
    space::EtcdSpace,
};
use lb_model::Name;
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use lb_secure::tls::{CertificateFiles, TlsError, TlsFiles};

use super::{
    collect, epochs,
    etcd::{self, EtcdConnection},
    follower::{FollowerInputs, Followers, InForce},
    homes, liveness,
    membership::Context,
    packet_path::{Counters, Limits},
    record::MembershipRecord,
    sharing::{
        self, FleetView, LedgerFile, PeerCredentials, PeerSecurity, SharingHandle, SharingInputs,
        SharingSettings, SharingStartError,
    },
    space, versions,
};

/// How long a start waits for what etcd knows of earlier starts.
const FIRST_VIEW: Duration = Duration::from_secs(3);

/// The same after a boot, when the network may take longer, and a ledger that is an old copy would be believed.
const FIRST_VIEW_AFTER_BOOT: Duration = Duration::from_secs(10);

/// Why a member cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Sharing(#[from] SharingStartError),
    #[error("{name} is alive at {address}: another host has the name of this balancer")]
    NameInUse { name: Name, address: SocketAddr },
}

/// What a member does: it follows etcd, shares the capacities, and commits changes.
pub struct Member {
    settings: FleetSettings,
    commands: Commands,
    conditions: Conditions,
    override_ends: OverrideEnds,
    etcd: EtcdConnection,
    in_force: watch::Receiver<InForce>,
    /// The fleet as it was last followed.
    known: watch::Receiver<FleetView>,
    sharing: SharingHandle,
    security: PeerSecurity,
    space: watch::Receiver<Option<EtcdSpace>>,
    committing: Mutex<()>,
    stop: CancellationToken,
    started: Instant,
    has_been_ready: AtomicBool,
    tasks: TaskTracker,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Member {
    /// Starts to follow the fleet. What is in force stays until etcd, or the store, says what the fleet has.
    ///
    /// # Errors
    /// The certificate files cannot be used, the ledger cannot be stored, or the address for peers is not free.
    pub(super) async fn start(
        context: &Context,
        settings: FleetSettings,
        record: MembershipRecord,
        lost_maps: bool,
    ) -> Result<Arc<Self>, StartError> {
        let stop = CancellationToken::new();
        let end_if_it_fails = stop.clone().drop_guard();
        let (version, schema) = (sharing::PROGRAM_VERSION.into(), versions::own_schema());
        let liveness = Liveness { version, schema, ..Liveness::default() };
        let (liveness, liveness_rx) = watch::channel(Arc::new(Document::from(liveness)));
        let (conditions, end) = (context.conditions.clone(), stop.clone());
        let (tasks, (may_show, is_shown)) = (TaskTracker::new(), watch::channel(false));
        let presence = (liveness_rx, is_shown);
        let known = record.guard.in_force().and_then(|it| it.generation).map(|(number, _)| number);
        let here = context.commands.export().await.map(|exported| exported.generation);
        let generation = known.filter(|known| here == Ok(*known)).unwrap_or_default();
        let (guard, members) = (record.guard, Arc::new(record.members.clone()));
        let (in_force_tx, in_force) =
            watch::channel(InForce { generation, guard, members, ..InForce::default() });
        let etcd =
            etcd::connect(settings.clone(), presence, in_force.clone(), conditions, &tasks, end);
        let known_incarnation = known_incarnation(&etcd, &settings, lost_maps).await?;
        let security = peer_security(&settings, &context.conditions)?;
        if settings.tls.is_none() {
            context.conditions.begin(&FLEET_INSECURE, &insecure(&settings));
        }
        let stored = record.view.clone().unwrap_or_default();
        let (views, view_rx) = watch::channel(FleetView::from(stored));
        let known = view_rx.clone();
        let (requests_tx, requests) = watch::channel(None);
        let inputs = SharingInputs {
            view: view_rx,
            counters: Counters::new(context.commands.clone(), in_force.clone()),
            enforcer: Limits::new(context.portions.clone()),
            epoch_requests: requests_tx,
            conditions: context.conditions.clone(),
            answers: context.answers.clone(),
        };
        let sharing = sharing::start(
            SharingSettings {
                name: settings.name.clone(),
                listen: settings.address,
                security: security.clone(),
                ledger: LedgerFile::new(
                    &context.state_directory,
                    settings.fleet.clone(),
                    settings.name.clone(),
                ),
                known_incarnation,
                lost_maps: lost_maps.then(|| peers(&etcd, &record, &settings.name)),
            },
            inputs,
        )
        .await?;
        // Whoever is alive takes part: the others hear from it from now on.
        may_show.send_replace(true);
        let _stop = end_if_it_fails.disarm();
        let followers = Followers::new(FollowerInputs {
            commands: context.commands.clone(),
            conditions: context.conditions.clone(),
            homes: context.homes.clone(),
            sharing: sharing.clone(),
            views,
            fleet: etcd.fleet.clone(),
            view: etcd.view.clone(),
            liveness: liveness.clone(),
            in_force: in_force_tx,
            // A balancer that joins has nothing of the fleet in force yet.
            must_rebuild: lost_maps || record.guard.in_force().is_none(),
            record,
            state_directory: context.state_directory.clone(),
            region: settings.region.clone(),
            tasks: tasks.clone(),
        });
        let (space_tx, space) = watch::channel(None);
        let member = Arc::new(Self {
            settings,
            commands: context.commands.clone(),
            conditions: context.conditions.clone(),
            override_ends: context.override_ends.clone(),
            etcd,
            in_force,
            known,
            sharing,
            security,
            space,
            committing: Mutex::new(()),
            stop,
            started: Instant::now(),
            has_been_ready: AtomicBool::new(false),
            tasks,
        });
        let Followers { follower, configuration, overrides, homes } = followers;
        member.spawn(follower.run());
        member.spawn(configuration.run());
        member.spawn(overrides.run());
        member.spawn(homes.run());
        member.spawn(Arc::clone(&member).expire_overrides());
        member.spawn(epochs::write_steps(Arc::clone(&member), requests));
        member.spawn(epochs::record_incarnation(Arc::clone(&member)));
        member.spawn(collect::remove_old_generations(Arc::clone(&member)));
        member.spawn(space::watch_space(Arc::clone(&member), space_tx));
        member.spawn(homes::agree(Arc::clone(&member), context.homes.clone(), liveness.clone()));
        member.spawn(liveness::report(Arc::clone(&member), context.conditions.clone(), liveness));
        member.tasks.close();
        Ok(member)
    }

    /// Runs until the member stops.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move { stop.run_until_cancelled(task).await });
    }

    /// The fleet's name.
    pub fn fleet(&self) -> &Name {
        &self.settings.fleet
    }

    /// This balancer's.
    pub fn name(&self) -> &Name {
        &self.settings.name
    }

    /// Whether it was ready once: what comes later does not make a balancer unfit that serves.
    pub(super) fn has_been_ready(&self) -> &AtomicBool {
        &self.has_been_ready
    }

    pub(super) fn settings(&self) -> &FleetSettings {
        &self.settings
    }

    pub(super) fn commands(&self) -> &Commands {
        &self.commands
    }

    pub(super) fn etcd(&self) -> &EtcdConnection {
        &self.etcd
    }

    pub(super) fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    pub(super) fn override_ends(&self) -> &OverrideEnds {
        &self.override_ends
    }

    pub(super) fn sharing(&self) -> &SharingHandle {
        &self.sharing
    }

    pub(super) fn peer_security(&self) -> &PeerSecurity {
        &self.security
    }

    pub(super) fn committing(&self) -> &Mutex<()> {
        &self.committing
    }

    pub(super) const fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn in_force(&self) -> InForce {
        self.in_force.borrow().clone()
    }

    /// What the capacities are shared by: while there is a conflict with etcd, as it was before.
    pub(super) fn known(&self) -> FleetView {
        self.known.borrow().clone()
    }

    /// Of etcd's database; `None`: it was not asked yet.
    pub(super) fn space(&self) -> Option<EtcdSpace> {
        *self.space.borrow()
    }

    pub(super) fn watch_in_force(&self) -> watch::Receiver<InForce> {
        self.in_force.clone()
    }

    pub(super) fn view(&self) -> View {
        self.etcd.view.borrow().clone()
    }

    /// Stops following. What is in force stays so.
    pub(super) async fn stop(&self) {
        // First, so that nothing goes on if this is not waited for.
        self.stop.cancel();
        self.sharing.stop().await;
        self.tasks.wait().await;
        if let PeerSecurity::Tls(credentials) = &self.security {
            credentials.end_conditions();
        }
    }

    /// etcd, and what it has, if that may be followed.
    pub(super) fn followed(&self) -> Result<(Fleet, Arc<Snapshot>), String> {
        let view = self.view();
        let fleet = self.etcd.fleet.borrow().clone();
        match (view.connection.sentence(), fleet, view.snapshot) {
            (Some(sentence), ..) => Err(format!("the fleet takes no changes: {sentence}")),
            (None, Some(fleet), Some(snapshot)) => {
                self.check_lineage(&snapshot)?;
                Ok((fleet, snapshot))
            }
            (None, ..) => Err("the fleet takes no changes: etcd has not answered yet".into()),
        }
    }

    /// Whether etcd does not have this balancer among the members, as after `spillway fleet remove` while its daemon was
    /// stopped.
    pub(super) fn is_removed(&self) -> bool {
        let snapshot = self.view().snapshot;
        snapshot.is_some_and(|snapshot| !snapshot.members.contains_key(self.name()))
    }

    /// Whether what etcd has follows what is in force here, also if nothing was followed since.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check_lineage(&self, snapshot: &Snapshot) -> Result<(), String> {
        let mut guard = self.in_force.borrow().guard;
        guard.offer(&snapshot.lineage()).map_err(|conflict| conflict.to_string())
    }

    /// Waits until what etcd has is in force here, and at least `generation`; returns the one in force, or 0 if the fleet
    /// has none.
    ///
    /// # Errors
    /// It takes too long; the sentence says why.
    pub(super) async fn wait_until_in_force(
        &self,
        generation: u64,
        limit: Duration,
    ) -> Result<u64, String> {
        let mut view = self.etcd.view.clone();
        let _ = timeout(limit, view.wait_for(|view| view.snapshot.is_some()))
            .await
            .map(|seen| seen.map(drop));
        let snapshot = self.view().snapshot;
        let snapshot = snapshot.ok_or("etcd does not answer")?;
        // The view may be older than a generation that this balancer just committed.
        let there = snapshot.configuration.as_ref();
        let there = there.map_or(0, |it| it.committed.document.body.number);
        self.wait_for(generation.max(there)).await?;
        Ok(self.in_force().generation)
    }
}

fn peer_security(
    settings: &FleetSettings,
    conditions: &Conditions,
) -> Result<PeerSecurity, TlsError> {
    let Some(files) = &settings.tls else { return Ok(PeerSecurity::Plain) };
    PeerCredentials::open(tls_files(files), conditions.clone()).map(PeerSecurity::Tls)
}

/// What a fleet without certificates means.
fn insecure(settings: &FleetSettings) -> String {
    format!(
        "the settings ask for no certificates (insecure): whoever reaches etcd or {} can change what the fleet has",
        settings.address
    )
}

/// The files with which balancers reach etcd and each other.
pub(super) fn tls_files(files: &EtcdTls) -> TlsFiles {
    let (certificate, key) = (files.certificate.clone(), files.key.clone());
    TlsFiles { own: CertificateFiles { certificate, key }, authorities: files.authorities.clone() }
}

/// The last start of this balancer that etcd knows of; 0: none, or etcd does not answer.
async fn known_incarnation(
    etcd: &EtcdConnection,
    settings: &FleetSettings,
    lost_maps: bool,
) -> Result<u64, StartError> {
    let limit = if lost_maps { FIRST_VIEW_AFTER_BOOT } else { FIRST_VIEW };
    let (mut view, name) = (etcd.view.clone(), &settings.name);
    let _ =
        timeout(limit, view.wait_for(|view| view.snapshot.is_some())).await.map(|it| it.map(drop));
    let Some(snapshot) = etcd.view.borrow().snapshot.clone() else { return Ok(0) };
    let Some(member) = snapshot.members.get(name) else { return Ok(0) };
    let address = member.document.body.address;
    // Its own lease of before has its own address.
    if snapshot.alive.contains_key(name) && address != settings.address {
        return Err(StartError::NameInUse { name: name.clone(), address });
    }
    Ok(member.document.body.incarnation)
}

/// The other members, from etcd or from what is stored.
fn peers(etcd: &EtcdConnection, record: &MembershipRecord, own: &Name) -> BTreeSet<Name> {
    let snapshot = etcd.view.borrow().snapshot.clone();
    let members: BTreeSet<Name> = match (&snapshot, &record.view) {
        (Some(snapshot), _) => snapshot.members.keys().cloned().collect(),
        (None, Some(view)) => view.members.keys().cloned().collect(),
        (None, None) => BTreeSet::new(),
    };
    members.into_iter().filter(|name| name != own).collect()
}
