//! Everything that can be asked of the daemon. The gRPC API and the configuration file translate into an
//! [`ApplyRequest`], which the state loop executes, or a [`Query`], which the status loop answers.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use tokio::sync::oneshot;

use crate::loops::AllLoopCounters;
use lb_base::queue::{Receiver, Sender, bounded};
use lb_config::{Reason, Requested};
use lb_model::{
    Configuration, Name,
    diff::{Change, Movement},
    map_memory::Memory,
    overrides::{End, Key},
    own_addresses::{OwnAddresses, Takeover},
    removal_guard::Removal,
};
use lb_store::{HistoryEntry, Revision, Unusable};

mod overrides;
mod refusal;
mod status;
mod warning;
mod watch;

pub use lb_model::Actor;
pub use overrides::{
    OverrideChange, OverrideRequest, OverridesChanged, OverridesEvent, OverridesInForce,
};
pub(crate) use refusal::packet_path_behind;
pub use refusal::{FleetRefusal, Refusal};
pub use status::{
    BackendHistory, BackendStatus, GroupStatus, Offer, PoolBackends, Regions, ServiceStatus,
    SettlingStatus, StateChange, Status,
};
pub(crate) use warning::MOST_OF_ONE_REASON;
pub use warning::{Warning, WarningReason, force_warnings};
pub use watch::{
    BackendsEvent, Event, GroupsEvent, MAX_EVENT_OBJECTS, MAX_EVENTS, Subscription, WatchPosition,
};

/// Commands that may be queued.
const WAITING: usize = 64;

/// An apply, and where its answer goes. If the caller is gone when its turn comes, it is not executed. Once execution has
/// begun, it completes.
#[derive(Debug)]
pub struct ApplyRequest {
    /// Puts a configuration in force, or lists what it would change.
    pub apply: Box<Apply>,
    /// Gets the outcome. Unless it is a dry run, the audit log has the intent already.
    pub record: Option<Box<dyn ChangeRecord>>,
    pub reply: oneshot::Sender<Result<Applied, Refusal>>,
}

/// A question, and where its answer goes. If the caller is gone when its turn comes, it is not answered.
#[derive(Debug)]
pub enum Query {
    Export(oneshot::Sender<Exported>),
    Status(oneshot::Sender<Result<Status, Refusal>>),
    /// What is wrong with the packet path, if anything.
    Condition(oneshot::Sender<Option<String>>),
    /// Digests over what packets of each pool are decided by.
    TableDigests(oneshot::Sender<Result<BTreeMap<Name, u64>, Refusal>>),
    /// Demand and capacity of the groups of one pool, or of all.
    Regions(Option<String>, oneshot::Sender<Result<Regions, Refusal>>),
    /// The status of one backend.
    Backend {
        pool: String,
        address: String,
        reply: oneshot::Sender<Result<BackendStatus, Refusal>>,
    },
    /// The last state changes of a pool's backends, or of one backend.
    History {
        pool: String,
        /// `None`: all.
        address: Option<String>,
        reply: oneshot::Sender<Result<Vec<BackendHistory>, Refusal>>,
    },
    /// The last generations.
    Generations(oneshot::Sender<Vec<HistoryEntry>>),
    /// The configuration of a generation.
    Generation(u64, oneshot::Sender<Result<Arc<Configuration>, Refusal>>),
    /// What is different between two generations.
    Difference {
        from: u64,
        /// `None`: the one in force.
        to: Option<u64>,
        reply: oneshot::Sender<Result<Difference, Refusal>>,
    },
    /// The overrides in force.
    Overrides(oneshot::Sender<OverridesInForce>),
    /// The changes after a position, or the status and then all changes of it.
    Watch(Option<WatchPosition>, oneshot::Sender<Result<Subscription, Refusal>>),
    /// The same for a watcher that lags, whose snapshot may be shared and up to a second old.
    WatchAgain(oneshot::Sender<Result<Subscription, Refusal>>),
}

