//! The state of a backend in a pool, as status, metrics and logs show it.

use std::fmt;

use lb_common::abi::member::Accepts;

use crate::{Name, configuration::named_value::named_values};

named_values! {
    /// State of a backend in a pool.
    pub enum MemberState {
        /// It has not passed a check yet, or this daemon has not seen it pass one since its connections moved away.
        Pending = "pending",
        /// It passes its checks, or its pool has none.
        Up = "up",
        /// A check fails, but its host replies: open connections stay.
        Unhealthy = "unhealthy",
        /// It passes its checks again, but went down soon after its last return: open connections stay.
        HeldDown = "held_down",
        /// Its host does not reply: open connections move.
        Unreachable = "unreachable",
        /// The operator, or its agent check, asked that it takes no new connections: open ones stay.
        Draining = "draining",
        /// The operator disabled it: open connections move.
        Disabled = "disabled",
    }
}

impl MemberState {
    /// Which packets the maps let it have.
    pub const fn accepts(self) -> Accepts {
        match self {
            Self::Up => Accepts::All,
            Self::Unhealthy | Self::HeldDown | Self::Draining => Accepts::OpenOnly,
            Self::Pending | Self::Unreachable | Self::Disabled => Accepts::Nothing,
        }
    }

    /// The state of a backend that an earlier daemon left in the maps, until a check says more.
    pub const fn recovered(accepts: Accepts) -> Self {
        match accepts {
            Accepts::All => Self::Up,
            Accepts::OpenOnly => Self::Unhealthy,
            Accepts::Nothing => Self::Pending,
        }
    }

    /// The state while it takes no new connections by request: what moves connections anyway still shows.
    #[must_use]
    pub const fn drained(self) -> Self {
        match self {
            Self::Up | Self::Unhealthy | Self::HeldDown => Self::Draining,
            other => other,
        }
    }
}

/// Why a backend has its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReason {
    pub cause: StateCause,
    /// The check that it is about.
    pub health_check: Option<Name>,
    /// Like `check web-http: connection refused`.
    pub text: String,
}

/// What gives a backend its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateCause {
    NotChecked,
    NoChecks,
    ChecksPass,
    /// A check fails, or has begun to.
    CheckFails,
    HeldDown,
    Configuration,
    Override,
    AgentReport,
}

impl StateReason {
    /// A reason that is about no check.
    pub fn new(cause: StateCause, text: impl Into<String>) -> Self {
        Self { cause, health_check: None, text: text.into() }
    }

    /// Of a check that fails.
    pub fn check_fails(check: &Name, text: String) -> Self {
        Self { cause: StateCause::CheckFails, health_check: Some(check.clone()), text }
    }
}

impl fmt::Display for StateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
