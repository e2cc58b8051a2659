//! Refusals as statuses of gRPC.

use tonic::{Code, Status, metadata::AsciiMetadataValue};

use super::{Invalid, message::hash_key};
use crate::{
    causes,
    command::{Refusal, Stopping},
    names::NoPool,
    reconcile::ReconcileError,
};

/// Trailer that holds the path of the field that is wrong.
pub const FIELD_TRAILER: &str = "spillway-field";

/// Trailer that says what to do, where the daemon knows it better than whoever asks.
pub const HINT_TRAILER: &str = "spillway-hint";

/// A field of a request that is wrong by itself.
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
        invalid_argument(wrong.to_string(), wrong.field)
    }
}

impl From<Invalid> for Status {
    fn from(invalid: Invalid) -> Self {
        invalid_argument(invalid.to_string(), invalid.path())
    }
}

fn invalid_argument(message: String, field: String) -> Status {
    let mut status = Status::invalid_argument(message);
    if let Ok(path) = AsciiMetadataValue::try_from(field) {
        status.metadata_mut().insert(FIELD_TRAILER, path);
    }
    status
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Conflict { .. } => Code::Aborted,
            Refusal::Exhausted(_) | Refusal::Memory(_) | Refusal::Room(ReconcileError::Full(_)) => {
                Code::ResourceExhausted
            }
            Refusal::NoPool(_) | Refusal::NoBackend(..) => Code::NotFound,
            Refusal::NoHashKey { .. } => Code::InvalidArgument,
            Refusal::Schema(_) | Refusal::Unusable(_) => Code::FailedPrecondition,
            Refusal::Plan(_)
            | Refusal::Room(_)
            | Refusal::Store(_)
            | Refusal::Behind { .. }
            | Refusal::Unreadable(_) => Code::Internal,
        };
        let mut status = Self::new(code, causes::of(&refusal));
        let (field, hint) = match &refusal {
            Refusal::NoHashKey { own_key, .. } => {
                (Some("hash_key".to_owned()), Some(key_hint(*own_key)))
            }
            Refusal::Store(error) => (None, Some(error.hint())),
            Refusal::Schema(mismatch) => (None, Some(mismatch.hint().into())),
            Refusal::Unusable(_) => (None, Some(UNUSABLE_HINT.into())),
            _ => (None, None),
        };
        for (trailer, text) in [(FIELD_TRAILER, field), (HINT_TRAILER, hint)] {
            // A path may have letters that no trailer takes; the sentence has it too.
            if let Some(Ok(text)) = text.map(AsciiMetadataValue::try_from) {
                status.metadata_mut().insert(trailer, text);
            }
        }
        status
    }
}

impl From<NoPool> for Status {
    fn from(no_pool: NoPool) -> Self {
        hinted(Self::not_found(no_pool.to_string()), &no_pool.hint())
    }
}

/// A status that says what to do.
pub(in crate::api) fn hinted(mut status: Status, hint: &str) -> Status {
    // A hint may have letters that no trailer takes.
    if let Ok(hint) = AsciiMetadataValue::try_from(hint) {
        status.metadata_mut().insert(HINT_TRAILER, hint);
    }
    status
}

/// What to do where the stored configuration cannot be used.
const UNUSABLE_HINT: &str = "`spillway export` shows what is stored; mend it, and apply it";

/// What to do where several balancers have no key.
fn key_hint(key: [u64; 2]) -> String {
    format!(
        "set hash_key in the configuration of all of them; with \"{}\", which this daemon has in force, none of its \
         connections moves",
        hash_key(key)
    )
}

impl From<Stopping> for Status {
    fn from(stopping: Stopping) -> Self {
        Self::unavailable(stopping.to_string())
    }
}
