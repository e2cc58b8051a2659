//! Why a call about objects is refused.

use spillway_proto::v1::ErrorReason;
use tonic::{Code, Status};

use super::Id;
use crate::{
    access::permission_denied,
    convert::{ApiError, IntoStatus, WrongField},
};
use lb_base::Quoted;
use lb_config::Invalid;
use lb_control::command::{Refusal, Stopping};

/// Most users that a message names.
const MAX_NAMED_USERS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectRefused {
    /// A field of the request is wrong.
    #[error(transparent)]
    Wrong(WrongField),
    /// The configuration would be invalid with the object.
    #[error(transparent)]
    Invalid(Box<Invalid>),
    #[error("{0} does not exist")]
    Missing(Id),
    #[error("{0} already exists and differs from the one that was sent")]
    Exists(Id),
    #[error("{id}: its etag is {current}, not {}", Quoted(.expected))]
    Changed { id: Id, expected: String, current: String },
    #[error("{0} is in use by {users}", users = list_users(.1))]
    InUse(Id, Vec<String>),
    /// The configuration would be invalid without the object.
    #[error("{0}: the configuration would be invalid without it: {1}")]
    Needed(Id, Box<Invalid>),
    /// Of a batch.
    #[error("the configuration would be invalid without these backends: {0}")]
    AllNeeded(Box<Invalid>),
    #[error("{0}: others changed the configuration {1} times meanwhile; nothing was changed")]
    Busy(String, usize),
    #[error("{0}")]
    NotPermitted(String),
    /// Refused before it became a command.
    #[error(transparent)]
    Refusal(Box<Refusal>),
    /// Refused as a command, which the audit log has.
    #[error(transparent)]
    Command(Box<Refusal>),
    #[error(transparent)]
    Stopping(#[from] Stopping),
}

impl ObjectRefused {
    pub(super) fn wrong(field: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::Wrong(WrongField::new(field, cause))
    }
}

impl From<ObjectRefused> for Status {
    fn from(refused: ObjectRefused) -> Self {
        let message = refused.to_string();
        let error = |code, reason| ApiError::new(code, reason, message.clone());
        match refused {
            ObjectRefused::Wrong(wrong) => return wrong.into(),
            ObjectRefused::Invalid(invalid) => return invalid.into_status(),
            ObjectRefused::Refusal(refusal) | ObjectRefused::Command(refusal) => {
                return (*refusal).into_status();
            }
            ObjectRefused::Stopping(stopping) => return stopping.into_status(),
            ObjectRefused::NotPermitted(_) => return permission_denied(message),
            ObjectRefused::Missing(id) => {
                id.about(error(Code::NotFound, ErrorReason::ObjectNotFound))
            }
            ObjectRefused::Exists(id) => {
                id.about(error(Code::AlreadyExists, ErrorReason::ObjectExists))
            }
            ObjectRefused::Changed { id, current, .. } => {
                id.about(error(Code::Aborted, ErrorReason::EtagConflict)).with("etag", current)
            }
            ObjectRefused::InUse(id, _) => {
                id.about(error(Code::FailedPrecondition, ErrorReason::ObjectInUse))
            }
            ObjectRefused::Needed(id, _) => {
                id.about(error(Code::FailedPrecondition, ErrorReason::ObjectNeeded))
            }
            ObjectRefused::AllNeeded(_) => {
                error(Code::FailedPrecondition, ErrorReason::ObjectNeeded)
            }
            ObjectRefused::Busy(..) => error(Code::Aborted, ErrorReason::Busy),
        }
        .into()
    }
}

impl Id {
    /// Says in an error which object it is about.
    fn about(&self, error: ApiError) -> ApiError {
        error.about(self.kind, &self.name, self.pool.as_deref().unwrap_or_default())
    }
}

fn list_users(users: &[String]) -> String {
    let (named, others) = users.split_at(users.len().min(MAX_NAMED_USERS));
    match others.len() {
        0 => named.join(", "),
        others => format!("{}, and {others} more", named.join(", ")),
    }
}
