use std::{fmt, io, time::Duration};

use nix::errno::Errno;

/// Why a check failed.
#[derive(Debug)]
pub(in crate::health) enum Failure {
    /// It was not over in time.
    NoAnswer(Duration),
    /// The connection was not made, or broke.
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

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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

/// `connection refused`, not `Connection refused (os error 111)`.
fn in_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => error.kind().to_string(),
    }
}
