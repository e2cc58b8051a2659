//! Errors of others in words of our own.

use std::io;

use nix::errno::Errno;
use rustls::CertificateError;

use lb_base::bytes::Bytes;

/// `connection refused`, not `Connection refused (os error 111)`.
pub(super) fn io(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => error.kind().to_string(),
    }
}

pub(super) fn bytes(bytes: &[u8]) -> String {
    Bytes(bytes.to_vec()).to_string()
}

pub(super) fn tls(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(why) = error else { return error.to_string() };
    match why {
        CertificateError::UnknownIssuer => "nobody trusted has signed the certificate".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The codes of gRPC, with which `docs/statuscodes.md` of its specification calls them.
pub(super) fn grpc(code: u8) -> String {
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

/// Whether the backend ended it, or what it sent is no HTTP/2. What it says of that itself is not told:
/// it may say anything.
pub(super) fn http2(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) if error.is_remote() => format!("HTTP/2: ended by the server: {reason}"),
        _ => "the answer is not HTTP/2".to_owned(),
    }
}
