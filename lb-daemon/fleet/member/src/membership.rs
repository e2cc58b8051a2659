//! Whether this balancer is a member of a fleet, which changes while the daemon runs: `join`, `leave`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use lb_base::{
    conditions::{Conditions, FLEET_SHARES},
    error_chain,
};
use lb_control::{
    command::{Applied, Commands, FleetRefusal, OverrideEnds, Refusal, Stopping},
    members::PortionCommands,
    state::MarkOutDecisions,
};
use lb_fleet::{EtcdError, FleetSettings, members::MemberError, reader::Snapshot};
use lb_model::Name;
use tokio::{
    sync::{Mutex, MutexGuard, watch},
    time::{sleep, timeout},
};

use super::{
    member::{Member, StartError},
    record::{MembershipRecord, RecordError},
    restore::Restore,
    sharing::Answers,
};

/// Before a member whose ledger or address cannot be used tries again.
const RETRY: Duration = Duration::from_secs(5);

/// Longest wait for the end of a member: what writes to a disk that does not answer goes on beside it.
const STOP: Duration = Duration::from_secs(2);

/// How often it is looked whether a member is ready.
const POLL: Duration = Duration::from_millis(100);

/// What a member works with.
#[derive(Clone, Debug)]
pub struct Context {
    /// `None`: the settings name no fleet.
    pub settings: Option<FleetSettings>,
    pub commands: Commands,
    pub conditions: Conditions,
    pub override_ends: OverrideEnds,
    pub portions: PortionCommands,
    pub homes: MarkOutDecisions,
    /// What the loops know of it.
    pub is_member: lb_control::state::Membership,
    pub state_directory: PathBuf,
    pub answers: Arc<dyn Answers>,
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
    #[error("this balancer does not take part in its fleet yet")]
    NotStarted,
    #[error("{0} is a member of the fleet, and alive, at {1}: another host has this name")]
    NameInUse(Name, String),
    #[error("etcd has no fleet {0}, but it has {1}")]
    OtherFleets(Name, String),
    #[error("{0} is no member of the fleet")]
    Unknown(Name),
    #[error("{0} is this balancer: it leaves by `spillway fleet leave`")]
    IsThis(Name),
    #[error("{0}")]
    Settings(String),
    /// A balancer that wants to join does not get an answer.
    #[error("{cause} (etcd in the settings: {endpoints})")]
    Unanswered { cause: String, endpoints: String },
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
    /// It did not leave.
    #[error("{0}")]
    NotLeft(String),
    /// It did not leave, and what it is would be lost by a restart.
    #[error("the disk of {directory} does not answer: {effect}")]
    SilentDisk { directory: String, effect: &'static str },
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

/// Whether this balancer is a member of a fleet. Clones are of the same.
#[derive(Clone, Debug)]
pub struct Membership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    context: Context,
    member: watch::Sender<Option<Arc<Member>>>,
    /// One that was stopped, while it still writes.
    ending: Mutex<Option<Arc<Member>>>,
    /// One join, leave or restore at a time.
    changing: Mutex<()>,
}

impl Membership {
    /// Of an independent balancer, until [`Self::resume`] or [`Self::join`].
    pub fn new(context: Context) -> Self {
        let (member, ending) = (watch::channel(None).0, Mutex::default());
        Self(Arc::new(Shared { context, member, ending, changing: Mutex::default() }))
    }

    pub(super) fn context(&self) -> &Context {
        &self.0.context
    }

    /// Waits for its turn: one join, leave or restore at a time.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().await
    }

    /// Returns the one before.
    pub(super) fn set_member(&self, member: Option<Arc<Member>>) -> Option<Arc<Member>> {
        self.0.member.send_replace(member)
    }

    /// `None`: this balancer is no member, or does not take part yet.
    pub fn member(&self) -> Option<Arc<Member>> {
        self.0.member.borrow().clone()
    }

    /// What a balancer is told that is no member.
    pub(super) fn no_member(&self) -> MembershipError {
        match (self.settings(), self.is_member()) {
            (_, true) => MembershipError::NotStarted,
            (None, false) => MembershipError::NoSettings,
            (Some(_), false) => MembershipError::NoMember,
        }
    }

    /// Whether it has joined, also if it does not take part yet.
    pub fn is_member(&self) -> bool {
        self.0.context.is_member.is_member()
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
                let _turn = self.turn().await;
                if !context.is_member.is_member() {
                    return;
                }
                let lost_maps = context.lost_maps;
                match Member::start(context, settings.clone(), record.clone(), lost_maps).await {
                    Ok(member) => {
                        context.conditions.end(&FLEET_SHARES);
                        self.set_member(Some(member));
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
        if let Err(error) = self.stop_member().await {
            tracing::error!("what the fleet has in force is not stored: {error}");
        }
    }

    /// Ends all tasks of the member. May be called again after an error.
    ///
    /// # Errors
    /// [`MembershipError::SilentDisk`]: what it writes has not ended.
    pub(super) async fn stop_member(&self) -> Result<(), MembershipError> {
        let mut ending = self.0.ending.lock().await;
        if let Some(member) = self.set_member(None) {
            *ending = Some(member);
        }
        if let Some(member) = &*ending {
            let text = "this balancer takes part in its fleet no more, and what it was writing is left behind";
            timeout(STOP, member.stop()).await.map_err(|_| self.silent_disk(text))?;
        }
        *ending = None;
        Ok(())
    }

    pub(super) fn silent_disk(&self, effect: &'static str) -> MembershipError {
        let directory = self.0.context.state_directory.display().to_string();
        MembershipError::SilentDisk { directory, effect }
    }

    /// Removes a member that is gone for good.
    ///
    /// # Errors
    /// [`MembershipError`]
    pub async fn remove(&self, name: &Name, dry_run: bool) -> Result<(), MembershipError> {
        let member = self.member().ok_or_else(|| self.no_member())?;
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
    pub async fn restore(&self, restore: Restore) -> Result<(u64, Applied), MembershipError> {
        let _turn = self.turn().await;
        let member = self.member().ok_or_else(|| self.no_member())?;
        member.restore(restore).await
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

pub(super) fn member_error(error: MemberError) -> MembershipError {
    match error {
        MemberError::Etcd(error) => error.into(),
        MemberError::Unknown { cause, .. } => cause.into(),
        error => MembershipError::Conflict(error.to_string()),
    }
}
