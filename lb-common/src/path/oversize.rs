//! Packets that do not fit their backend's MTU after encapsulation. The balancer makes no fragments, because both ends
//! would need memory for them: every outer packet has DF set.
//!
//! A sender that forbids fragments (DF, and all of IPv6) is told which size fits by an ICMP error (RFC 1191, RFC 8201).
//! A packet without DF is dropped: RFC 1191 has no error for it. The error comes from the VIP and quotes the packet,
//! from which the sender's kernel learns which connection must send less. It quotes as much as makes the error of the
//! least size that every path takes, 576 bytes of IPv4 (RFC 1812, 4.3.2.3) and 1280 bytes of IPv6 (RFC 4443, 2.4).

use super::{
    Choice, Query, Tables, encapsulate,
    icmp_reply::{Head, head},
    parse::{self, Parsed, Version},
};
use crate::{
    abi::{limiter, verdict::Verdict},
    checksum, martian,
    wire::{
        self, Packet, ethernet, icmp,
        ipv4::{self, Ipv4},
        ipv6,
    },
};

/// Largest packet that fits where a resolved query goes, bytes.
#[inline(always)]
pub fn room<T: Tables + ?Sized>(tables: &T, query: &Query, choice: &Choice) -> u16 {
    let backend = tables.backend(choice.member.backend());
    match (backend, tables.descriptor(query.version())) {
        (Some(backend), Some(descriptor)) => encapsulate::room(backend, descriptor.form()),
        _ => 0,
    }
}

/// Bytes that are quoted over IPv4.
pub const QUOTE_V4: usize = 576 - ipv4::LENGTH - icmp::LENGTH;
/// Bytes that are quoted over IPv6.
pub const QUOTE_V6: usize = 1280 - ipv6::LENGTH - icmp::LENGTH;

/// Internetwork control (RFC 1812, 4.3.2.5).
const PRECEDENCE: u8 = 0xc0;

/// The head of the answer to a frame, where packets of at most `room` bytes fit. It goes in the place of the
/// Ethernet header; of the packet [`QUOTE_V4`] or [`QUOTE_V6`] bytes stay after it.
///
/// # Errors
/// [`Verdict::TooLarge`]: no error may be sent, because the packet is of IPv4 without DF, is an ICMP message itself, or
/// comes from no single host (RFC 1122, 3.2.2; RFC 4443, 2.4); or the limit of errors is reached.
#[inline(always)]
pub fn too_large<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
    room: u16,
) -> Result<Head, Verdict> {
    let head = answer(packet, room).ok_or(Verdict::TooLarge)?;
    if tables.debit(limiter::ERRORS, tables.now()) { Ok(head) } else { Err(Verdict::TooLarge) }
}

#[inline(always)]
fn answer<P: Packet + ?Sized>(packet: &P, room: u16) -> Option<Head> {
    let macs = packet.bytes(0)?;
    match parse::version(packet).ok()? {
        Version::V4 => {
            let (parsed, _) = parse::ipv4_header(packet).ok()?;
            let header = packet.bytes(ethernet::LENGTH)?;
            // Of the fragments of a packet only the first is answered (RFC 1122, 3.2.2).
            let is_later = parsed.is_without_ports;
            if is_later || !may_be_answered(&parsed) || !Ipv4(header).may_not_be_fragmented() {
                return None;
            }
            // One sum covers 512 bytes at most.
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
            Some(Head::V4(head(macs, ethernet::IPV4, &outer.emit(), &error)))
        }
        Version::V6 => {
            let parsed = parse::ipv6_header(packet).ok()?;
            if !may_be_answered(&parsed) {
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
            Some(Head::V6(head(macs, ethernet::IPV6, &outer.emit(), &error)))
        }
    }
}

/// Whether a packet may be answered by an ICMP error.
#[inline(always)]
fn may_be_answered(parsed: &Parsed) -> bool {
    let is_icmp = matches!(parsed.flow.protocol, wire::ICMP | wire::ICMPV6);
    !is_icmp && !martian::is_martian(&parsed.source, &parsed.flow.vip, parsed.flow.version)
}
