//! The packet that is asked about.

use std::net::{IpAddr, SocketAddr};

use lb_common::{
    abi::service::{IPV4, IPV6, VipKey, address_words},
    flow_hash::FlowTuple,
    path::{Kind, Parsed},
    wire::{ipv4, ipv6, tcp, udp},
};

use lb_model::Protocol;

/// A packet to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub(super) client: SocketAddr,
    pub(super) vip: SocketAddr,
    pub(super) protocol: Protocol,
    pub(super) kind: Kind,
}

/// Why there is no such packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// One address is of IPv4, the other of IPv6.
    #[error("client {0} and vip {1}: different IP versions")]
    TwoVersions(SocketAddr, SocketAddr),
    /// UDP has no connections.
    #[error("protocol udp: UDP has no open connections")]
    OpenDatagram,
}

impl FlowError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TwoVersions(..) => "give both as IPv4 or both as IPv6 addresses",
            Self::OpenDatagram => {
                "leave out --open; datagrams of remembered flows are recognised without it"
            }
        }
    }
}

impl Flow {
    /// A packet of a client to a VIP: a SYN or a datagram, or, if `open`, a packet of an open
    /// connection.
    ///
    /// # Errors
    /// [`FlowError`]
    pub fn new(
        client: SocketAddr,
        vip: SocketAddr,
        protocol: Protocol,
        open: bool,
    ) -> Result<Self, FlowError> {
        if client.is_ipv4() != vip.is_ipv4() {
            return Err(FlowError::TwoVersions(client, vip));
        }
        let kind = match (protocol, open) {
            (Protocol::Tcp, false) => Kind::NewConnection,
            (Protocol::Tcp, true) => Kind::OpenConnection,
            (Protocol::Udp, false) => Kind::Datagram,
            (Protocol::Udp, true) => return Err(FlowError::OpenDatagram),
        };
        Ok(Self { client, vip, protocol, kind })
    }

    /// What the packet program would look up.
    pub fn tuple(&self) -> FlowTuple {
        self.parsed().flow
    }

    /// Its destination.
    pub fn vip(&self) -> IpAddr {
        self.vip.ip()
    }

    pub(super) fn vip_key(&self) -> VipKey {
        VipKey::of(self.vip.ip())
    }

    /// What the packet program would read of the smallest such packet, its sequence number 0.
    pub(super) fn parsed(&self) -> Parsed {
        let (version, ip_header) =
            if self.vip.is_ipv4() { (IPV4, ipv4::LENGTH) } else { (IPV6, ipv6::LENGTH) };
        let (protocol, header, tcp_flags) = match (self.protocol, self.kind) {
            (Protocol::Tcp, Kind::NewConnection) => (6, tcp::LENGTH, tcp::SYN),
            (Protocol::Tcp, _) => (6, tcp::LENGTH, tcp::ACK),
            (Protocol::Udp, _) => (17, udp::LENGTH, 0),
        };
        Parsed {
            flow: FlowTuple {
                client: address_words(self.client.ip()),
                vip: address_words(self.vip.ip()),
                client_port: self.client.port().to_be(),
                service_port: self.vip.port().to_be(),
                protocol,
                version,
            },
            source: address_words(self.client.ip()),
            kind: self.kind,
            traffic_class: 0,
            hop_limit: 64,
            ip_length: (ip_header + header) as u32,
            is_fragment: false,
            is_without_ports: false,
            tcp_flags,
            sequence: 0,
            is_quoted: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use lb_common::path::parse::parse;

    use super::*;

    /// The frames that two of the flows would be, written out by hand.
    #[test]
    fn the_parsed_packet_is_that_of_the_frame() {
        let mut v4 = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
        v4.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1]);
        v4.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x02, 0, 0, 0, 0, 0, 0]);
        let syn = flow("198.51.100.7:40000", "192.0.2.1:80", Protocol::Tcp, false).unwrap();
        assert_eq!(syn.parsed(), parse(v4.as_slice()).unwrap());

        let mut v6 = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        v6.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
        v6.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        v6.extend([0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        v6.extend([0x9c, 0x40, 0, 53, 0, 8, 0, 0]);
        let datagram =
            flow("[2001:db8::7]:40000", "[2001:db8:1::1]:53", Protocol::Udp, false).unwrap();
        assert_eq!(datagram.parsed(), parse(v6.as_slice()).unwrap());
    }

    fn flow(client: &str, vip: &str, protocol: Protocol, open: bool) -> Result<Flow, FlowError> {
        Flow::new(client.parse().unwrap(), vip.parse().unwrap(), protocol, open)
    }

    #[test]
    fn two_families_and_open_datagrams_are_refused() {
        let mixed = flow("[2001:db8::7]:1", "192.0.2.1:80", Protocol::Tcp, false).unwrap_err();
        let message = "client [2001:db8::7]:1 and vip 192.0.2.1:80: different IP versions";
        assert_eq!(mixed.to_string(), message);
        let open = flow("198.51.100.7:1", "192.0.2.1:53", Protocol::Udp, true).unwrap_err();
        assert_eq!(open, FlowError::OpenDatagram);
    }
}
