//! ICMP replies that the packet path sends itself, in the name of a VIP. Here: to echo requests, so that a VIP can be
//! pinged whatever its backends do (RFC 792; RFC 4443, 4.2). The other kind are [`super::icmp_error`]s.

use super::{
    Tables,
    answers::AnswerLimits,
    parse::{self, Parsed, Version},
    unserved,
};
use crate::{
    abi::{limiter, service::IPV4, verdict::Verdict},
    checksum,
    flow_hash::FlowTuple,
    martian,
    wire::{
        self, Packet, ethernet,
        icmp::{self, Icmp},
        ipv4, ipv6,
    },
};

/// Length of the headers of an answer over IPv4, Ethernet's included, bytes.
pub const HEAD_V4: usize = ethernet::LENGTH + ipv4::LENGTH + icmp::LENGTH;
/// Length of the headers of an answer over IPv6, Ethernet's included, bytes.
pub const HEAD_V6: usize = ethernet::LENGTH + ipv6::LENGTH + icmp::LENGTH;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Over IPv4.
    V4([u8; HEAD_V4]),
    /// Over IPv6.
    V6([u8; HEAD_V6]),
}

/// The headers of a frame that answers the one with `macs`.
#[inline(always)]
pub(super) fn head<const IP: usize, const ALL: usize>(
    macs: &[u8; ethernet::LENGTH],
    ether_type: [u8; 2],
    ip: &[u8; IP],
    message: &[u8; icmp::LENGTH],
) -> [u8; ALL] {
    const { assert!(ALL == ethernet::LENGTH + IP + icmp::LENGTH) };
    let (sender, host) = (ethernet::source(macs), ethernet::destination(macs));
    let mut head = [0; ALL];
    head[..ethernet::LENGTH].copy_from_slice(&ethernet::header(sender, host, ether_type));
    head[ethernet::LENGTH..][..IP].copy_from_slice(ip);
    head[ethernet::LENGTH + IP..].copy_from_slice(message);
    head
}

/// Whether a frame of no flow is an echo request for a VIP, which [`turn_v4`] or [`turn_v6`] answers; returns its IP
/// version.
///
/// # Errors
/// What [`unserved::judge`] makes of [`Verdict::OtherProtocol`]: it is none, or has IP options or extension headers, or is a
/// fragment. [`Verdict::MartianSource`], [`Verdict::EchoLimited`], [`Verdict::EchoChecksum`].
#[inline(always)]
pub fn echo<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
) -> Result<Version, Verdict> {
    let Some(request) = request(packet) else {
        return Err(unserved::judge(packet, tables, Verdict::OtherProtocol));
    };
    let FlowTuple { client, vip, version, .. } = request.flow;
    if tables.vip(&vip, version).is_none() {
        return Err(Verdict::NotOurs);
    }
    if martian::is_martian(&client, &vip, version) {
        return Err(Verdict::MartianSource);
    }
    // A flood costs no more than this look, and what is damaged takes nothing from the limits.
    let now = tables.now();
    let limits = AnswerLimits::new(tables, limiter::ECHOES, &request.flow);
    if tables.is_answer_full(&limits, now) {
        return Err(Verdict::EchoLimited);
    }
    if !is_intact(packet, &request) {
        return Err(Verdict::EchoChecksum);
    }
    if !tables.debit_answer(&limits, now) {
        return Err(Verdict::EchoLimited);
    }
    Ok(if version == IPV4 { Version::V4 } else { Version::V6 })
}

/// Whether the checksums of an echo request are right, which has neither IP options nor extension headers.
#[inline(always)]
fn is_intact<P: Packet + ?Sized>(packet: &P, request: &Parsed) -> bool {
    let FlowTuple { client, vip, version, .. } = request.flow;
    if version == IPV4 {
        let (at, length) =
            (ethernet::LENGTH + ipv4::LENGTH, request.ip_length as usize - ipv4::LENGTH);
        return packet.bytes(ethernet::LENGTH).is_some_and(ipv4::is_intact)
            && packet.has_right_checksum(at, length, 0);
    }
    let (at, length) = (ethernet::LENGTH + ipv6::LENGTH, request.ip_length as usize - ipv6::LENGTH);
    let pseudo = checksum::pseudo_header_v6(&client, &vip, (length as u16, wire::ICMPV6));
    packet.has_right_checksum(at, length, pseudo)
}

/// The headers of a frame that is an echo request.
#[inline(always)]
fn request<P: Packet + ?Sized>(packet: &P) -> Option<Parsed> {
    let (parsed, header, protocol, request) = match parse::version(packet).ok()? {
        Version::V4 => {
            let (parsed, header) = parse::ipv4_header(packet).ok()?;
            if header != ipv4::LENGTH {
                return None;
            }
            (parsed, ipv4::LENGTH, wire::ICMP, icmp::v4::ECHO_REQUEST)
        }
        Version::V6 => {
            (parse::ipv6_header(packet).ok()?, ipv6::LENGTH, wire::ICMPV6, icmp::v6::ECHO_REQUEST)
        }
    };
    let whole = parsed.flow.protocol == protocol
        && !parsed.is_fragment
        && parsed.ip_length as usize >= header + icmp::LENGTH;
    if !whole {
        return None;
    }
    let message = Icmp(packet.bytes(ethernet::LENGTH + header)?);
    let is_request = message.kind() == request && message.code() == 0;
    is_request.then_some(parsed)
}

/// Turns the headers of an echo request over IPv4 into those of its answer; the data stays. `None`: it is none.
#[inline(always)]
pub fn turn_v4(head: &mut [u8; HEAD_V4]) -> Option<()> {
    ethernet::turn(head.first_chunk_mut()?);
    ipv4::turn(head.get_mut(ethernet::LENGTH..)?.first_chunk_mut()?);
    icmp::set_kind(head.last_chunk_mut()?, icmp::v4::ECHO_REPLY);
    Some(())
}

/// The same over IPv6.
#[inline(always)]
pub fn turn_v6(head: &mut [u8; HEAD_V6]) -> Option<()> {
    ethernet::turn(head.first_chunk_mut()?);
    ipv6::turn(head.get_mut(ethernet::LENGTH..)?.first_chunk_mut()?);
    icmp::set_kind(head.last_chunk_mut()?, icmp::v6::ECHO_REPLY);
    Some(())
}
