//! What errors of etcd mean, in words.

use std::{error::Error as _, time::Duration};

use lb_base::error_chain;

/// Longest time for one request. etcd itself gives up after 7 s; a balancer should know earlier that it has no etcd.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(5);

/// Why etcd did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    #[error("etcd cannot be reached: {0}")]
    Unreachable(String),
    /// There was no connection, so the request was certainly not carried out.
    #[error("etcd cannot be reached: {0}")]
    NotConnected(String),
    #[error("etcd did not answer within {} s", REQUEST_TIME.as_secs())]
    NoAnswer,
    #[error("etcd has no quorum: {0}")]
    NoQuorum(String),
    #[error(
        "etcd is out of space and takes no changes: compact and defragment it, then disarm its alarm"
    )]
    NoSpace,
    #[error("etcd compacted what was asked for: {0}")]
    Compacted(String),
    #[error("a certificate of the connection to etcd has expired: {0}")]
    CertificateExpired(String),
    #[error(
        "etcd denies access: {0}; /usr/share/doc/spillway/docs/fleet.md lists the rights that a balancer needs"
    )]
    Denied(String),
    #[error("{path}: cannot be read: {cause}")]
    File { path: String, cause: String },
    #[error("etcd refuses the request: {0}")]
    Refused(String),
}

impl EtcdError {
    /// Whether the request may have been carried out, now or later, although it failed. A write that finds no space may
    /// have been: etcd applies the one that reaches its quota, and answers with this error.
    pub fn is_indefinite(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::NoAnswer | Self::NoQuorum(_) | Self::NoSpace)
    }

    /// The same with the servers that the settings name, if this is about reaching them: the client does not say which one
    /// it tried.
    #[must_use]
    pub fn with_servers(self, servers: &[String]) -> Self {
        let servers = servers.join(", ");
        match self {
            Self::Unreachable(cause) => Self::Unreachable(format!("{servers}: {cause}")),
            Self::NotConnected(cause) => Self::NotConnected(format!("{servers}: {cause}")),
            Self::NoAnswer => Self::Unreachable(format!(
                "{servers}: no answer within {} s",
                REQUEST_TIME.as_secs()
            )),
            other => other,
        }
    }

    /// Whether no server said anything, so that another one may.
    pub(crate) fn is_without_answer(&self) -> bool {
        matches!(self, Self::NoAnswer | Self::NotConnected(_) | Self::Unreachable(_))
    }

    /// Whether the answer has more bytes than this balancer takes.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused(text) if text.contains("message length too large"))
    }

    /// Whether etcd says that the lease of the request does not exist.
    pub(crate) fn is_lease_gone(&self) -> bool {
        matches!(self, Self::Refused(text) if text.contains("lease not found"))
    }
}

impl From<etcd_client::Error> for EtcdError {
    fn from(error: etcd_client::Error) -> Self {
        use etcd_client::Error;
        let (code, text) = match &error {
            Error::GRpcStatus(status) => {
                let causes = status.source().map(error_chain::message);
                let text = match causes {
                    Some(causes) => format!("{}: {causes}", status.message()),
                    None => status.message().to_owned(),
                };
                (status.code() as i32, text)
            }
            Error::TransportError(error) => (14, error_chain::message(error)),
            Error::IoError(error) => (14, error_chain::message(error)),
            other => (3, other.to_string()),
        };
        let text = without_repetitions(&text);
        let has = |part: &str| text.contains(part);
        if has("certificate") && (has("expired") || has("Expired")) || has("CertificateExpired") {
            return Self::CertificateExpired(text);
        }
        match code {
            _ if has("no leader") || has("request timed out") || has("leader changed") => {
                Self::NoQuorum(text)
            }
            _ if has("database space exceeded") => Self::NoSpace,
            _ if has("compacted") => Self::Compacted(text),
            // Permission denied, unauthenticated.
            7 | 16 => Self::Denied(text),
            // Invalid argument, not found, exists, exhausted, precondition, range, unimplemented.
            3 | 5 | 6 | 8 | 9 | 11 | 12 => Self::Refused(text),
            _ if is_not_connected(&error) => Self::NotConnected(explained(text)),
            _ => Self::Unreachable(explained(text)),
        }
    }
}

