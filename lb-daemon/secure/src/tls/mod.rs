//! TLS: the API over TCP, with certificates on both ends, where only clients with a role may call anything, and the
//! certificates of every listener.

mod accept;
mod certificate_files;
mod connection;
mod credentials;
mod expiry;
mod listener;

pub use accept::{Acceptor, accept};
pub use certificate_files::CertificateFiles;
pub use certificate_files::{CertificateContents, ServerBuilder, read};
pub use connection::Connection;
pub use credentials::{Credentials, CredentialsInForce, TlsFiles};
pub use credentials::{FileContents, conclude_refresh, poll};
pub use expiry::{CertificateExpiry, Validities, Validity};
pub use expiry::{expired, report_fleet};

pub use listener::listen;
pub use listener::names;

use std::{io, net::SocketAddr, path::PathBuf};

use tokio_rustls::rustls;

/// Why the TLS listener cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file has no such item.
    #[error("{}: contains no {what} in PEM form", .path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
    },
    /// A file cannot be used, or does not match the others.
    #[error("{}: cannot be used", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// An authority cannot be used.
    #[error("{}: cannot be used: {cause}", .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// Listening on the address fails.
    #[error("{address}: cannot listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

impl TlsError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "`ss -ltnp` shows which process listens there; stop it, or give another --listen"
            }
            Self::Listen { .. } => "give --listen an address of this host, and a port",
            _ => {
                "/usr/share/doc/spillway/docs/security.md describes --tls-cert, --tls-key and --tls-ca"
            }
        }
    }
}
