use std::{fmt, net::SocketAddr, str::FromStr};

use lb_control::command::Actor;

/// What somebody may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Changes weight, admin state and limit of backends that are there, captures packets, and tries ways to
    /// backends.
    Operator,
    /// Changes everything.
    Admin,
}

/// A text that is no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; one of viewer, operator, admin is")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "operator" => Ok(Self::Operator),
            "admin" => Ok(Self::Admin),
            _ => Err(UnknownRole(text.into())),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        })
    }
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
