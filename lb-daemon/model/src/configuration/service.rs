use std::{net::IpAddr, time::Duration};

use super::{Endpoint, Name, Ports, named_value::named_values};

named_values! {
    /// A transport protocol.
    pub enum Protocol {
        /// TCP
        Tcp = "tcp",
        /// UDP
        Udp = "udp",
    }
}

impl Protocol {
    /// IP protocol number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

named_values! {
    /// What keeps a client at one backend.
    pub enum Affinity, default Connection {
        /// The client's address and port
        Connection = "connection",
        /// The client's address: all its connections go to one backend
        Client = "client",
        /// The service's port: all connections to a port go to one backend
        Port = "port",
    }
}

named_values! {
    /// What happens to a new connection if every region is full.
    pub enum WhenFull, default Nearest {
        /// The nearest region takes it, over its capacity
        Nearest = "nearest",
        /// It is dropped and counted
        Reject = "reject",
    }
}

named_values! {
    /// How packets of a UDP service find their backend.
    pub enum UdpMode, default Stateless {
        /// The slot alone selects the backend
        Stateless = "stateless",
        /// Each flow is remembered with its backend
        Tracked = "tracked",
    }
}

named_values! {
    /// What happens to fragmented packets.
    pub enum Fragments, default Dropped {
        /// Drop them
        Dropped = "dropped",
        /// Send them to the backend of their client
        Served = "served",
    }
}

/// A virtual address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The VIP.
    pub address: IpAddr,
    pub ports: Ports,
    pub protocol: Protocol,
    /// Pool that serves it.
    pub pool: Name,
    /// What keeps a client at one backend.
    pub affinity: Affinity,
    /// What happens to a new connection if every region is full; [`WhenFull::Nearest`] for stateless UDP.
    pub when_full: WhenFull,
    /// How long an idle flow of tracked UDP is remembered; `None`: stateless UDP, or TCP.
    pub idle_timeout: Option<Duration>,
    /// What happens to fragments; served only with [`Affinity::Client`].
    pub fragments: Fragments,
}

impl Service {
    /// Its address and ports.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { address: self.address, ports: self.ports.clone() }
    }

    /// How its packets find their backend; `None` for TCP.
    pub fn udp_mode(&self) -> Option<UdpMode> {
        let mode = if self.idle_timeout.is_some() { UdpMode::Tracked } else { UdpMode::Stateless };
        (self.protocol == Protocol::Udp).then_some(mode)
    }

    /// Entries that it needs in the map of services: one per port or one for any port, and one for fragments.
    pub fn keys(&self) -> usize {
        let fragments = usize::from(self.fragments == Fragments::Served);
        self.ports.listed().map_or(1, super::PortList::count) + fragments
    }
}
