//! The packets.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, TcpHeader};

use super::SOURCES;
use crate::random::Random;

/// So many addresses and ports of [`SOURCES`], none twice.
pub fn sources(seed: u64, number: usize) -> Vec<SocketAddrV4> {
    sources_in(SOURCES, seed, number)
}

/// The same of another prefix.
pub fn sources_in((prefix, bits): (Ipv4Addr, u8), seed: u64, number: usize) -> Vec<SocketAddrV4> {
    let mut random = Random::new(seed);
    let mut seen = HashSet::with_capacity(number);
    let mut sources = Vec::with_capacity(number);
    while sources.len() < number {
        let host = random.below(1 << (32 - bits)) as u32;
        let port = 1024 + random.below(65536 - 1024) as u16;
        let source = SocketAddrV4::new(Ipv4Addr::from_bits(prefix.to_bits() | host), port);
        if seen.insert(source) {
            sources.push(source);
        }
    }
    sources
}

/// A SYN from its IP header on.
pub fn packet(from: SocketAddrV4, to: SocketAddrV4, sequence: u32) -> Vec<u8> {
    written(ip(from, to).tcp(from.port(), to.port(), sequence, 64_000).syn())
}

/// The first ACK after a SYN with the number before, or any later packet without data.
pub fn ack_packet(from: SocketAddrV4, to: SocketAddrV4, sequence: u32) -> Vec<u8> {
    written(ip(from, to).tcp(from.port(), to.port(), sequence, 64_000).ack(1))
}

fn ip(from: SocketAddrV4, to: SocketAddrV4) -> PacketBuilderStep<IpHeaders> {
    PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), 64)
}

#[expect(clippy::expect_used, reason = "writing to a vector cannot fail")]
fn written(builder: PacketBuilderStep<TcpHeader>) -> Vec<u8> {
    let mut packet = Vec::with_capacity(builder.size(0));
    builder.write(&mut packet, &[]).expect("a vector takes every byte");
    packet
}

/// A datagram from its IP header on.
#[expect(clippy::expect_used, reason = "writing to a vector cannot fail")]
pub fn datagram(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let builder = ip(from, to).udp(from.port(), to.port());
    let mut packet = Vec::with_capacity(builder.size(20));
    builder.write(&mut packet, &[0; 20]).expect("a vector takes every byte");
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_distinct_and_in_their_prefix() {
        let sources = sources(1, 10_000);
        assert!(sources.iter().all(|s| s.ip().octets()[..2] == [198, 18 | s.ip().octets()[1] & 1]));
        assert_eq!(sources.iter().collect::<HashSet<_>>().len(), 10_000);
    }
}
