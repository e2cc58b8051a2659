use std::{error::Error, fmt, io};

use lb_base::{count, error_chain, lock_owner};
use lb_config::MOST_MISTAKES;
use lb_maps::{AttachError, BpffsError, DataplaneError};

/// Why the daemon cannot start or must end, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `subject: cause`.
    message: String,
    hint: Option<String>,
    /// Whether the command line or the settings file is the cause, so that another start fails too.
    is_settings: bool,
    /// Other mistakes in the same file.
    others: Vec<Failure>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, is_settings: false, others: Vec::new() }
    }

    /// `subject: cause`, with the causes of the cause.
    pub(super) fn about(subject: &str, error: &dyn Error) -> Self {
        Self::new(format!("{subject}: {}", error_chain::message(error)))
    }

    /// An error that names its subject itself.
    pub(super) fn from_chain(error: &dyn Error) -> Self {
        Self::new(error_chain::message(error))
    }

    /// The first of several, with the others; `None`: there is none.
    pub(super) fn all(failures: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut failures = failures.into_iter();
        let first = failures.next()?;
        let mut others: Vec<_> = failures.by_ref().take(MOST_MISTAKES - 1).collect();
        let left_out = failures.count();
        if left_out > 0 {
            others.push(Self::new(count(left_out as u64, "more mistake")));
        }
        Some(Self { others, ..first })
    }

    /// Those of all mistakes, without hints.
    pub(super) fn messages(&self) -> Vec<String> {
        [self].into_iter().chain(&self.others).map(|it| it.message.clone()).collect()
    }

    #[must_use]
    pub(super) fn reworded(self, words: &impl Fn(&str) -> String) -> Self {
        let (message, hint) = (words(&self.message), self.hint.as_deref().map(words));
        let others = self.others.into_iter().map(|other| other.reworded(words)).collect();
        Self { message, hint, others, ..self }
    }

    /// Marks the settings as the cause: a start with the same settings fails too.
    #[must_use]
    pub(super) fn caused_by_settings(mut self) -> Self {
        self.is_settings = true;
        self
    }

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
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))?;
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

/// The failure to set up the packet path, with a hint.
pub(super) fn packet_path(error: DataplaneError) -> Failure {
    match &error {
        DataplaneError::Bpffs(BpffsError::InUse { path }) => {
            let other = lock_owner::named(path);
            Failure::new(format!("{}: in use by another spillwayd", path.display()))
                .hint(format!("stop the other daemon{other}, or give each its own --bpffs"))
        }
        DataplaneError::Attach(AttachError::NoInterface(_)) => Failure::from_chain(&error)
            .hint("`ip -brief link` lists the interfaces; name one with --interface"),
        error if is_permission_denied(error) => Failure::from_chain(error).hint(
            "run it as root, or with the capabilities of its unit: packet programs need CAP_BPF, \
             CAP_NET_ADMIN and CAP_PERFMON",
        ),
        error => Failure::from_chain(error),
    }
}

fn is_permission_denied(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return true;
        }
        cause = error.source();
    }
    false
}
