//! Answers of calls about objects: the object, what changed, or why the call is refused.

use spillway_proto::v1;
use tonic::{Code, Status};

use super::{Id, Object, etag};
use crate::api::convert::{IntoStatus, WrongField};
use lb_base::Quoted;
use lb_config::Invalid;
use lb_control::command::{Refusal, Stopping};

/// An object with what goes with it, whatever its kind.
pub(super) struct Answer<O> {
    pool: Option<String>,
    object: O,
    etag: String,
    applied: v1::ApplyResponse,
}

impl<O: Object> Answer<O> {
    /// An object of a generation.
    pub(super) fn of(object: &O, id: &Id, generation: u64) -> Self {
        let (pool, object, etag) = (id.pool.clone(), object.clone(), etag(object));
        let applied = v1::ApplyResponse { generation, ..v1::ApplyResponse::default() };
        Self { pool, object, etag, applied }
    }

    /// The same of a call that changed something.
    pub(super) fn with(self, applied: v1::ApplyResponse) -> Self {
        Self { applied, ..self }
    }
}

macro_rules! answers {
    ($($message:ident, $answer:ident, $field:ident);* $(;)?) => {$(
        impl From<Answer<v1::$message>> for v1::$answer {
            fn from(answer: Answer<v1::$message>) -> Self {
                let Answer { pool: _, object, etag, applied } = answer;
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

impl From<Answer<v1::Backend>> for v1::BackendObject {
    fn from(answer: Answer<v1::Backend>) -> Self {
        let Answer { pool, object, etag, applied } = answer;
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

/// What came of a removal, whatever went.
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
    #[error("{0} does not exist")]
    Missing(Id),
    #[error("{0} already exists and differs from the one that was sent")]
    Exists(Id),
    #[error("{id}: its etag is {current}, not {}", Quoted(.expected))]
    Changed { id: Id, expected: String, current: String },
    #[error("{0} is in use by {users}", users = listed(.1))]
    InUse(Id, Vec<String>),
    /// The rest of the configuration would be wrong without it.
    #[error("{0}: the configuration would be invalid without it: {1}")]
    Needed(Id, Box<Invalid>),
    #[error("{0}: others changed the configuration {1} times meanwhile; nothing was changed")]
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
