//! Everything that can be asked of the daemon. The gRPC API and the configuration file
//! translate into [`Command`]; the state loop alone answers.

use std::{
    fmt::{self, Debug},
    path::PathBuf,
};

use tokio::sync::{broadcast, mpsc, oneshot};

use crate::store::{Revision, Unusable};
use lb_model::{
    Configuration,
    diff::{Change, Movement},
    map_memory::Memory,
};
mod refusal;
mod status;

pub use refusal::Refusal;
pub(crate) use refusal::packet_path_behind;
pub use status::{
    BackendHistory, BackendStatus, GroupStatus, InterfaceStatus, Offer, Regions, ServiceStatus,
    SettlingStatus, StateChange, Status,
};

/// Commands that may wait while one is carried out.
const WAITING: usize = 64;

/// A question and where the answer goes. A command whose receiver is gone when its turn comes is not
/// carried out; one whose turn has come is carried out whole.
#[derive(Debug)]
pub enum Command {
    /// Put a configuration in force, or say what that would change. Unless it is a dry run, its intent is
    /// noted already.
    Apply(Box<Apply>, Option<Box<dyn ChangeRecord>>, oneshot::Sender<Result<Applied, Refusal>>),
    /// Say which configuration is in force.
    Export(oneshot::Sender<Exported>),
    /// Say how everything is.
    Status(oneshot::Sender<Result<Status, Refusal>>),
    /// Say what keeps the packet path from being as it should; `None`: nothing.
    Condition(oneshot::Sender<Option<String>>),
    /// Say how much is asked of the regions of a pool, or of all pools, and how much they take.
    Regions(Option<String>, oneshot::Sender<Result<Regions, Refusal>>),
    /// Say what has become of a pool's backends, or of one of them.
    History {
        /// Name of the pool.
        pool: String,
        /// Address of the backend; `None`: all.
        address: Option<String>,
        /// Where the answer goes.
        reply: oneshot::Sender<Result<Vec<BackendHistory>, Refusal>>,
    },
    /// Say how everything is, and from then on what changes.
    Watch(oneshot::Sender<Result<Subscription, Refusal>>),
}

/// A configuration that should be in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// The configuration.
    pub configuration: Configuration,
    /// Only say what would change.
    pub dry_run: bool,
    /// Only while this generation is in force.
    pub expected_generation: Option<u64>,
    /// Schema revision of who wrote it.
    pub schema: Revision,
    /// Take it whatever the revisions: what only one side knows is lost.
    pub any_schema: bool,
    /// Who wants it.
    pub actor: Actor,
    /// What they want, in words for the log of changes.
    pub request: String,
}

/// What is in force now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The generation in force; under a dry run the one before.
    pub generation: u64,
    /// What changed, or would.
    pub changes: Vec<Change>,
    /// What becomes of open connections that do not just stay.
    pub movements: Vec<Movement>,
    /// Whether that is not known, as the configuration before could not be used.
    pub movements_unknown: bool,
    /// What its maps take; `None`: nothing changes.
    pub memory: Option<Memory>,
    /// What its author should know of it, a sentence each.
    pub warnings: Vec<String>,
}

/// The configuration in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// Its generation; 0 before the first apply.
    pub generation: u64,
    /// The configuration, with the hash key in use; nothing but that key where the stored one cannot be used.
    pub configuration: Configuration,
    /// Schema revision of the daemon.
    pub schema: Revision,
    /// What is stored, where it cannot be used.
    pub unusable: Option<Unusable>,
}

/// A state and what changes it from then on.
#[derive(Debug)]
pub struct Subscription {
    /// The state.
    pub snapshot: Status,
    /// Changes after it. Whoever lags too far behind asks anew.
    pub events: broadcast::Receiver<Event>,
}

/// Something changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A generation came into force.
    Generation(Applied),
    /// A backend's state, the reason for it, or its next hop.
    Backend(BackendStatus),
    /// What a region can take.
    Region(GroupStatus),
}

/// The asking end.
#[derive(Clone, Debug)]
pub struct Commands(mpsc::Sender<Command>);

/// The daemon is stopping: nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the daemon is stopping")]
pub struct Stopping;

impl Commands {
    /// An asking end and the answering one.
    pub fn channel() -> (Self, mpsc::Receiver<Command>) {
        let (queue, receiver) = mpsc::channel(WAITING);
        (Self(queue), receiver)
    }

    /// See [`Command::Apply`]. `record` gets the outcome; a dry run has none.
    ///
    /// # Errors
    /// Nobody answers; whether it was done is not known.
    pub async fn apply(
        &self,
        apply: Apply,
        record: Option<Box<dyn ChangeRecord>>,
    ) -> Result<Result<Applied, Refusal>, Stopping> {
        self.ask(|reply| Command::Apply(apply.into(), record, reply)).await
    }

    /// See [`Command::Export`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn export(&self) -> Result<Exported, Stopping> {
        self.ask(Command::Export).await
    }

    /// See [`Command::Status`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn status(&self) -> Result<Result<Status, Refusal>, Stopping> {
        self.ask(Command::Status).await
    }

    /// See [`Command::Condition`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn condition(&self) -> Result<Option<String>, Stopping> {
        self.ask(Command::Condition).await
    }

    /// See [`Command::Regions`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn regions(
        &self,
        pool: Option<String>,
    ) -> Result<Result<Regions, Refusal>, Stopping> {
        self.ask(|reply| Command::Regions(pool, reply)).await
    }

    /// See [`Command::History`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn history(
        &self,
        pool: String,
        address: Option<String>,
    ) -> Result<Result<Vec<BackendHistory>, Refusal>, Stopping> {
        self.ask(|reply| Command::History { pool, address, reply }).await
    }

    /// See [`Command::Watch`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn watch(&self) -> Result<Result<Subscription, Refusal>, Stopping> {
        self.ask(Command::Watch).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Stopping> {
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).await.map_err(|_| Stopping)?;
        answer.await.map_err(|_| Stopping)
    }
}

impl Command {
    /// Whether nobody waits for its answer any more.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::Apply(_, _, reply) => reply.is_closed(),
            Self::Export(reply) => reply.is_closed(),
            Self::Status(reply) => reply.is_closed(),
            Self::Condition(reply) => reply.is_closed(),
            Self::Regions(_, reply) => reply.is_closed(),
            Self::History { reply, .. } => reply.is_closed(),
            Self::Watch(reply) => reply.is_closed(),
        }
    }
}

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Nobody said.
    #[default]
    Unknown,
    /// A file that the daemon was told to apply.
    File(PathBuf),
    /// A process of this host, by the user it runs as.
    User(u32),
    /// A client over TLS, by a name of its certificate.
    Certificate(String),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("somebody unknown"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::User(uid) => write!(f, "uid {uid}"),
            Self::Certificate(name) => write!(f, "certificate {name}"),
        }
    }
}

/// Records the outcome of a change, as the audit log does. If it is dropped before either method is called, the
/// change was not carried out.
pub trait ChangeRecord: Debug + Send {
    /// The change is in force. `behind` says why the packet path is not there yet.
    fn changed(self: Box<Self>, before: u64, applied: &Applied, behind: Option<String>);

    /// The change was refused, or changed nothing.
    fn finished(self: Box<Self>, result: &Result<Applied, Refusal>);
}
