//! Everything that can be asked of the daemon. The gRPC API, and every other door there may be,
//! translates into [`Command`]; [`crate::state`] alone answers.

mod history;
mod refusal;
mod regions;
mod status;

use tokio::sync::{broadcast, mpsc, oneshot};

pub use history::{BackendHistory, StateChange};
pub use refusal::Refusal;
pub use regions::{Offer, RegionStatus, Regions};
pub use status::{BackendStatus, InterfaceStatus, ServiceStatus, SettlingStatus, Status};

use crate::{
    access::Actor,
    diff::{Change, Movement},
    memory::Memory,
    model::Configuration,
};

/// Commands that may wait while one is carried out.
const WAITING: usize = 64;

/// A question and where the answer goes. Whoever drops the receiver no longer wants it; the command
/// is carried out all the same.
#[derive(Debug)]
pub enum Command {
    /// Put a configuration in force, or say what that would change.
    Apply(Apply, oneshot::Sender<Result<Applied, Refusal>>),
    /// Say which configuration is in force.
    Export(oneshot::Sender<Exported>),
    /// Say how everything is.
    Status(oneshot::Sender<Result<Status, Refusal>>),
    /// Say what keeps the packet path from being as it should; `None`: nothing.
    Trouble(oneshot::Sender<Option<String>>),
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
    /// Who wants it.
    pub actor: Actor,
}

/// What is in force now.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The generation in force; under a dry run the one before.
    pub generation: u64,
    /// What changed, or would.
    pub changes: Vec<Change>,
    /// What becomes of open connections that do not just stay.
    pub movements: Vec<Movement>,
    /// What its maps take; `None`: nothing changes.
    pub memory: Option<Memory>,
    /// What its author should know of it, a sentence each.
    pub warnings: Vec<String>,
}

/// The configuration in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Its generation; 0 before the first apply.
    pub generation: u64,
    /// The configuration, with the hash key in use.
    pub configuration: Configuration,
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
    Region(RegionStatus),
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
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    /// See [`Command::Apply`].
    ///
    /// # Errors
    /// Nobody answers; whether it was done is not known.
    pub async fn apply(&self, apply: Apply) -> Result<Result<Applied, Refusal>, Stopping> {
        self.ask(|reply| Command::Apply(apply, reply)).await
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

    /// See [`Command::Trouble`].
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn trouble(&self) -> Result<Option<String>, Stopping> {
        self.ask(Command::Trouble).await
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
