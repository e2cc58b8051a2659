use std::{fmt, net::SocketAddr, path::PathBuf};

use super::Role;

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Nobody said.
    #[default]
    Unknown,
    /// A file that the daemon was told to apply.
    File(PathBuf),
    /// A process of this host, by the user it runs as.
    User(u32),
    /// A client over TLS, by a name of its certificate.
    Certificate(String),
}

/// Who is at the other end of a connection, and what they may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Who it is.
    pub actor: Actor,
    /// What they may; `None`: nothing.
    pub role: Option<Role>,
    /// Addresses of a connection over TLS; `None`: it came by the socket of this host.
    pub connection: Option<TcpEnds>,
}

/// The two ends of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpEnds {
    /// The client's.
    pub client: SocketAddr,
    /// The daemon's.
    pub daemon: SocketAddr,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("somebody unknown"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::User(uid) => write!(f, "uid {uid}"),
            Self::Certificate(name) => write!(f, "certificate {name}"),
        }
    }
}
