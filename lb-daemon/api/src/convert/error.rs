//! Errors with the details that programs read: `google.rpc.ErrorInfo`, and `google.rpc.BadRequest` for wrong fields.

use std::collections::HashMap;

use spillway_proto::v1::ErrorReason;
use tonic::{Code, Status, metadata::AsciiMetadataValue};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use lb_config::{FIELD_TRAILER, HINT_TRAILER};

/// The domain of our reasons.
const DOMAIN: &str = "spillway";

/// Most characters of a value; the names of all objects are shorter. The caller may have chosen it, and trailers must be short.
const MAX_VALUE: usize = 64;

/// An error before it becomes a [`Status`].
#[derive(Debug)]
pub(crate) struct ApiError {
    code: Code,
    reason: ErrorReason,
    message: String,
    metadata: HashMap<String, String>,
    violations: Vec<FieldViolation>,
    field: Option<String>,
    hint: Option<String>,
}

impl ApiError {
    pub(crate) fn new(code: Code, reason: ErrorReason, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            metadata: HashMap::new(),
            violations: Vec::new(),
            field: None,
            hint: None,
        }
    }

    /// Adds a value that programs read, as the comment of the reason promises it.
    pub(crate) fn with(mut self, key: &str, value: impl ToString) -> Self {
        let value = value.to_string().chars().take(MAX_VALUE).collect();
        self.metadata.insert(key.into(), value);
        self
    }

    /// The object that it is about; its kind in words, as "health check".
    pub(crate) fn about(self, kind: &str, name: &str, pool: &str) -> Self {
        let kind = kind.to_uppercase().replace(' ', "_");
        self.with("kind", kind).with("name", name).with("pool", pool)
    }

    /// That an object does not exist.
    pub(crate) fn not_found(
        message: impl Into<String>,
        kind: &str,
        name: &str,
        pool: &str,
    ) -> Self {
        Self::new(Code::NotFound, ErrorReason::ObjectNotFound, message).about(kind, name, pool)
    }

    /// The path of the first wrong field.
    pub(super) fn field(self, path: impl Into<String>) -> Self {
        Self { field: Some(path.into()), ..self }
    }

    pub(super) fn violations(self, violations: Vec<FieldViolation>) -> Self {
        Self { violations, ..self }
    }

    /// What the operator can do.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        let ApiError { code, reason, message, metadata, violations, field, hint } = error;
        let mut details = ErrorDetails::with_error_info(reason_text(reason), DOMAIN, metadata);
        if !violations.is_empty() {
            details.set_bad_request(violations);
        }
        let mut status = Self::with_error_details(code, message, details);
        for (trailer, text) in [(FIELD_TRAILER, field), (HINT_TRAILER, hint)] {
            // A trailer holds ASCII only; the message has the path too.
            if let Some(Ok(text)) = text.map(AsciiMetadataValue::try_from) {
                status.metadata_mut().insert(trailer, text);
            }
        }
        status
    }
}

/// `ETAG_CONFLICT` of `ERROR_REASON_ETAG_CONFLICT`.
fn reason_text(reason: ErrorReason) -> &'static str {
    let name = reason.as_str_name();
    name.strip_prefix("ERROR_REASON_").unwrap_or(name)
}
