use std::{net::IpAddr, time::Duration};

use super::{Endpoint, Name, Ports};

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
    /// Port of the service.
    Port,
}

impl Affinity {
    /// `connection`, `client` or `port`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Client => "client",
            Self::Port => "port",
        }
    }
}

/// What becomes of fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragments {
    /// They are dropped, or left to the host where they bear no ports.
    #[default]
    Dropped,
    /// They go where all packets of their client go.
    Served,
}

impl Fragments {
    /// `dropped` or `served`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Served => "served",
        }
    }
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
    /// Its ports.
    pub ports: Ports,
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
    /// What becomes of fragments; served with [`Affinity::Client`] alone.
    pub fragments: Fragments,
}

impl Service {
    /// Its address and ports.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { address: self.address, ports: self.ports.clone() }
    }

    /// Entries that it takes in the map of services: one a port or one for any, and one for fragments.
    pub fn keys(&self) -> usize {
        let fragments = usize::from(self.fragments == Fragments::Served);
        self.ports.listed().map_or(1, super::PortList::count) + fragments
    }
}
