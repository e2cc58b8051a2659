//! The packet a case repeats, with room for the outer header that the wrapper takes off.

use etherparse::{IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, PacketBuilder};

/// What a case sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A TCP segment of an open connection.
    Open,
    /// A SYN.
    Syn,
    /// A UDP datagram.
    Udp,
    /// A TCP segment to an address that is no VIP.
    NotOurs,
    /// An ESP packet to an address that is no VIP.
    HostProtocol,
    /// A SYN to a port of a VIP that no service has.
    UnservedPort,
    /// An ESP packet to a VIP.
    UnservedProtocol,
    /// A fragment without ports, to a VIP.
    LaterFragment,
    /// An ICMP error to a VIP, about a packet of an open connection: of one, whatever the number of flows, which are those of
    /// the router that says so. IPv4 only.
    Error,
}

impl Packet {
    /// Whether no service takes it.
    pub const fn is_unserved(self) -> bool {
        !matches!(self, Self::Open | Self::Syn | Self::Udp | Self::Error)
    }

    /// Whether it is for a VIP.
    const fn is_for_vip(self) -> bool {
        !matches!(self, Self::NotOurs | Self::HostProtocol)
    }
}

/// VIPs of the bench.
pub const VIP4: [u8; 4] = [198, 51, 100, 1];
/// VIP of the IPv6 cases, 2001:db8::80.
pub const VIP6: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];

/// `grown` zero bytes, then the frame: 64 bytes for IPv4, 84 for IPv6. A connection's SYN has the
/// sequence number given with the packet, its further packets the next one.
#[expect(clippy::expect_used, reason = "writing to a vector cannot fail")]
pub fn template((packet, number): (Packet, u32), version: u8, grown: usize) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [2; 6]);
    let builder = if packet == Packet::Error {
        // The bench writes the client's port behind 20 bytes of header: into an option, which this packet has there.
        let mut header =
            Ipv4Header::new(0, 64, IpNumber::ICMP, [10, 0, 0, 1], VIP4).expect("short");
        header.options = [1; 4].into();
        ethernet.ip(IpHeaders::Ipv4(header, Ipv4Extensions::default()))
    } else if version == 4 {
        let vip = if packet.is_for_vip() { VIP4 } else { [198, 51, 100, 250] };
        ethernet.ipv4([10, 0, 0, 1], vip, 64)
    } else {
        let vip = if packet.is_for_vip() { VIP6 } else { [0x20; 16] };
        ethernet.ipv6([0xfd; 16], vip, 64)
    };
    let mut frame = vec![0; grown];
    let written = match packet {
        Packet::Udp => builder.udp(4711, 80).write(&mut frame, &[0; 22]),
        Packet::Syn => builder.tcp(4711, 80, number, 1000).syn().write(&mut frame, &[0; 10]),
        Packet::UnservedPort => {
            builder.tcp(4711, 81, number, 1000).syn().write(&mut frame, &[0; 10])
        }
        Packet::HostProtocol | Packet::UnservedProtocol => {
            builder.write(&mut frame, IpNumber::ENCAPSULATING_SECURITY_PAYLOAD, &[0; 30])
        }
        Packet::LaterFragment if version == 6 => {
            // A fragment header (RFC 8200, 4.5) of a datagram whose eighth byte is its first, and 22 bytes.
            let mut payload = [0; 30];
            payload[..8].copy_from_slice(&[17, 0, 0, 8, 0, 0, 0, 1]);
            builder.write(&mut frame, IpNumber::IPV6_FRAGMENTATION_HEADER, &payload)
        }
        Packet::LaterFragment => {
            let written = builder.udp(4711, 80).write(&mut frame, &[0; 22]);
            // Its first byte is the eighth.
            frame[grown + ETHERNET + 7] = 1;
            written
        }
        Packet::Error => builder.write(&mut frame, IpNumber::ICMP, &error()),
        Packet::Open | Packet::NotOurs => {
            builder.tcp(4711, 80, number + 1, 1000).ack(1).write(&mut frame, &[0; 10])
        }
    };
    written.expect("a vector takes every byte");
    frame
}

const ETHERNET: usize = 14;

/// "Fragmentation needed" (RFC 1191) about what a VIP sent to 10.0.0.1: an IPv4 header and eight bytes of TCP.
fn error() -> Vec<u8> {
    let mut message = vec![3, 4, 0, 0, 0, 0, 0x05, 0x14];
    message.extend([0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0]);
    message.extend(VIP4);
    message.extend([10, 0, 0, 1, 0, 80, 0x12, 0x67, 0, 0, 0, 1]);
    message
}
