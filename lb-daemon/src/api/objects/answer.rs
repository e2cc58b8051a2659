//! Answers of calls about objects: the object, what changed, or why the call is refused.

use spillway_proto::v1;
use tonic::{Code, Status};

use super::{Id, Object, etag};
use crate::api::convert::{IntoStatus, WrongField};
use lb_base::Quoted;
use lb_config::Invalid;
use lb_control::command::{Refusal, Stopping};

/// The answer about an object of any kind.
pub(super) struct ObjectAnswer<O> {
    pool: Option<String>,
    object: O,
    etag: String,
    applied: v1::ApplyResponse,
}

impl<O: Object> ObjectAnswer<O> {
    pub(super) fn new(object: &O, id: &Id, generation: u64) -> Self {
        let (pool, object, etag) = (id.pool.clone(), object.clone(), etag(object));
        let applied = v1::ApplyResponse { generation, ..v1::ApplyResponse::default() };
        Self { pool, object, etag, applied }
    }

    /// Adds what a change did.
    pub(super) fn with_applied(self, applied: v1::ApplyResponse) -> Self {
        Self { applied, ..self }
    }
}

macro_rules! answers {
    ($($message:ident, $answer:ident, $field:ident);* $(;)?) => {$(
        impl From<ObjectAnswer<v1::$message>> for v1::$answer {
            fn from(answer: ObjectAnswer<v1::$message>) -> Self {
                let ObjectAnswer { pool: _, object, etag, applied } = answer;
                let v1::ApplyResponse {
 generation, changes, memory, movements, warnings, movements_unknown
 } = applied;
                Self { $field: Some(object), etag, generation, changes, movements, memory, warnings, movements_unknown }
            }
        }
    )*};
}

answers! {
    Region, RegionObject, region;
    HealthCheck, HealthCheckObject, health_check;
    Pool, PoolObject, pool;
    Service, ServiceObject, service;
}

impl From<ObjectAnswer<v1::Backend>> for v1::BackendObject {
    fn from(answer: ObjectAnswer<v1::Backend>) -> Self {
        let ObjectAnswer { pool, object, etag, applied } = answer;
        let v1::ApplyResponse {
            generation,
            changes,
            memory,
            movements,
            warnings,
            movements_unknown,
        } = applied;
        let pool = pool.unwrap_or_default();
        Self {
            pool,
            backend: Some(object),
            etag,
            generation,
            changes,
            movements,
            memory,
            warnings,
            movements_unknown,
        }
    }
}

/// The answer to the removal of an object of any kind.
pub(super) struct Removed(pub(super) v1::ApplyResponse);

macro_rules! removals {
    ($($answer:ident),* $(,)?) => {$(
        impl From<Removed> for v1::$answer {
            fn from(Removed(applied): Removed) -> Self {
                let v1::ApplyResponse {
 generation, changes, memory, movements, warnings, movements_unknown
 } = applied;
                Self { generation, changes, movements, memory, warnings, movements_unknown }
            }
        }
    )*};
}

removals! {
    DeleteRegionResponse,
    DeleteHealthCheckResponse,
    DeletePoolResponse,
    DeleteBackendResponse,
    DeleteServiceResponse,
}

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
    #[error("{0}: others changed the configuration {1} times meanwhile; nothing was changed")]
    Busy(Id, usize),
    #[error("{0}")]
    NotPermitted(String),
    /// ObjectRefused before it became a command.
    #[error(transparent)]
    Refusal(Box<Refusal>),
    /// ObjectRefused as a command, which the audit log has.
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
        match refused {
            ObjectRefused::Wrong(wrong) => wrong.into(),
            ObjectRefused::Invalid(invalid) => invalid.into_status(),
            ObjectRefused::NotPermitted(_) => Self::permission_denied(message),
            ObjectRefused::Missing(_) => Self::new(Code::NotFound, message),
            ObjectRefused::Exists(_) => Self::new(Code::AlreadyExists, message),
            ObjectRefused::Changed { .. } | ObjectRefused::Busy(..) => {
                Self::new(Code::Aborted, message)
            }
            ObjectRefused::InUse(..) | ObjectRefused::Needed(..) => {
                Self::new(Code::FailedPrecondition, message)
            }
            ObjectRefused::Refusal(refusal) | ObjectRefused::Command(refusal) => {
                (*refusal).into_status()
            }
            ObjectRefused::Stopping(stopping) => stopping.into_status(),
        }
    }
}

fn list_users(users: &[String]) -> String {
    let (named, others) = users.split_at(users.len().min(MAX_NAMED_USERS));
    match others.len() {
        0 => named.join(", "),
        others => format!("{}, and {others} more", named.join(", ")),
    }
}
