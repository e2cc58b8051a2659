use std::{net::IpAddr, time::Duration};

use super::Name;

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// IP protocol number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// `tcp` or `udp`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// What keeps a client at one backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Address and port of the client.
    #[default]
    Connection,
    /// Address of the client.
    Client,
}

/// What becomes of a new connection when every region is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The nearest region serves it.
    #[default]
    Nearest,
    /// It is dropped.
    Reject,
}

/// A virtual address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The VIP.
    pub address: IpAddr,
    /// Port, not 0.
    pub port: u16,
    /// Protocol.
    pub protocol: Protocol,
    /// Pool that serves it.
    pub pool: Name,
    /// What keeps a client at one backend.
    pub affinity: Affinity,
    /// What becomes of a new connection when every region is full; [`WhenFull::Nearest`] where a
    /// packet goes by its slot alone.
    pub when_full: WhenFull,
    /// Of UDP: how long a flow without packets is remembered; `None`: none is, every packet goes by
    /// its slot alone. Of TCP always `None`.
    pub idle_timeout: Option<Duration>,
}
