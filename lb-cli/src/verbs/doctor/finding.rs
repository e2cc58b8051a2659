use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// It works, but not well, or not for long.
    Warning,
    /// Packets are lost, or nobody looks after them.
    Problem,
}

impl Level {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What one look came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Name of the check.
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// What was looked at: an interface, an address, a file.
    pub(super) subject: String,
    /// How it is.
    pub(super) found: String,
    /// Why that matters; empty where nothing is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) why: String,
    /// Commands that mend it, each to be pasted. CAPITALS in one stand for what nobody here can know.
    pub(super) mend: Vec<String>,
    /// A command to be pasted instead, where that is what is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) or: Option<String>,
}

impl Finding {
    fn new(level: Level, check: &'static str, subject: String, found: String) -> Self {
        Self { check, level, subject, found, why: String::new(), mend: Vec::new(), or: None }
    }

    /// Nothing is wrong.
    pub(super) fn ok(
        check: &'static str,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::new(Level::Ok, check, subject.into(), found.into())
    }

    /// It could be better.
    pub(super) fn warning(
        check: &'static str,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::new(Level::Warning, check, subject.into(), found.into())
    }

    /// It does not work.
    pub(super) fn problem(
        check: &'static str,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::new(Level::Problem, check, subject.into(), found.into())
    }

    #[must_use]
    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    #[must_use]
    pub(super) fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend.push(command.into());
        self
    }

    #[must_use]
    pub(super) fn or(mut self, command: impl Into<String>) -> Self {
        self.or = Some(command.into());
        self
    }
}
