//! Joining and leaving a fleet, while the daemon runs.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use lb_base::{
    conditions::{Conditions, FLEET_SHARES},
    error_chain,
};
use lb_config::Reason;
use lb_control::{
    command::{
        Actor, Applied, Apply, Commands, FleetRefusal, OverrideChange, OverridesInForce, Refusal,
        Stopping,
    },
    members::PortionCommands,
    state::{MarkOutDecision, MarkOutDecisions},
    store,
};
use lb_fleet::{
    Document, EtcdError, Fleet, FleetSettings,
    documents::FleetMember,
    members::MemberError,
    reader::{Snapshot, Versioned},
};
use lb_model::{Configuration, Name};
use lb_sharing::Ledger;
use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};

use super::{
    commits, etcd,
    follower::SUBJECTS,
    member::Member,
    member::StartError,
    record::{MembershipRecord, RecordError},
    sharing::{LedgerFile, PacketCounts, SharingStartError},
};

/// Longest wait until a balancer that joins has the fleet's configuration in force.
const JOIN: Duration = Duration::from_secs(60);

/// Longest wait until a balancer that leaves has given everything away.
const LEAVE: Duration = Duration::from_secs(60);

/// Before a member whose ledger or address cannot be used tries again.
const RETRY: Duration = Duration::from_secs(5);

/// How often it is looked whether a member is ready.
const POLL: Duration = Duration::from_millis(100);

/// What a member works with.
#[derive(Clone, Debug)]
pub struct Context {
    /// `None`: the settings name no fleet.
    pub settings: Option<FleetSettings>,
    pub commands: Commands,
    pub conditions: Conditions,
    pub portions: PortionCommands,
    pub homes: MarkOutDecisions,
    /// What the loops know of it.
    pub is_member: lb_control::state::Membership,
    pub state_directory: PathBuf,
    pub(crate) packets: PacketCounts,
    /// The maps were made anew, as after a boot.
    pub lost_maps: bool,
}

/// Why a balancer did not join, leave or restore. Nothing changed, unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    #[error("the settings name no fleet")]
    NoSettings,
    #[error("this balancer is a member of fleet {0} already")]
    IsMember(Name),
    #[error("this balancer is no member of a fleet")]
    NoMember,
    #[error(
        "this balancer does not take part in its fleet yet, so it cannot give its portions to the others"
    )]
    NotStarted,
    #[error("{0} is a member of the fleet, and alive, at {1}: another host has this name")]
    NameInUse(Name, String),
    #[error("{0} is no member of the fleet")]
    Unknown(Name),
    #[error("{0} is this balancer: it leaves by `spillway fleet leave`")]
    IsThis(Name),
    #[error("the fleet takes no changes: {0}")]
    Etcd(String),
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Stopping(#[from] Stopping),
    #[error("{0}")]
    Incomplete(String),
}

impl From<EtcdError> for MembershipError {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(error.to_string())
    }
}

impl From<FleetRefusal> for MembershipError {
    fn from(refusal: FleetRefusal) -> Self {
        Self::Refused(refusal.into())
    }
}

/// What a join did, or would do.
#[derive(Debug, Default)]
pub struct Joined {
    pub is_member: bool,
    /// The fleet has the configuration of this balancer.
    pub founded: bool,
    /// 0: the fleet has none.
    pub generation: u64,
    /// What the fleet's configuration changes at this balancer.
    pub changes: Option<Applied>,
}

/// Whether this balancer is a member of a fleet. Clones are of the same.
#[derive(Clone, Debug)]
pub struct Membership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    context: Context,
    member: watch::Sender<Option<Arc<Member>>>,
    /// One join, leave or restore at a time.
    changing: Mutex<()>,
}

impl Membership {
    /// Of an independent balancer, until [`Self::resume`] or [`Self::join`].
    pub fn new(context: Context) -> Self {
        Self(Arc::new(Shared { context, member: watch::channel(None).0, changing: Mutex::new(()) }))
    }

    /// `None`: this balancer is no member, or does not take part yet.
    pub fn member(&self) -> Option<Arc<Member>> {
        self.0.member.borrow().clone()
    }

