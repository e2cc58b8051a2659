//! Why a command ended without doing what was asked, and its exit status.

use std::{fmt, io, mem, path::Path, process::ExitCode};

use lb_base::error_chain;
use lb_config::document::DocumentError;
use tonic::Code;

/// The exit status. Scripts rely on the numbers: a number is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Success = 0,
    /// A failure that no other status covers, and `fleet status --check` if anything is wrong.
    Failure = 1,
    /// The command line is wrong. clap uses the same number.
    Usage = 2,
    /// The daemon, or the etcd of its fleet, does not answer, or no packet program is pinned.
    Unavailable = 3,
    /// The user is not permitted to do this.
    Permission = 4,
    /// A named file, object or pin does not exist.
    NotFound = 5,
    /// The configuration, or on a reload the settings, is invalid; what was in force stays.
    Invalid = 6,
    /// The current state does not allow it: another generation or etag is in force, an object exists
    /// already or is in use, another capture is running, the daemon is running, or the fleet does not allow it.
    Conflict = 7,
    /// `diff` found differences.
    Different = 8,
    /// `doctor` found problems, and printed them.
    Problems = 9,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Its field, in the daemon's notation; empty if there is none.
    pub(crate) field: String,
    pub(crate) message: String,
}

/// What happened, and what to do about it: one sentence each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What happened, `subject: cause`.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// Field of the configuration that it is about, in the daemon's notation.
    pub(crate) field: Option<String>,
    /// Other mistakes in the same configuration.
    pub(crate) others: Vec<Mistake>,
    /// gRPC code of the daemon's refusal.
    pub(crate) code: Option<Code>,
    /// Whether the daemon refused because of its fleet or of etcd, whatever the call was about.
    pub(crate) is_of_fleet: bool,
    /// Whether standard error already shows it.
    pub(crate) is_printed: bool,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            field: None,
            others: Vec::new(),
            code: None,
            is_of_fleet: false,
            is_printed: false,
        }
    }

    #[must_use]
    pub(crate) fn about(mut self, field: Option<&str>) -> Self {
        self.field = field.map(str::to_owned);
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds to each mistake where its field is in a file, if `find` finds its line and column there, in the order of the
    /// file.
    pub(crate) fn located(
        mut self,
        file: &str,
        find: impl Fn(&str) -> Option<(usize, usize)>,
    ) -> Self {
        let field = self.field.clone().unwrap_or_default();
        let first = Mistake { field, message: mem::take(&mut self.message) };
        let mistakes = [first].into_iter().chain(mem::take(&mut self.others)).map(|mut mistake| {
            let place = find(&mistake.field);
            if let Some((line, column)) = place {
                let message = &mistake.message;
                mistake.message = format!("{file}: line {line}, column {column}: {message}");
            }
            (place.unwrap_or((usize::MAX, 0)), mistake)
        });
        let mut mistakes: Vec<_> = mistakes.collect();
        mistakes.sort_by_key(|(place, _)| *place);
        let mut mistakes = mistakes.into_iter().map(|(_, mistake)| mistake);
        if let Some(Mistake { field, message }) = mistakes.next() {
            self.field = self.field.is_some().then_some(field);
            self.message = message;
        }
        self.others = mistakes.collect();
        self
    }

    /// A file that is not what it should be, with all its mistakes.
    pub(crate) fn document(file: &str, error: &DocumentError) -> Self {
        let mistake =
            |message| Mistake { field: String::new(), message: format!("{file}: {message}") };
        let mut mistakes = error.lines().map(mistake);
        let message = mistakes.next().map_or(String::new(), |first| first.message);
        Self { others: mistakes.collect(), ..Self::new(Exit::Invalid, message) }
    }

    /// Whether another change came first: on the new state the same call may succeed.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.code == Some(Code::Aborted) && !self.is_of_fleet
    }

    /// A path that cannot be used.
    pub(crate) fn path(path: &Path, error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            io::ErrorKind::PermissionDenied => Exit::Permission,
            _ => Exit::Failure,
        };
        Self::new(exit, format!("{}: {}", path.display(), describe(error)))
    }
}

/// An I/O error in words, without the operating system's error number.
pub(crate) fn describe(error: &io::Error) -> String {
    let words = error_chain::without_numbers(&error.to_string());
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "unknown error".into(),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        self.others.iter().try_for_each(|other| write!(f, "\nerror: {}", other.message))?;
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
    fn a_failure_is_an_error_line_and_a_hint_line() {
        let failure = Failure::new(Exit::NotFound, "pool shop: is not in the configuration")
            .hint("the pools are: web");
        assert_eq!(
            failure.to_string(),
            "error: pool shop: is not in the configuration\nhint: the pools are: web"
        );
        let other = |message: &str| Mistake { field: String::new(), message: message.into() };
        let failure = Failure { others: vec![other("b: is wrong"), other("c: too")], ..failure };
        assert_eq!(
            failure.to_string(),
            "error: pool shop: is not in the configuration\nerror: b: is wrong\nerror: c: too\n\
             hint: the pools are: web"
        );
    }

    #[test]
    fn the_exit_status_of_a_path_is_its_kind_of_error() {
        let failure =
            |number| Failure::path(Path::new("/a"), &io::Error::from_raw_os_error(number));
        assert_eq!(failure(2), Failure::new(Exit::NotFound, "/a: no such file or directory"));
        assert_eq!(failure(13), Failure::new(Exit::Permission, "/a: permission denied"));
        assert_eq!(failure(21), Failure::new(Exit::Failure, "/a: is a directory"));
    }
}
