use std::{fmt, io, time::Duration};

use nix::errno::Errno;

use crate::health::{Health, host::Sign};

/// Why a check failed.
#[derive(Debug)]
pub(in crate::health) enum Failure {
    /// No connection was made, and the host did not say why.
    NoConnection {
        /// What came instead.
        why: NoConnection,
        /// What the host showed of itself otherwise.
        sign: Option<Sign>,
    },
    /// The connection was made, but the rest was not over in time.
    NoAnswer(Duration),
    /// The host refused the connection, or it broke.
    Io(io::Error),
    /// The backend closed the connection before it had answered.
    Closed,
    /// What came is no HTTP/1 response.
    NotHttp,
    /// The response's head is longer than this many bytes.
    HeadTooLong(usize),
    /// The status is not one of those wanted.
    Status { status: u16, min: u16, max: u16 },
}

/// What came instead of a connection.
#[derive(Debug)]
pub(in crate::health) enum NoConnection {
    /// Nothing, for so long.
    InTime(Duration),
    /// Word of this host or of a router that there is no way.
    Failed(io::Error),
}

impl Failure {
    /// What it says of the backend.
    pub(in crate::health) fn health(&self) -> Health {
        match self {
            Self::NoConnection { sign: None, .. } => Health::Silent,
            _ => Health::Failing,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConnection { why, sign: Some(sign) } => write!(f, "{why}, but the host {sign}"),
            Self::NoConnection { why, sign: None } => write!(f, "{why}, and the host is silent"),
            Self::NoAnswer(timeout) => write!(f, "no answer within {} ms", timeout.as_millis()),
            Self::Io(error) => f.write_str(&in_words(error)),
            Self::Closed => f.write_str("connection closed before the answer"),
            Self::NotHttp => f.write_str("the answer is not HTTP/1"),
            Self::HeadTooLong(most) => write!(f, "the answer's head is over {most} bytes"),
            Self::Status { status, min, max } if min == max => {
                write!(f, "status {status}, expected {min}")
            }
            Self::Status { status, min, max } => {
                write!(f, "status {status}, expected {min} to {max}")
            }
        }
    }
}

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTime(time) => write!(f, "no connection within {} ms", time.as_millis()),
            Self::Failed(error) => f.write_str(&in_words(error)),
        }
    }
}

/// `connection refused`, not `Connection refused (os error 111)`.
fn in_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => error.kind().to_string(),
    }
}
