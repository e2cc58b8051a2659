//! Why a call is refused, and its status of gRPC.

use tonic::{Code, Status};

use super::Id;
use crate::api::convert::{IntoStatus, WrongField};
use lb_base::Quoted;
use lb_config::Invalid;
use lb_control::command::{Refusal, Stopping};

/// Users that a message names; of more it gives the number.
const NAMED: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// A field of the request is wrong.
    #[error(transparent)]
    Wrong(WrongField),
    /// The configuration would be wrong with it.
    #[error(transparent)]
    Invalid(Box<Invalid>),
    #[error("{0}: there is none of this name")]
    Missing(Id),
    #[error("{0}: is there already, and differs from the one that was sent")]
    Exists(Id),
    #[error("{id}: its etag is {current}, not {}", Quoted(.expected))]
    Changed { id: Id, expected: String, current: String },
    #[error("{0}: is in use: {users}", users = listed(.1))]
    InUse(Id, Vec<String>),
    /// The rest of the configuration would be wrong without it.
    #[error("{0}: the rest would not hold without it: {1}")]
    Needed(Id, Box<Invalid>),
    #[error("{0}: the configuration was changed by others {1} times meanwhile; nothing was done")]
    Busy(Id, usize),
    #[error("{0}")]
    NotPermitted(String),
    /// Before it became a command.
    #[error(transparent)]
    Refusal(Box<Refusal>),
    /// As a command, which the audit has.
    #[error(transparent)]
    Command(Box<Refusal>),
    #[error(transparent)]
    Stopping(#[from] Stopping),
}

impl Refused {
    pub(super) fn wrong(field: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::Wrong(WrongField::new(field, cause))
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Wrong(wrong) => wrong.into(),
            Refused::Invalid(invalid) => invalid.into_status(),
            Refused::NotPermitted(_) => Self::permission_denied(message),
            Refused::Missing(_) => Self::new(Code::NotFound, message),
            Refused::Exists(_) => Self::new(Code::AlreadyExists, message),
            Refused::Changed { .. } | Refused::Busy(..) => Self::new(Code::Aborted, message),
            Refused::InUse(..) | Refused::Needed(..) => {
                Self::new(Code::FailedPrecondition, message)
            }
            Refused::Refusal(refusal) | Refused::Command(refusal) => (*refusal).into_status(),
            Refused::Stopping(stopping) => stopping.into_status(),
        }
    }
}

fn listed(users: &[String]) -> String {
    let (named, others) = users.split_at(users.len().min(NAMED));
    match others.len() {
        0 => named.join(", "),
        others => format!("{}, and {others} more", named.join(", ")),
    }
}
