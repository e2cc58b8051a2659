//! Why a check failed, with the texts for operators.

use std::{fmt, io, net::IpAddr, time::Duration};

use super::{
    grpc::ServingStatus,
    http::BODY_MOST,
    stream::{MOST, TooMuch},
    tls::tls_text,
    udp,
};

use nix::errno::Errno;
use rustls::InvalidMessage;

use crate::{Health, agent_report::LineError, host::Sign};
use lb_base::bytes::Bytes;
use lb_net::Unresolved;

#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection, and no refusal by the host.
    NoConnection {
        /// What happened instead.
        why: NoConnection,
        /// The sign that the host gave otherwise.
        sign: Option<Sign>,
        /// The VIP that was asked, if not the host's own address.
        vip: Option<IpAddr>,
    },
    /// The tunnel cannot be used, for a reason of this host.
    NoTunnel(String),
    /// The connection was made, but the answer was not complete in time.
    NoAnswer(Duration),
    /// The host refused the connection, or it broke.
    Io(io::Error),
    /// The backend closed the connection before it answered.
    Closed,
    /// The answer is not HTTP/1.
    NotHttp,
    /// The response's head is longer than this, bytes.
    HeadTooLong(usize),
    /// The status is not in the configured range.
    Status { status: u16, min: u16, max: u16 },
    /// The body, or the part of it that is read, does not contain this text.
    BodyLacks { text: String, whole: bool },
    /// The body's chunked framing is invalid.
    Chunks,
    /// More than a check reads.
    TooMuch,
    /// The connection was made, but the TLS handshake did not end in time.
    NoHandshake(Duration),
    /// The TLS handshake failed.
    Tls(rustls::Error),
    /// After the handshake something came that is not TLS.
    NoLongerTls,
    /// The server closed the connection during the TLS handshake.
    ClosedInHandshake,
    /// The server's certificate was not taken, for this reason.
    Certificate(String),
    /// The trusted certificates cannot be read.
    Roots(String),
    /// The answer is not HTTP/2.
    Http2(h2::Error),
    /// An HTTP/2 response with this status that is not gRPC.
    NotGrpc(u16),
    /// The call failed with this gRPC code.
    GrpcStatus(u8),
    /// The call succeeded, but the answer is not of the health service.
    NotHealth,
    /// The health service reports another status than SERVING.
    NotServing(ServingStatus),
    /// The answer has another prefix.
    Prefix(Vec<u8>),
    /// The answer does not contain this.
    AnswerLacks(Vec<u8>),
    /// The agent's line cannot be read.
    Line(LineError),
}

/// What happened instead of a connection.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// No answer in this time.
    TimedOut(Duration),
    /// No answer to a datagram in this time.
    NoDatagram(Duration),
    /// This host or a router reported that the host is unreachable.
    Failed(io::Error),
    /// No route to the backend that the tunnel ends at.
    NoRoute(Unresolved),
}

impl Failure {
    /// What it says of the backend.
    pub(crate) fn health(&self) -> Health {
        match self {
            Self::NoConnection { sign: None, .. } => Health::Silent,
            _ => Health::Failing,
        }
    }

    /// Wraps the error of a handshake.
    pub(super) fn of_handshake(error: io::Error) -> Self {
        match Self::from(error) {
            Self::NoLongerTls => Self::Tls(InvalidMessage::InvalidContentType.into()),
            Self::Closed => Self::ClosedInHandshake,
            other => other,
        }
    }
}

/// The error of a layer above the connection.
fn inner<E: std::error::Error + 'static>(error: &io::Error) -> Option<&E> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

