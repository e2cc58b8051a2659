//! A finding of a check.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// In order.
    Ok,
    /// It works, but not well, or not for long.
    Warning,
    /// Packets are lost, or their handling is not supervised.
    Problem,
}

impl Level {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    pub level: Level,
    /// What was checked: an interface, an address, a file.
    pub subject: String,
    /// Its state.
    pub found: String,
    /// Why that matters; empty if nothing is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Commands that fix it, ready to paste. CAPITALS stand for values that the user has to fill in.
    pub mend: Vec<String>,
    /// An alternative command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or: Option<String>,
}

impl Finding {
    fn new(level: Level, check: &'static str, subject: String, found: String) -> Self {
        Self { check, level, subject, found, why: String::new(), mend: Vec::new(), or: None }
    }

    pub fn ok(check: &'static str, subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Level::Ok, check, subject.into(), found.into())
    }

    pub fn warning(
        check: &'static str,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::new(Level::Warning, check, subject.into(), found.into())
    }

    pub fn problem(
        check: &'static str,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::new(Level::Problem, check, subject.into(), found.into())
    }

    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    #[must_use]
    pub fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend.push(command.into());
        self
    }

    #[must_use]
    pub fn or(mut self, command: impl Into<String>) -> Self {
        self.or = Some(command.into());
        self
    }
}

/// `10.0.0.1 and 2 more`.
pub(crate) fn first_and_count<T: ToString>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{} and {} more", first.to_string(), more.len()),
    }
}
