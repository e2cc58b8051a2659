//! Conversion of refusals into gRPC statuses.

use tonic::{Code, Status, metadata::AsciiMetadataValue};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use crate::api::access::caller;
use lb_base::error_chain;
use lb_config::{FIELD_TRAILER, HINT_TRAILER, Invalid, message::hash_key};
use lb_control::{
    command::{Refusal, Stopping},
    reconcile::ReconcileError,
};
use lb_inspect::names::NoPool;

/// A wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {cause}")]
pub(in crate::api) struct WrongField {
    field: String,
    cause: String,
}

impl WrongField {
    pub(in crate::api) fn new(field: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { field: field.into(), cause: cause.into() }
    }
}

impl From<WrongField> for Status {
    fn from(wrong: WrongField) -> Self {
        let violation = FieldViolation::new(wrong.field.clone(), wrong.cause.clone());
        invalid_argument(wrong.to_string(), wrong.field, vec![violation])
    }
}

pub(in crate::api) trait IntoStatus {
    fn into_status(self) -> Status;
}

pub(in crate::api) trait OrStatus<T> {
    fn or_status(self) -> Result<T, Status>;
}

impl<T, E: IntoStatus> OrStatus<T> for Result<T, E> {
    fn or_status(self) -> Result<T, Status> {
        self.map_err(IntoStatus::into_status)
    }
}

impl IntoStatus for Invalid {
    fn into_status(self) -> Status {
        invalid_argument(self.to_string(), self.path(), violations(&self))
    }
}

/// Bytes of mistakes in a status. Clients take 8 KiB of trailers, and they are there twice: as text, and in Base64.
const MOST_DETAILS: usize = 4 << 10;

/// All mistakes of a message, or those for which there is room; then one without a field says how many more there are.
fn violations(invalid: &Invalid) -> Vec<FieldViolation> {
    let mut bytes = 0;
    let all = invalid.mistakes().iter().map(|it| FieldViolation::new(it.path(), it.to_string()));
    let mut violations: Vec<_> = all
        .take_while(|violation| {
            bytes += violation.field.len() + violation.description.len();
            bytes <= MOST_DETAILS
        })
        .collect();
    match invalid.count() - violations.len() {
        0 => {}
        1 => violations.push(FieldViolation::new("", "1 more mistake")),
        more => violations.push(FieldViolation::new("", format!("{more} more mistakes"))),
    }
    violations
}

fn invalid_argument(message: String, field: String, violations: Vec<FieldViolation>) -> Status {
    let details = ErrorDetails::with_bad_request(violations);
    let mut status = Status::with_error_details(Code::InvalidArgument, message, details);
    if let Ok(path) = AsciiMetadataValue::try_from(field) {
        status.metadata_mut().insert(FIELD_TRAILER, path);
    }
    status
}

impl IntoStatus for Refusal {
    fn into_status(self) -> Status {
        let code = match &self {
            Refusal::Conflict { .. } => Code::Aborted,
            Refusal::TooMany(_)
            | Refusal::TooManyOverrides
            | Refusal::Exhausted(_)
            | Refusal::Memory(_)
            | Refusal::Room(ReconcileError::Full(_)) => Code::ResourceExhausted,
            Refusal::NoPool(_)
            | Refusal::NoBackend(..)
            | Refusal::NoTarget(_)
            | Refusal::NoGeneration(_) => Code::NotFound,
            Refusal::NoHashKey { .. } | Refusal::OpenSlots(_) | Refusal::Invalid(_) => {
                Code::InvalidArgument
            }
            Refusal::Schema(_)
            | Refusal::Unusable(_)
            | Refusal::UnusableGeneration { .. }
            | Refusal::SourcePrefix(_) => Code::FailedPrecondition,
            Refusal::Plan(_)
            | Refusal::Room(_)
            | Refusal::Store(_)
            | Refusal::Behind { .. }
            | Refusal::Thread(_)
            | Refusal::UnreadGeneration(_)
            | Refusal::Unreadable(_) => Code::Internal,
        };
        let message = error_chain::message(&self);
        let mut status = match &self {
            Refusal::Invalid(invalid) => {
                let details = ErrorDetails::with_bad_request(violations(invalid));
                Status::with_error_details(code, message, details)
            }
            _ => Status::new(code, message),
        };
        let (field, hint) = match &self {
            Refusal::NoHashKey { own_key, .. } => {
                (Some("hash_key".to_owned()), Some(key_hint(*own_key)))
            }
            Refusal::TooMany(too_many) => (None, Some(too_many.hint())),
            Refusal::Room(ReconcileError::Full(full)) => (None, full.hint()),
            Refusal::OpenSlots(open) => (Some(open.invalid.path()), Some(open.hint.clone())),
            Refusal::Invalid(invalid) => (Some(invalid.path()), None),
            Refusal::Store(error) | Refusal::UnreadGeneration(error) => (None, Some(error.hint())),
            Refusal::NoGeneration(_) | Refusal::UnusableGeneration { .. } => {
                (None, Some(HISTORY_HINT.into()))
            }
            Refusal::Schema(mismatch) => (None, Some(mismatch.hint().into())),
            Refusal::NoTarget(_) => (None, Some(TARGET_HINT.into())),
            Refusal::TooManyOverrides => (None, Some(OVERRIDES_HINT.into())),
            Refusal::Unusable(_) => (None, Some(UNUSABLE_HINT.into())),
            Refusal::SourcePrefix(_) => (None, Some(SOURCE_PREFIX_HINT.into())),
            _ => (None, None),
        };
        for (trailer, text) in [(FIELD_TRAILER, field), (HINT_TRAILER, hint)] {
            // A trailer holds ASCII only; the message has the path too.
            if let Some(Ok(text)) = text.map(AsciiMetadataValue::try_from) {
                status.metadata_mut().insert(trailer, text);
            }
        }
        status
    }
}

impl IntoStatus for NoPool {
    fn into_status(self) -> Status {
        hinted(Status::not_found(self.to_string()), &self.hint())
    }
}

/// Adds a hint.
pub(in crate::api) fn hinted(mut status: Status, hint: &str) -> Status {
    // A trailer holds ASCII only.
    if let Ok(hint) = AsciiMetadataValue::try_from(hint) {
        status.metadata_mut().insert(HINT_TRAILER, hint);
    }
    status
}

const TARGET_HINT: &str = "`spillway status` lists the backends, pools and regions that there are";

const OVERRIDES_HINT: &str =
    "`spillway override list` shows them; drain a pool or a region instead of its backends";

const HISTORY_HINT: &str =
    "`spillway history` lists the generations that are kept, and which of them cannot be used";

const UNUSABLE_HINT: &str =
    "`spillway export` shows the stored configuration; correct and apply it";

const SOURCE_PREFIX_HINT: &str = "no other host has an address of that prefix: give another address, or set another `tunnel-source-prefix` and \
     restart the daemon";

/// Hint for several balancers without a common key.
fn key_hint(key: [u64; 2]) -> String {
    if !caller().sees_hash_key() {
        return "set hash_key in the configuration of all of them; `spillway export` of an admin shows the one that this \
                daemon has in force"
            .into();
    }
    format!(
        "set hash_key in the configuration of all of them; with \"{}\", which this daemon has in force, none of its \
         connections moves",
        hash_key(key)
    )
}

impl IntoStatus for Stopping {
    fn into_status(self) -> Status {
        Status::unavailable(self.to_string())
    }
}
