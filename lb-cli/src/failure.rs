//! Why a command ended without doing what was asked.

use std::{fmt, io, path::Path};

use lb_daemon::causes;
use tonic::Code;

use crate::{exit::Exit, output::tell};

/// One sentence on what happened to what, and one on what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Exit status.
    pub(crate) exit: Exit,
    /// What happened, `subject: cause`.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// The field of a configuration that it is about, as the daemon names it.
    pub(crate) field: Option<String>,
    /// How the daemon calls its refusal.
    pub(crate) code: Option<Code>,
    /// Whether standard error has it already.
    pub(crate) is_told: bool,
}

impl Failure {
    /// A failure without advice.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, field: None, code: None, is_told: false }
    }

    /// The same failure with advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether somebody else's change came first: on what is in force now the same call may succeed.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.code == Some(Code::Aborted)
    }

    /// Says it on standard error, once: as what a command that goes on is to end with.
    pub(crate) fn told(self) -> Self {
        if !self.is_told {
            tell(&self.to_string());
        }
        Self { is_told: true, ..self }
    }

    /// A path that could not be used.
    pub(crate) fn path(path: &Path, error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            io::ErrorKind::PermissionDenied => Exit::Permission,
            _ => Exit::Failure,
        };
        Self::new(exit, format!("{}: {}", path.display(), describe(error)))
    }
}

/// An I/O error in words, without the number of the operating system.
pub(crate) fn describe(error: &io::Error) -> String {
    let words = causes::without_numbers(&error.to_string());
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "unknown error".into(),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_as_an_error_line_and_a_hint_line() {
        let failure = Failure::new(Exit::NotFound, "pool shop: is not in the configuration")
            .hint("the pools are: web");
        assert_eq!(
            failure.to_string(),
            "error: pool shop: is not in the configuration\nhint: the pools are: web"
        );
    }

    #[test]
    fn paths_keep_their_kind_of_error_as_the_exit_status() {
        let of = |number| Failure::path(Path::new("/a"), &io::Error::from_raw_os_error(number));
        assert_eq!(of(2), Failure::new(Exit::NotFound, "/a: no such file or directory"));
        assert_eq!(of(13), Failure::new(Exit::Permission, "/a: permission denied"));
        assert_eq!(of(21), Failure::new(Exit::Failure, "/a: is a directory"));
    }
}