impl From<LineError> for Failure {
    fn from(why: LineError) -> Self {
        Self::Line(why)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if inner::<TooMuch>(&error).is_some() {
            return Self::TooMuch;
        }
        match inner::<rustls::Error>(&error) {
            Some(rustls::Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            )) => Self::NoLongerTls,
            Some(error) => Self::Tls(error.clone()),
            // TLS that ended without `close_notify`.
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Closed,
            None => Self::Io(error),
        }
    }
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        match error.get_io() {
            // The connection broke, which `ErrorRecorder` has the error of, or ended within a frame.
            Some(io) => Self::from(io::Error::from(io.kind())),
            None => Self::Http2(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConnection { why, sign: None, .. } => {
                write!(f, "{why}, and the host is silent")
            }
            Self::NoConnection { why, sign: Some(sign), vip: None } => {
                write!(f, "{why}, but the host {sign}")
            }
            Self::NoConnection { why, sign: Some(sign), vip: Some(vip) } => {
                write!(
                    f,
                    "{why}, but the host {sign}: is {vip} on its lo, and does a receiver there allow it?"
                )
            }
            Self::NoTunnel(why) => write!(f, "no path through the tunnel: {why}"),
            Self::NoAnswer(timeout) => write!(f, "no answer within {} ms", timeout.as_millis()),
            Self::Io(error) => f.write_str(&io_text(error)),
            Self::Closed => f.write_str("connection closed before the answer"),
            Self::NotHttp => f.write_str("the answer is not HTTP/1"),
            Self::HeadTooLong(most) => write!(f, "the answer's head is over {most} bytes"),
            Self::Status { status, min, max } if min == max => {
                write!(f, "status {status}, expected {min}")
            }
            Self::Status { status, min, max } => {
                write!(f, "status {status}, expected {min} to {max}")
            }
            Self::BodyLacks { text, whole: true } => write!(f, "the body has no {text:?}"),
            Self::BodyLacks { text, whole: false } => {
                write!(f, "the body's first {BODY_MOST} bytes have no {text:?}")
            }
            Self::Chunks => f.write_str("the body's chunks are not HTTP/1.1"),
            Self::TooMuch => write!(f, "over {MOST} bytes came, and no answer"),
            Self::NoHandshake(timeout) => {
                write!(f, "TLS: no handshake within {} ms", timeout.as_millis())
            }
            Self::Tls(error) => write!(f, "TLS: {}", tls_text(error)),
            Self::NoLongerTls => {
                f.write_str("TLS: after the handshake the server sent something that is not TLS")
            }
            Self::ClosedInHandshake => f.write_str("TLS: connection closed during the handshake"),
            Self::Certificate(why) => write!(f, "TLS: {why}"),
            Self::Roots(why) => f.write_str(why),
            Self::Http2(error) => f.write_str(&http2_text(error)),
            Self::NotGrpc(status) => write!(f, "status {status}, and the answer is not gRPC"),
            Self::GrpcStatus(code) => write!(f, "the call failed: {}", grpc_text(*code)),
            Self::NotHealth => f.write_str("the answer is not of the gRPC health service"),
            Self::NotServing(serving) => write!(f, "the server says {serving}"),
            Self::Prefix(prefix) => {
                write!(f, "the answer does not begin with {:?}", bytes_text(prefix))
            }
            Self::Line(why) => why.fmt(f),
            Self::AnswerLacks(bytes) => {
                write!(f, "the answer's first {} bytes have no {:?}", udp::MOST, bytes_text(bytes))
            }
        }
    }
}

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(time) => write!(f, "no connection within {} ms", time.as_millis()),
            Self::NoDatagram(time) => write!(f, "no answer within {} ms", time.as_millis()),
            Self::Failed(error) => f.write_str(&io_text(error)),
            Self::NoRoute(why) => why.fmt(f),
        }
    }
}

/// `connection refused`, not `Connection refused (os error 111)`.
fn io_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => error.kind().to_string(),
    }
}

fn bytes_text(bytes: &[u8]) -> String {
    Bytes(bytes.to_vec()).to_string()
}

/// Names of gRPC codes, as in `docs/statuscodes.md` of gRPC.
fn grpc_text(code: u8) -> String {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(usize::from(code)).map_or_else(|| format!("code {code}"), |name| (*name).to_owned())
}

/// Whether the server ended the connection or sent something else than HTTP/2. The server's debug text is not
/// shown, as it is arbitrary.
fn http2_text(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) if error.is_remote() => format!("HTTP/2: ended by the server: {reason}"),
        _ => "the answer is not HTTP/2".to_owned(),
    }
}