/// Any of the three.
#[derive(Debug)]
pub enum Command {
    Apply(ApplyRequest),
    Override(OverrideRequest),
    Query(Query),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    pub configuration: Requested,
    /// Only list what would change.
    pub dry_run: bool,
    /// Refuse the apply if another generation is in force.
    pub expected_generation: Option<u64>,
    /// Schema revision of the program that wrote the configuration.
    pub schema: Revision,
    /// Accept any schema revision; fields that only one side knows are lost.
    pub any_schema: bool,
    pub actor: Actor,
    /// What is requested, as the audit log shows it.
    pub request: String,
    /// Why, for the history and the audit log.
    pub reason: Reason,
    /// The generation whose configuration this is, for a rollback.
    pub rollback_to: Option<u64>,
    /// It is the generation of a fleet with this number, from 1, and is put in force as that, even if nothing else changes.
    /// The number may be lower than the one in force: then another history begins. All slots and the hash key must be set.
    /// `None`: the next generation of a balancer that is no member of a fleet. A member can only make dry runs of it.
    pub shared: Option<u64>,
    /// If the configuration names no hash key, the one in use stays, and becomes part of the configuration.
    pub keep_hash_key: bool,
    /// Remove what the change removes, however much that is, and let services have addresses of balancers.
    pub force: bool,
    /// The actor's role is for some pools alone, so it cannot let services have addresses of balancers.
    pub is_scoped: bool,
    /// Addresses of the other balancers of a fleet.
    pub member_addresses: OwnAddresses,
}

impl Apply {
    /// Whether services may get addresses of balancers.
    pub fn forces_addresses(&self) -> bool {
        self.force && !self.is_scoped
    }

    /// Why the generation exists, as the history shows it.
    pub fn why(&self) -> String {
        let given = self.reason.given();
        match (self.rollback_to, &self.actor, given) {
            (Some(number), _, None) => format!("rollback to generation {number}"),
            (Some(number), _, Some(reason)) => format!("rollback to generation {number}: {reason}"),
            (None, _, Some(reason)) => reason.to_owned(),
            (None, Actor::File(path), None) => format!("configuration file {}", path.display()),
            (None, _, None) => self.request.clone(),
        }
    }
}

/// The outcome of an apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The generation now in force; for a dry run the current one.
    pub generation: u64,
    pub changes: Vec<Change>,
    /// Open connections that do not simply stay where they are.
    pub movements: Vec<Movement>,
    /// Whether `movements` cannot be told, because the previous configuration could not be used.
    pub movements_unknown: bool,
    /// Memory of the maps; `None` if nothing changes.
    pub memory: Option<Memory>,
    pub warnings: Vec<Warning>,
    /// What is removed that needs force; empty: none was needed.
    pub removals: Vec<Removal>,
    /// Services that get an address of a balancer, which needs force too.
    pub takeovers: Vec<Takeover>,
    /// The generation that each live balancer of the fleet has in force; empty outside of one.
    pub balancers: BTreeMap<Name, u64>,
    /// Of a dry run, the configuration that would be in force, with all slots.
    pub resolved: Option<Arc<Configuration>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// What is in force beside the configuration.
    pub overrides: OverridesInForce,
    /// 0 before the first apply.
    pub generation: u64,
    /// Includes the hash key in use. If the stored configuration cannot be used, only that key.
    pub configuration: Configuration,
    /// The daemon's.
    pub schema: Revision,
    /// What is stored, if it cannot be used.
    pub unusable: Option<Unusable>,
}

/// What a change of one generation into another one means.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub from: u64,
    pub to: u64,
    pub changes: Vec<Change>,
    /// Open connections that do not simply stay where they are, if `to` came into force after `from`.
    pub movements: Vec<Movement>,
}

