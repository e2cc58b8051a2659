use std::{error::Error, fmt};

use lb_base::error_chain;

/// Why the daemon cannot start or go on, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `subject: cause`.
    message: String,
    hint: Option<String>,
    /// Whether what the daemon was told is wrong, so that another start fails too.
    is_settings: bool,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, is_settings: false }
    }

    pub(super) fn of(subject: &str, error: &dyn Error) -> Self {
        Self::new(format!("{subject}: {}", error_chain::message(error)))
    }

    /// What happened, without what to do.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The same in other words.
    #[must_use]
    pub(super) fn reworded(self, words: impl Fn(&str) -> String) -> Self {
        let (message, hint) = (words(&self.message), self.hint.as_deref().map(words));
        Self { message, hint, ..self }
    }

    /// The same, as the fault of the settings: a start with the same settings fails too.
    #[must_use]
    pub(super) fn of_settings(mut self) -> Self {
        self.is_settings = true;
        self
    }

    /// The exit status of a daemon that ends so.
    pub(super) fn exit_status(&self) -> u8 {
        if self.is_settings { 2 } else { 1 }
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