    /// Why this balancer should not take traffic yet; `None`: it may.
    pub fn not_ready(&self) -> Option<String> {
        match self.member() {
            Some(member) => member.not_ready(),
            None if self.0.context.is_member.is_member() => {
                Some("this balancer does not take part in its fleet yet".into())
            }
            None => None,
        }
    }

    /// Waits until it may take traffic.
    pub async fn until_ready(&self) {
        while self.not_ready().is_some() {
            sleep(POLL).await;
        }
    }

    pub fn settings(&self) -> Option<&FleetSettings> {
        self.0.context.settings.as_ref()
    }

    /// Goes on as the member that an earlier start of the daemon was. Tries until it can, or until the balancer leaves.
    pub async fn resume(&self, record: MembershipRecord) {
        let Some(settings) = self.settings().cloned() else { return };
        let context = &self.0.context;
        loop {
            {
                let _turn = self.0.changing.lock().await;
                if !context.is_member.is_member() {
                    return;
                }
                let lost_maps = context.lost_maps;
                match Member::start(context, settings.clone(), record.clone(), lost_maps).await {
                    Ok(member) => {
                        context.conditions.end(&FLEET_SHARES);
                        self.0.member.send_replace(Some(member));
                        return;
                    }
                    Err(error) => {
                        context.conditions.begin(&FLEET_SHARES, &error_chain::message(&error));
                    }
                }
            }
            sleep(RETRY).await;
        }
    }

    /// Ends all tasks of a member, which stays one for the next start of the daemon.
    pub async fn stop(&self) {
        let member = self.0.member.send_replace(None);
        if let Some(member) = member {
            member.stop().await;
        }
    }

