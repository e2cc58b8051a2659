//! The answer to a packet that is too large: its sender is told how much fits (RFC 1191, RFC 8201).
//!
//! The answer comes from the VIP, and quotes the packet: from it the sender's kernel learns which
//! connection must send less. Of the packet so much is quoted as makes the answer of the least size that
//! every path takes, 576 bytes of IPv4 (RFC 1812, 4.3.2.3) and 1280 bytes of IPv6 (RFC 4443, 2.4).

use super::parse::{self, Parsed, Version};
use crate::{
    abi::service::{AddressWords, IPV4},
    checksum,
    wire::{
        self, ethernet, icmp,
        ipv4::{self, Ipv4},
        ipv6,
        packet::Packet,
    },
};

/// Length of the headers of an answer over IPv4, Ethernet's included, bytes.
pub const HEAD_V4: usize = ethernet::LENGTH + ipv4::LENGTH + icmp::LENGTH;
/// Length of the headers of an answer over IPv6, Ethernet's included, bytes.
pub const HEAD_V6: usize = ethernet::LENGTH + ipv6::LENGTH + icmp::LENGTH;
/// Bytes that are quoted over IPv4.
pub const QUOTE_V4: usize = 576 - ipv4::LENGTH - icmp::LENGTH;
/// Bytes that are quoted over IPv6.
pub const QUOTE_V6: usize = 1280 - ipv6::LENGTH - icmp::LENGTH;

/// Internetwork control (RFC 1812, 4.3.2.5).
const PRECEDENCE: u8 = 0xc0;

/// The new head of the frame, in place of the Ethernet header; after the quote it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// "Fragmentation needed", with [`QUOTE_V4`] bytes of the packet.
    V4([u8; HEAD_V4]),
    /// "Packet too big", with [`QUOTE_V6`] bytes of the packet.
    V6([u8; HEAD_V6]),
}

/// The answer to a frame, where packets of at most `room` bytes fit. `None`: nobody may be told, because
/// the packet may be fragmented, is an ICMP message itself, or comes from no single host (RFC 1122, 3.2.2;
/// RFC 4443, 2.4).
#[inline(always)]
pub fn too_large<P: Packet + ?Sized>(packet: &P, room: u16) -> Option<Answer> {
    let macs = packet.bytes(0)?;
    match parse::version(packet).ok()? {
        Version::V4 => {
            let (parsed, _) = parse::ipv4_header(packet).ok()?;
            let header = packet.bytes(ethernet::LENGTH)?;
            if !may_be_told(&parsed) || !Ipv4(header).may_not_be_fragmented() {
                return None;
            }
            // At most 512 bytes are summed up at once.
            let quote = [
                packet.sum::<512>(ethernet::LENGTH)?,
                packet.sum::<{ QUOTE_V4 - 512 }>(ethernet::LENGTH + 512)?,
            ];
            let mut error = icmp::v4::fragmentation_needed(room);
            icmp::seal(&mut error, u64::from(quote[0]) + u64::from(quote[1]));
            let outer = ipv4::Outer {
                source: parsed.flow.vip[3],
                destination: parsed.flow.client[3],
                traffic_class: PRECEDENCE,
                protocol: wire::ICMP,
                payload: (icmp::LENGTH + QUOTE_V4) as u16,
            };
            Some(Answer::V4(head(macs, ethernet::IPV4, &outer.emit(), &error)))
        }
        Version::V6 => {
            let parsed = parse::ipv6_header(packet).ok()?;
            if !may_be_told(&parsed) {
                return None;
            }
            let quote = [
                packet.sum::<512>(ethernet::LENGTH)?,
                packet.sum::<512>(ethernet::LENGTH + 512)?,
                packet.sum::<{ QUOTE_V6 - 1024 }>(ethernet::LENGTH + 1024)?,
            ];
            let length = (icmp::LENGTH + QUOTE_V6) as u16;
            let pseudo = checksum::pseudo_header_v6(
                &parsed.flow.vip,
                &parsed.flow.client,
                (length, wire::ICMPV6),
            );
            let mut error = icmp::v6::packet_too_big(room);
            let quote = quote.iter().map(|&sum| u64::from(sum)).sum::<u64>();
            icmp::seal(&mut error, quote + pseudo);
            let outer = ipv6::Outer {
                source: parsed.flow.vip,
                destination: parsed.flow.client,
                traffic_class: 0,
                flow_label: 0,
                next_header: wire::ICMPV6,
                payload: length,
            };
            Some(Answer::V6(head(macs, ethernet::IPV6, &outer.emit(), &error)))
        }
    }
}

/// The headers one after the other; the frame goes back to where that with `macs` came from.
#[inline(always)]
fn head<const IP: usize, const ALL: usize>(
    macs: &[u8; ethernet::LENGTH],
    ether_type: [u8; 2],
    ip: &[u8; IP],
    error: &[u8; icmp::LENGTH],
) -> [u8; ALL] {
    const { assert!(ALL == ethernet::LENGTH + IP + icmp::LENGTH) };
    let (sender, host) = (ethernet::source(macs), ethernet::destination(macs));
    let mut head = [0; ALL];
    head[..ethernet::LENGTH].copy_from_slice(&ethernet::header(sender, host, ether_type));
    head[ethernet::LENGTH..][..IP].copy_from_slice(ip);
    head[ethernet::LENGTH + IP..].copy_from_slice(error);
    head
}

/// Whether somebody may be told of what became of a packet.
#[inline(always)]
fn may_be_told(parsed: &Parsed) -> bool {
    let is_icmp = matches!(parsed.flow.protocol, wire::ICMP | wire::ICMPV6);
    !is_icmp && is_one_host(&parsed.flow.client, parsed.flow.version)
}

/// Whether an address is one that a host elsewhere may have: not this network's or host's, nor a group's.
#[inline(always)]
fn is_one_host(address: &AddressWords, version: u8) -> bool {
    let last = address[3].to_ne_bytes();
    if version == IPV4 {
        return !matches!(last[0], 0 | 127 | 224..);
    }
    let front = address[0] | address[1] | address[2];
    // Neither unspecified nor loopback (RFC 4291, 2.5.2 and 2.5.3), nor multicast.
    let is_lowest = front == 0 && u32::from_be_bytes(last) <= 1;
    !is_lowest && address[0].to_ne_bytes()[0] != 0xff
}
