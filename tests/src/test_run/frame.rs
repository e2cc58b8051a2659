//! The packet a case repeats, with room for the outer header that the wrapper takes off.

use etherparse::PacketBuilder;

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
    let elsewhere = packet == Packet::NotOurs;
    let builder = if version == 4 {
        let vip = if elsewhere { [198, 51, 100, 250] } else { VIP4 };
        ethernet.ipv4([10, 0, 0, 1], vip, 64)
    } else {
        let vip = if elsewhere { [0x20; 16] } else { VIP6 };
        ethernet.ipv6([0xfd; 16], vip, 64)
    };
    let mut frame = vec![0; grown];
    let written = match packet {
        Packet::Udp => builder.udp(4711, 80).write(&mut frame, &[0; 22]),
        Packet::Syn => builder.tcp(4711, 80, number, 1000).syn().write(&mut frame, &[0; 10]),
        Packet::Open | Packet::NotOurs => {
            builder.tcp(4711, 80, number + 1, 1000).ack(1).write(&mut frame, &[0; 10])
        }
    };
    written.expect("a vector takes every byte");
    frame
}