    /// Makes this balancer a member. Without `replace` it does so only if the fleet's configuration is no other than its
    /// own.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn join(&self, replace: bool, dry_run: bool) -> Result<Joined, MembershipError> {
        let _turn = self.0.changing.lock().await;
        let context = &self.0.context;
        let settings = context.settings.clone().ok_or(MembershipError::NoSettings)?;
        if context.is_member.is_member() {
            return Err(MembershipError::IsMember(settings.fleet));
        }
        let fleet = Fleet::new(&settings).await?;
        let snapshot = etcd::read_once(&fleet).await.map_err(MembershipError::Etcd)?;
        let before = snapshot.members.get(&settings.name);
        if let Some(before) = before
            && snapshot.alive.contains_key(&settings.name)
        {
            let address = before.document.body.address.to_string();
            return Err(MembershipError::NameInUse(settings.name, address));
        }
        let exported = context.commands.export().await?;
        if let Some(unusable) = &exported.unusable {
            let cause = &unusable.cause;
            let text = format!("the configuration of this balancer cannot be used: {cause}");
            return Err(MembershipError::Conflict(text));
        }
        let mut joined = self.compare(&snapshot).await?;
        let differs = joined.changes.as_ref().is_some_and(|it| !it.changes.is_empty());
        joined.founded = snapshot.configuration.is_none() && exported.generation > 0;
        let founding = match joined.founded {
            true => Some(self.plan_founding(exported.configuration).await?),
            false => None,
        };
        if dry_run || differs && !replace {
            return Ok(joined);
        }
        self.write_member(&fleet, &settings, &snapshot, before).await?;
        let entered = self.enter(settings, founding.map(|it| (it, exported.overrides))).await;
        let (member, first) = match entered {
            Ok(entered) => entered,
            Err(error) => {
                self.undo_join(&fleet).await;
                return Err(error);
            }
        };
        joined.generation = member.wait_until_in_force(first, JOIN).await.map_err(|cause| {
            MembershipError::Incomplete(format!(
                "this balancer is a member now, but the fleet's configuration is not in force yet: {cause}"
            ))
        })?;
        joined.is_member = true;
        Ok(joined)
    }

    /// Begins to take part, with a key in etcd already. Returns the generation that it founded the fleet with; 0: it did not.
    async fn enter(
        &self,
        settings: FleetSettings,
        founding: Option<(Configuration, OverridesInForce)>,
    ) -> Result<(Arc<Member>, u64), MembershipError> {
        let context = &self.0.context;
        let record = MembershipRecord::new(settings.fleet.clone(), settings.name.clone());
        record.write(&context.state_directory)?;
        context.is_member.set(true);
        // The maps of a balancer that joins may be of long ago, but it owned nothing before.
        let member = Member::start(context, settings, record, false).await?;
        self.0.member.send_replace(Some(Arc::clone(&member)));
        let Some((configuration, overrides)) = founding else { return Ok((member, 0)) };
        let generation = member.found(&configuration, &overrides.overrides).await?;
        let generation = generation.ok_or_else(|| {
            let text =
                "another balancer has founded the fleet meanwhile: join again to see what it has";
            MembershipError::Conflict(text.into())
        })?;
        Ok((member, generation))
    }

    /// Leaves no trace of a join that failed.
    async fn undo_join(&self, fleet: &Fleet) {
        if let Some(member) = self.0.member.send_replace(None) {
            member.stop().await;
        }
        if let Err(error) = self.become_independent().await {
            tracing::error!("a join that failed is not undone: {}", error_chain::message(&error));
        }
        // Otherwise the others open an epoch for it, and `fleet remove` takes it out of the list.
        if let Ok(snapshot) = etcd::read_once(fleet).await
            && let Err(error) = fleet.leave(&snapshot).await
        {
            tracing::warn!("a join that failed leaves members/{} in etcd: {error}", fleet.name());
        }
    }

    /// The configuration that this balancer would give to the fleet, with all checks. Its balancers share capacities by
    /// themselves, so it does not say how many there are.
    async fn plan_founding(
        &self,
        configuration: Configuration,
    ) -> Result<Configuration, MembershipError> {
        let configuration = Configuration { balancers: NonZeroU32::MIN, ..configuration };
        let apply = Apply {
            configuration: configuration.clone().into(),
            shared: Some(1),
            keep_hash_key: true,
            dry_run: true,
            ..Apply::default()
        };
        let planned = self.0.context.commands.apply(apply, None).await??;
        let configuration = match planned.resolved {
            Some(resolved) => (*resolved).clone(),
            None => configuration,
        };
        commits::encode(&configuration)?;
        Ok(configuration)
    }

    /// What the fleet's configuration would change here.
    async fn compare(&self, snapshot: &Snapshot) -> Result<Joined, MembershipError> {
        let Some(shared) = &snapshot.configuration else { return Ok(Joined::default()) };
        let generation = shared.committed.document.body.number;
        let decoded = store::decode_shared(&shared.bytes).map_err(|error| {
            let cause = error_chain::message(&error);
            MembershipError::Conflict(format!(
                "the fleet's configuration cannot be used by this version: {cause}"
            ))
        })?;
        let apply = Apply {
            configuration: decoded.into(),
            shared: Some(generation),
            dry_run: true,
            ..Apply::default()
        };
        let changes = self.0.context.commands.apply(apply, None).await??;
        Ok(Joined { generation, changes: Some(changes), ..Joined::default() })
    }

    /// Writes the ledger of a new member, and then who it is.
    async fn write_member(
        &self,
        fleet: &Fleet,
        settings: &FleetSettings,
        snapshot: &Snapshot,
        before: Option<&Versioned<FleetMember>>,
    ) -> Result<(), MembershipError> {
        let generation =
            snapshot.configuration.as_ref().map_or(0, |it| it.committed.document.body.number);
        let epoch = snapshot.epoch.as_ref();
        let epoch = epoch.map_or(0, |epoch| epoch.number - u64::from(!epoch.closed));
        let known = before.map_or(0, |before| before.document.body.incarnation);
        // Peers that did not see it leave take messages of an earlier start for late.
        let file = LedgerFile::new(
            &self.0.context.state_directory,
            settings.fleet.clone(),
            settings.name.clone(),
        );
        // What a member of that name owns, and this ledger does not know, comes back when the others forget it.
        let is_old_copy = before.is_some() && !has_been_forgotten(snapshot, &settings.name);
        let write = move || {
            let own = file.read().map_or(0, |ledger| ledger.incarnation);
            let incarnation = known.max(own);
            let ledger =
                Ledger { incarnation, is_old_copy, ..Ledger::new_member(generation, epoch) };
            file.write(&ledger).map(|()| incarnation)
        };
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.map_err(std::io::Error::other).and_then(|written| written);
        let incarnation =
            written.map_err(|error| StartError::from(SharingStartError::Ledger(error)))?;
        let body = FleetMember {
            address: settings.address,
            region: settings.region.clone(),
            incarnation,
            epoch,
        };
        let document = before.map_or_else(
            || Document::from(body.clone()),
            |before| before.document.replaced_by(body.clone()),
        );
        fleet.join(&document, snapshot).await.map(drop).map_err(member_error)
    }

    /// Makes this balancer independent, with what it has in force. Returns whether its portions were not given away.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn leave(&self, abandon: bool, dry_run: bool) -> Result<bool, MembershipError> {
        let _turn = self.0.changing.lock().await;
        if !self.0.context.is_member.is_member() {
            return Err(MembershipError::NoMember);
        }
        if dry_run {
            return Ok(abandon);
        }
        if !abandon {
            let member = self.member().ok_or(MembershipError::NotStarted)?;
            member.leave(LEAVE).await.map_err(MembershipError::Incomplete)?;
        }
        if let Some(member) = self.0.member.send_replace(None) {
            member.stop().await;
        }
        self.become_independent().await?;
        Ok(abandon)
    }

    async fn become_independent(&self) -> Result<(), MembershipError> {
        let context = &self.0.context;
        MembershipRecord::remove(&context.state_directory)?;
        context.is_member.set(false);
        for subject in SUBJECTS.into_iter().chain([&FLEET_SHARES]) {
            context.conditions.end(subject);
        }
        context.homes.decide(MarkOutDecision::Alone);
        let unfollow = (Actor::Unknown, Reason::default());
        let _ =
            context.commands.change_overrides(OverrideChange::Unfollow, false, unfollow).await?;
        if let Err(error) = context.portions.by_configuration().await {
            tracing::info!("the limits of an independent balancer follow: {error}");
        }
        Ok(())
    }

    /// Removes a member that is gone for good.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn remove(&self, name: &Name, dry_run: bool) -> Result<(), MembershipError> {
        let member = self.member().ok_or(MembershipError::NoMember)?;
        if member.settings().name == *name {
            return Err(MembershipError::IsThis(name.clone()));
        }
        let (fleet, snapshot) = member.base().await?;
        let there = snapshot.members.get(name);
        let there = there.ok_or_else(|| MembershipError::Unknown(name.clone()))?;
        if snapshot.alive.contains_key(name) {
            return Err(MembershipError::Conflict(format!(
                "{name} is alive: stop it first, or let it leave by `spillway fleet leave` there"
            )));
        }
        if !has_been_forgotten(&snapshot, name) {
            return Err(MembershipError::Conflict(format!(
                "{name} still owns portions of capacities: the others take them over 30 s after its last message"
            )));
        }
        if dry_run {
            return Ok(());
        }
        fleet.remove_member(name, there.mod_revision).await.map_err(member_error)
    }

    /// Ends a conflict: the configuration of this balancer, or of etcd, is a new generation of the fleet that all balancers
    /// follow.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn restore(
        &self,
        from_etcd: bool,
        dry_run: bool,
    ) -> Result<(u64, Applied), MembershipError> {
        let _turn = self.0.changing.lock().await;
        let member = self.member().ok_or(MembershipError::NoMember)?;
        member.restore(from_etcd, dry_run).await
    }
}

/// Whether a member owns nothing any more: it was forgotten in the last epoch, has not come back, and no group was created
/// since of which it had a portion.
pub(super) fn has_been_forgotten(snapshot: &Snapshot, name: &Name) -> bool {
    let since = snapshot.members.get(name).map_or(0, |member| member.document.body.epoch);
    snapshot.epoch.as_ref().is_some_and(|epoch| {
        let births = snapshot.births();
        let mut later = births.iter().filter(|(group, _)| group.birth > epoch.generation);
        epoch.closed
            && epoch.forgotten.contains(name)
            && since < epoch.number
            && !epoch.contributions.contains_key(name)
            && !later.any(|(_, owners)| owners.contains(name))
    })
}

fn member_error(error: MemberError) -> MembershipError {
    match error {
        MemberError::Etcd(error) => error.into(),
        MemberError::Unknown { cause, .. } => cause.into(),
        error => MembershipError::Conflict(error.to_string()),
    }
}
