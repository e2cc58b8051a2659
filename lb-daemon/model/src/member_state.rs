//! The state of a backend in a pool, as status, metrics and logs show it.

use std::fmt;

use lb_common::abi::member::Accepts;

/// State of a backend in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberState {
    /// It has not passed a check yet, or this daemon has not seen it pass one since its connections moved away.
    Pending,
    /// It passes its checks, or its pool has none.
    Up,
    /// A check fails, but its host replies: open connections stay.
    Unhealthy,
    /// It passes its checks again, but went down soon after its last return: as with [`Self::Unhealthy`], open
    /// connections stay.
    HeldDown,
    /// Its host does not reply: open connections move.
    Unreachable,
    /// The operator, or its agent check, asked that it takes no new connections: open ones stay.
    Draining,
    /// The operator disabled it: open connections move.
    Disabled,
}

impl MemberState {
    /// Its name: `pending`, `up`, `unhealthy`, `held_down`, `unreachable`, `draining` or `disabled`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Up => "up",
            Self::Unhealthy => "unhealthy",
            Self::HeldDown => "held_down",
            Self::Unreachable => "unreachable",
            Self::Draining => "draining",
            Self::Disabled => "disabled",
        }
    }

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

impl fmt::Display for MemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