/// A chain of causes without those that only say the same again: each layer of the connection repeats the one below.
fn without_repetitions(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(": ").filter(|part| *part != "transport error") {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(": ")
}

/// What the libraries say, in words: of certificates with the name of the file, of connections without the layer that
/// noticed it.
fn explained(text: String) -> String {
    let is_refusal = |text: &str| text.contains("Certificate") || text.contains("UnknownCA");
    let cause = if text.contains("received fatal alert") && is_refusal(&text) {
        "it refuses this balancer's certificate, that of tls-cert"
    } else if text.contains("UnknownIssuer") {
        "its certificate is of no authority in tls-ca"
    } else if text.contains("not valid for name") || text.contains("NotValidForName") {
        "its certificate does not have the host of its URL"
    } else if let Some(cause) = text.strip_prefix("tcp connect error: ") {
        return cause.to_owned();
    } else if ENDED.iter().any(|words| text.to_lowercase().contains(words)) {
        return "the connection was closed".into();
    } else {
        return text;
    };
    format!("{cause} ({text})")
}

/// How libraries say that the server closed the connection, or that it is gone.
const ENDED: [&str; 4] = [
    "broken pipe",
    "connection reset",
    "connection closed",
    "error reading a body from connection",
];

/// Whether there was no connection, so that the request cannot have been carried out.
fn is_not_connected(error: &etcd_client::Error) -> bool {
    let causes = match error {
        etcd_client::Error::GRpcStatus(status) => status.source().map(error_chain::message),
        etcd_client::Error::TransportError(error) => Some(error_chain::message(error)),
        _ => None,
    };
    causes.is_some_and(|causes| causes.contains("tcp connect error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once_and_in_words() {
        let said = |text: &str| explained(without_repetitions(text));
        let refused = "tcp connect error: transport error: tcp connect error: Connection refused";
        assert_eq!(said(refused), "Connection refused");
        for closed in ["h2 protocol error: broken pipe", "http2 error: Connection reset by peer"] {
            assert_eq!(said(closed), "the connection was closed");
        }
        let alert = "transport error: connection error: received fatal alert: BadCertificate";
        let words = "it refuses this balancer's certificate, that of tls-cert";
        let expected = format!("{words} (connection error: received fatal alert: BadCertificate)");
        assert_eq!(said(alert), expected);
        let other = "connection error: received fatal alert: ProtocolVersion";
        assert_eq!(said(other), other);
        let unknown = "transport error: invalid peer certificate: UnknownIssuer";
        assert!(said(unknown).starts_with("its certificate is of no authority in tls-ca ("));
        let host = "invalid peer certificate: certificate not valid for name \"etcd-1\"";
        assert!(said(host).starts_with("its certificate does not have the host of its URL ("));
    }

    #[test]
    fn what_is_about_reaching_etcd_names_the_servers() {
        let servers = ["http://a:1".to_owned(), "http://b:1".to_owned()];
        let said = |error: EtcdError| error.with_servers(&servers).to_string();
        let reached = "etcd cannot be reached: http://a:1, http://b:1: ";
        let refused = "Connection refused".to_owned();
        assert_eq!(said(EtcdError::Unreachable(refused.clone())), format!("{reached}{refused}"));
        assert_eq!(said(EtcdError::NotConnected(refused.clone())), format!("{reached}{refused}"));
        assert_eq!(said(EtcdError::NoAnswer), format!("{reached}no answer within 5 s"));
        assert_eq!(said(EtcdError::NoSpace), EtcdError::NoSpace.to_string());
        assert!(EtcdError::NoAnswer.with_servers(&servers).is_indefinite());
        assert!(!EtcdError::NotConnected(refused).is_indefinite());
    }
}
