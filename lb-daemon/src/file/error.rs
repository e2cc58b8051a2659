use std::{fmt, io};

use lb_base::error_chain;
use lb_config::{Invalid, document::DocumentError};
use lb_control::command::{Refusal, Stopping};

/// Why the configuration of a file is not in force.
#[derive(Debug)]
pub enum FileError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is no TOML, or says something that is no field.
    Document(DocumentError),
    /// It breaks a rule.
    Invalid {
        /// Line and column.
        place: Option<(usize, usize)>,
        /// The rule.
        invalid: Invalid,
    },
    /// It is valid and was refused all the same.
    Refused(Refusal),
    /// The daemon is stopping.
    Stopping(Stopping),
}

impl From<Refusal> for FileError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Stopping> for FileError {
    fn from(stopping: Stopping) -> Self {
        Self::Stopping(stopping)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {}", error_chain::message(error)),
            Self::Document(error) => write!(f, "{error}"),
            Self::Invalid { place: Some((line, column)), invalid } => {
                write!(f, "line {line}, column {column}: {invalid}")
            }
            Self::Invalid { place: None, invalid } => write!(f, "{invalid}"),
            Self::Refused(refusal) => f.write_str(&error_chain::message(refusal)),
            Self::Stopping(stopping) => write!(f, "{stopping}"),
        }
    }
}

impl std::error::Error for FileError {}