/// Sends applies to the state loop, changes of overrides to the override loop and questions to the status loop, so that none
/// waits for another.
#[derive(Clone, Debug)]
pub struct Commands {
    applies: Sender<ApplyRequest>,
    overrides: Sender<OverrideRequest>,
    queries: Sender<Query>,
}

/// What [`Commands`] sends.
#[derive(Debug)]
pub struct Requests {
    pub applies: Receiver<ApplyRequest>,
    pub overrides: Receiver<OverrideRequest>,
    pub queries: Receiver<Query>,
}

impl Requests {
    /// The next of any; `None` once there is no sender.
    pub async fn recv(&mut self) -> Option<Command> {
        tokio::select! {
            Some(apply) = self.applies.recv() => Some(Command::Apply(apply)),
            Some(change) = self.overrides.recv() => Some(Command::Override(change)),
            Some(query) = self.queries.recv() => Some(Command::Query(query)),
            else => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the daemon is stopping")]
pub struct Stopping;

impl Commands {
    pub fn channel() -> (Self, Requests) {
        Self::counted(&AllLoopCounters::default())
    }

    /// The same, with what waits counted as waiting for the three loops.
    pub fn counted(counters: &AllLoopCounters) -> (Self, Requests) {
        let (applies_tx, applies) = bounded(WAITING, counters.state.queue());
        let (overrides_tx, overrides) = bounded(WAITING, counters.overrides.queue());
        let (queries_tx, queries) = bounded(WAITING, counters.status.queue());
        let commands = Self { applies: applies_tx, overrides: overrides_tx, queries: queries_tx };
        (commands, Requests { applies, overrides, queries })
    }

    /// See [`ApplyRequest`]. `record` gets the outcome; pass none for a dry run.
    ///
    /// # Errors
    /// The daemon is stopping; it is not known whether the change was made.
    pub async fn apply(
        &self,
        apply: Apply,
        record: Option<Box<dyn ChangeRecord>>,
    ) -> Result<Result<Applied, Refusal>, Stopping> {
        let (reply, answer) = oneshot::channel();
        let request = ApplyRequest { apply: apply.into(), record, reply };
        self.applies.send(request).await.map_err(|_| Stopping)?;
        answer.await.map_err(|_| Stopping)
    }

    /// Changes overrides, or only checks the change.
    ///
    /// # Errors
    /// The daemon is stopping; it is not known whether the change was made.
    pub async fn change_overrides(
        &self,
        change: OverrideChange,
        dry_run: bool,
        (actor, reason): (Actor, Reason),
    ) -> Result<Result<OverridesChanged, Refusal>, Stopping> {
        let (reply, answer) = oneshot::channel();
        let request = OverrideRequest { change, dry_run, actor, reason, reply };
        self.overrides.send(request).await.map_err(|_| Stopping)?;
        answer.await.map_err(|_| Stopping)
    }

    /// The overrides in force.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn overrides(&self) -> Result<OverridesInForce, Stopping> {
        self.ask(Query::Overrides).await
    }

    pub async fn export(&self) -> Result<Exported, Stopping> {
        self.ask(Query::Export).await
    }

    pub async fn status(&self) -> Result<Result<Status, Refusal>, Stopping> {
        self.ask(Query::Status).await
    }

    pub async fn condition(&self) -> Result<Option<String>, Stopping> {
        self.ask(Query::Condition).await
    }

    /// Digests over what packets of each pool are decided by, equal at balancers of a region that decide alike.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn table_digests(&self) -> Result<Result<BTreeMap<Name, u64>, Refusal>, Stopping> {
        self.ask(Query::TableDigests).await
    }

    pub async fn regions(
        &self,
        pool: Option<String>,
    ) -> Result<Result<Regions, Refusal>, Stopping> {
        self.ask(|reply| Query::Regions(pool, reply)).await
    }

    pub async fn backend(
        &self,
        pool: String,
        address: String,
    ) -> Result<Result<BackendStatus, Refusal>, Stopping> {
        self.ask(|reply| Query::Backend { pool, address, reply }).await
    }

    pub async fn history(
        &self,
        pool: String,
        address: Option<String>,
    ) -> Result<Result<Vec<BackendHistory>, Refusal>, Stopping> {
        self.ask(|reply| Query::History { pool, address, reply }).await
    }

    /// The last generations, by number; the one in force is the last.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn generations(&self) -> Result<Vec<HistoryEntry>, Stopping> {
        self.ask(Query::Generations).await
    }

