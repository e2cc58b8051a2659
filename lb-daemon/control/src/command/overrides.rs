//! What can be asked about overrides.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::{Actor, Refusal, Warning};
use lb_config::Reason;
use lb_model::overrides::{Action, Key, Override, Overrides, Scope, Target};

/// A change of overrides, and where its answer goes. If the caller is gone when its turn comes, it is not executed.
#[derive(Debug)]
pub struct OverrideRequest {
    pub change: OverrideChange,
    /// Only check it.
    pub dry_run: bool,
    pub actor: Actor,
    pub reason: Reason,
    pub reply: oneshot::Sender<Result<OverridesChanged, Refusal>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideChange {
    /// Puts an override of each target in force, instead of the one of the same kind that it may have.
    Set {
        targets: Vec<Target>,
        action: Action,
        /// How long it lasts; `None`: until it is removed.
        time: Option<Duration>,
        /// Local ones are of a member of a fleet only, which puts them in force itself.
        scope: Scope,
    },
    /// Removes overrides. Those that are not there are left out.
    Remove(Vec<Key>),
    /// Puts exactly those of a fleet in force, also those whose target does not exist, beside the local ones, which stay. From
    /// then on, also after a restart, none but the local ones ends by itself, and other changes than this one and those of local
    /// ones are refused, until [`Self::Unfollow`].
    Follow(Vec<(Key, Override)>),
    /// The wall clock was set, so stored times since when targets are gone may be wrong. Each override whose target is gone stays
    /// for an hour from now.
    ClockSet,
    /// Keeps what is in force, also the local ones, as overrides of this balancer alone.
    Unfollow,
}

/// The outcome of a change of overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverridesChanged {
    /// The revision now in force; of a dry run the current one.
    pub revision: u64,
    /// Those that were set or removed; of [`OverrideChange::Follow`], those that are others now, and those that are gone.
    pub overrides: Vec<(Key, Override)>,
    /// Why they are in memory only; `None`: they are stored, or it was a dry run.
    pub unstored: Option<String>,
    pub warnings: Vec<Warning>,
}

/// The overrides in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverridesInForce {
    pub overrides: Arc<Overrides>,
    /// Whether they are in memory only, so that a restart loses them.
    pub is_unstored: bool,
    /// The generation in which their objects were last looked for. `None`: in none yet.
    pub observed: Option<u64>,
}

/// What became other of the overrides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverridesEvent {
    /// Now in force.
    pub revision: u64,
    /// Those that are new or others.
    pub set: Vec<(Key, Override)>,
    pub ended: Vec<Key>,
    pub is_unstored: bool,
}

impl OverrideChange {
    /// Whether it changes local overrides alone, which needs nothing of a fleet.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Set { scope, .. } => *scope == Scope::Local,
            Self::Remove(keys) => keys.iter().all(Key::is_local),
            Self::Follow(_) | Self::ClockSet | Self::Unfollow => false,
        }
    }
}
