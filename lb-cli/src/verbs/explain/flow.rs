//! The packet that a command line describes.

use std::net::SocketAddr;

use lb_common::{
    abi::service::{IPV4, IPV6, address_words},
    flow_hash::FlowTuple,
    path::{Kind, Parsed},
    wire::{ipv4, ipv6, tcp, udp},
};

use crate::{endpoint, exit::Exit, failure::Failure};

/// A transport protocol of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// The packet to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) client: SocketAddr,
    pub(super) vip: SocketAddr,
    pub(super) protocol: Protocol,
    pub(super) kind: Kind,
}

impl Flow {
    /// The packet of a command line.
    ///
    /// # Errors
    /// An endpoint is no address with a port, the two are not of one family, or UDP is said to be
    /// of an open connection.
    pub(super) fn parse(
        client: &str,
        vip: &str,
        protocol: Protocol,
        open: bool,
    ) -> Result<Self, Failure> {
        let client = endpoint::parse("client", client)?;
        let vip = endpoint::parse("vip", vip)?;
        if client.is_ipv4() != vip.is_ipv4() {
            let message = format!("client {client} and vip {vip}: they are of two IP versions");
            return Err(Failure::new(Exit::Usage, message)
                .hint("give both as IPv4 or both as IPv6 addresses"));
        }
        let kind = match (protocol, open) {
            (Protocol::Tcp, false) => Kind::NewConnection,
            (Protocol::Tcp, true) => Kind::OpenConnection,
            (Protocol::Udp, false) => Kind::Datagram,
            (Protocol::Udp, true) => {
                let message = "protocol udp: it has no connections that could be open";
                return Err(Failure::new(Exit::Usage, message)
                    .hint("leave --open away: a datagram of a flow that is remembered is told from a new one"));
            }
        };
        Ok(Self { client, vip, protocol, kind })
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
            kind: self.kind,
            traffic_class: 0,
            hop_limit: 64,
            ip_length: (ip_header + header) as u32,
            is_fragment: false,
            tcp_flags,
            sequence: 0,
        }
    }

    pub(super) fn protocol_name(&self) -> &'static str {
        match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }

    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::NewConnection => "new connection",
            Kind::OpenConnection => "open connection",
            Kind::Datagram => "datagram",
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
        let flow = Flow::parse("198.51.100.7:40000", "192.0.2.1:80", Protocol::Tcp, false).unwrap();
        assert_eq!(flow.parsed(), parse(v4.as_slice()).unwrap());

        let mut v6 = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        v6.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
        v6.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        v6.extend([0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        v6.extend([0x9c, 0x40, 0, 53, 0, 8, 0, 0]);
        let flow =
            Flow::parse("[2001:db8::7]:40000", "[2001:db8:1::1]:53", Protocol::Udp, false).unwrap();
        assert_eq!(flow.parsed(), parse(v6.as_slice()).unwrap());
    }

    #[test]
    fn two_families_and_open_datagrams_are_refused() {
        let mixed = Flow::parse("[2001:db8::7]:1", "192.0.2.1:80", Protocol::Tcp, false);
        assert_eq!(
            mixed.unwrap_err().to_string(),
            "error: client [2001:db8::7]:1 and vip 192.0.2.1:80: they are of two IP versions\n\
             hint: give both as IPv4 or both as IPv6 addresses"
        );
        let open = Flow::parse("198.51.100.7:1", "192.0.2.1:53", Protocol::Udp, true);
        assert_eq!(open.unwrap_err().exit, Exit::Usage);
    }
}