    /// The configuration of a generation.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn generation(
        &self,
        number: u64,
    ) -> Result<Result<Arc<Configuration>, Refusal>, Stopping> {
        self.ask(|reply| Query::Generation(number, reply)).await
    }

    /// What is different between two generations; without `to`, between one and the generation in force.
    ///
    /// # Errors
    /// The daemon is stopping.
    pub async fn difference(
        &self,
        from: u64,
        to: Option<u64>,
    ) -> Result<Result<Difference, Refusal>, Stopping> {
        self.ask(|reply| Query::Difference { from, to, reply }).await
    }

    /// Without a position, or with one that the daemon cannot go on from, the subscription begins with a snapshot.
    pub async fn watch(
        &self,
        from: Option<WatchPosition>,
    ) -> Result<Result<Subscription, Refusal>, Stopping> {
        self.ask(|reply| Query::Watch(from, reply)).await
    }

    /// The same for a watcher that lags.
    pub async fn watch_again(&self) -> Result<Result<Subscription, Refusal>, Stopping> {
        self.ask(Query::WatchAgain).await
    }

    async fn ask<T>(&self, query: impl FnOnce(oneshot::Sender<T>) -> Query) -> Result<T, Stopping> {
        let (reply, answer) = oneshot::channel();
        self.queries.send(query(reply)).await.map_err(|_| Stopping)?;
        answer.await.map_err(|_| Stopping)
    }
}

impl Query {
    /// Whether the caller no longer waits for the answer.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::Export(reply) => reply.is_closed(),
            Self::Status(reply) => reply.is_closed(),
            Self::Condition(reply) => reply.is_closed(),
            Self::TableDigests(reply) => reply.is_closed(),
            Self::Regions(_, reply) => reply.is_closed(),
            Self::Backend { reply, .. } => reply.is_closed(),
            Self::History { reply, .. } => reply.is_closed(),
            Self::Overrides(reply) => reply.is_closed(),
            Self::Generations(reply) => reply.is_closed(),
            Self::Generation(_, reply) => reply.is_closed(),
            Self::Difference { reply, .. } => reply.is_closed(),
            Self::Watch(_, reply) | Self::WatchAgain(reply) => reply.is_closed(),
        }
    }
}

/// Receives the ends of overrides that no caller asks for, for the audit log.
pub trait EndRecord: Debug + Send + Sync {
    /// `set_by`: who had set it.
    fn ended(&self, key: &Key, set_by: &str, why: End);
}

/// Where ends of overrides are recorded; by default nowhere. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct OverrideEnds(Option<Arc<dyn EndRecord>>);

impl OverrideEnds {
    pub fn new(record: impl EndRecord + 'static) -> Self {
        Self(Some(Arc::new(record)))
    }

    pub fn ended(&self, key: &Key, set_by: &str, why: End) {
        if let Some(record) = &self.0 {
            record.ended(key, set_by, why);
        }
    }
}

/// Receives the outcome of a change, for the audit log. If it is dropped before either method is called, the
/// change was not made.
pub trait ChangeRecord: Debug + Send {
    /// The change is in force. `behind` says why the packet path could not follow yet.
    fn changed(self: Box<Self>, before: u64, applied: &Applied, behind: Option<String>);

    fn finished(self: Box<Self>, result: &Result<Applied, Refusal>);
}
