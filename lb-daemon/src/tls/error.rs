use std::{io, net::SocketAddr, path::PathBuf};

use tokio_rustls::rustls;

/// Why TLS cannot be had.
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
    /// A file holds no such thing.
    #[error("{}: holds no {what} in PEM form", .path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// What the files hold does not go together.
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
    /// The address cannot be listened on.
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
                "`ss -ltnp` names who listens there; stop it, or give another --listen"
            }
            Self::Listen { .. } => "give --listen an address of this host, and a port",
            _ => {
                "/usr/share/doc/spillway/docs/security.md says what --tls-cert, --tls-key and --tls-ca hold"
            }
        }
    }
}
