use std::{error::Error, fmt};

use crate::causes;

/// Why the daemon cannot start or go on, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `subject: cause`.
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(super) fn of(subject: &str, error: &dyn Error) -> Self {
        Self::new(format!("{subject}: {}", causes::of(error)))
    }

    /// What happened, without what to do.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spillwayd: {}", self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
