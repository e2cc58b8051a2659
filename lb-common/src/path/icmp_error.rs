//! ICMP errors about packets that the balancer cannot forward.
//!
//! An error comes from the VIP and quotes the packet as it came, from which the sender's kernel learns which connection it
//! is about. It quotes as much as fits into the least size that every path takes, 576 bytes of IPv4 (RFC 1812, 4.3.2.3) and
//! 1280 bytes of IPv6 (RFC 4443, 2.4).
//!
//! None is sent about an ICMP error, a fragment other than the first, a frame for a group of hosts or a source that no router
//! forwards (RFC 1122, 3.2.2; RFC 4443, 2.4), nor about an IPv4 header that was damaged on the way (RFC 1812, 5.2.2).

use super::{
    Tables,
    answers::AnswerLimits,
    icmp_reply::{Head, head},
    parse::{self, Parsed, Version},
};
use crate::{
    abi::{limiter, verdict::Verdict},
    checksum,
    flow_hash::FlowTuple,
    martian,
    wire::{
        self, Packet, ethernet, icmp,
        ipv4::{self, Ipv4},
        ipv6,
    },
};

/// Most bytes that are quoted over IPv4.
pub const QUOTE_V4: usize = 576 - ipv4::LENGTH - icmp::LENGTH;
/// Most bytes that are quoted over IPv6.
pub const QUOTE_V6: usize = 1280 - ipv6::LENGTH - icmp::LENGTH;

/// Internetwork control (RFC 1812, 4.3.2.5).
const PRECEDENCE: u8 = 0xc0;

/// An error to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Its head, which goes in the place of the Ethernet header.
    pub head: Head,
    /// Bytes of the packet that stay after it.
    pub quoted: usize,
}

/// Why a packet cannot be forwarded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// Packets of so many bytes fit.
    TooLarge(u16),
    /// TTL or hop limit would reach zero.
    TimeExceeded,
}

impl Cause {
    #[inline(always)]
    const fn message_v4(self) -> [u8; icmp::LENGTH] {
        match self {
            Self::TooLarge(room) => icmp::v4::fragmentation_needed(room),
            Self::TimeExceeded => icmp::v4::time_exceeded(),
        }
    }

    #[inline(always)]
    const fn message_v6(self) -> [u8; icmp::LENGTH] {
        match self {
            Self::TooLarge(room) => icmp::v6::packet_too_big(room),
            Self::TimeExceeded => icmp::v6::time_exceeded(),
        }
    }

    /// Whether IPv4 has an error for it: "fragmentation needed" is only for packets with DF (RFC 1191, 3).
    #[inline(always)]
    fn is_told(self, ip: Ipv4<'_>) -> bool {
        matches!(self, Self::TimeExceeded) || ip.may_not_be_fragmented()
    }
}

impl Parsed {
    /// Whether an ICMP error about it may be sent, as far as the parser knows: it is no ICMP error and no fragment but the
    /// first.
    #[inline(always)]
    pub const fn may_be_answered(&self) -> bool {
        !self.is_quoted && !self.is_without_ports
    }
}

/// The answer to a frame at its last hop, which [`Parsed::may_be_answered`].
///
/// # Errors
/// [`Verdict::HopLimitExceeded`]: no error may be sent, or a limit of errors is reached.
#[inline(always)]
pub fn time_exceeded<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
) -> Result<IcmpError, Verdict> {
    within_limits(packet, tables, Cause::TimeExceeded).ok_or(Verdict::HopLimitExceeded)
}

/// The error about a frame; `None`: there is none, or a limit of errors is reached.
#[inline(always)]
pub(super) fn within_limits<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
    cause: Cause,
) -> Option<IcmpError> {
    let (flow, error) = build(packet, cause)?;
    let limits = AnswerLimits::new(tables, limiter::ERRORS, &flow);
    tables.debit_answer(&limits, tables.now()).then_some(error)
}

/// The error about a frame, and the frame's addresses; `None`: there is none.
#[inline(always)]
fn build<P: Packet + ?Sized>(packet: &P, cause: Cause) -> Option<(FlowTuple, IcmpError)> {
    match parse::version(packet).ok()? {
        Version::V4 => build_v4(packet, cause),
        Version::V6 => build_v6(packet, cause),
    }
}

#[inline(always)]
fn build_v4<P: Packet + ?Sized>(packet: &P, cause: Cause) -> Option<(FlowTuple, IcmpError)> {
    let (parsed, header_length) = parse::ipv4_header(packet).ok()?;
    let macs = packet.bytes(0)?;
    let may_be_told = cause.is_told(Ipv4(packet.bytes(ethernet::LENGTH)?));
    let is_later = parsed.is_without_ports;
    if is_later || !may_be_told || !has_single_sender(&parsed) {
        return None;
    }
    if !packet.has_right_checksum(ethernet::LENGTH, header_length, 0) {
        return None;
    }
    let quoted = (parsed.ip_length as usize).min(QUOTE_V4);
    let mut message = cause.message_v4();
    icmp::seal(&mut message, packet.sum_up(ethernet::LENGTH, quoted)?.into());
    let outer = ipv4::Outer {
        source: parsed.flow.vip[3],
        destination: parsed.flow.client[3],
        traffic_class: PRECEDENCE,
        protocol: wire::ICMP,
        payload: (icmp::LENGTH + quoted) as u16,
    };
    let head = Head::V4(head(macs, ethernet::IPV4, &outer.emit(), &message));
    Some((parsed.flow, IcmpError { head, quoted }))
}

#[inline(always)]
fn build_v6<P: Packet + ?Sized>(packet: &P, cause: Cause) -> Option<(FlowTuple, IcmpError)> {
    let parsed = parse::ipv6_header(packet).ok()?;
    let macs = packet.bytes(0)?;
    if !has_single_sender(&parsed) {
        return None;
    }
    let quoted = (parsed.ip_length as usize).min(QUOTE_V6);
    let length = (icmp::LENGTH + quoted) as u16;
    let (vip, client) = (parsed.flow.vip, parsed.flow.client);
    let pseudo = checksum::pseudo_header_v6(&vip, &client, (length, wire::ICMPV6));
    let mut message = cause.message_v6();
    icmp::seal(&mut message, u64::from(packet.sum_up(ethernet::LENGTH, quoted)?) + pseudo);
    let outer = ipv6::Outer {
        source: vip,
        destination: client,
        traffic_class: 0,
        flow_label: 0,
        next_header: wire::ICMPV6,
        payload: length,
    };
    let head = Head::V6(head(macs, ethernet::IPV6, &outer.emit(), &message));
    Some((parsed.flow, IcmpError { head, quoted }))
}

/// Whether a packet is no ICMP message, and its source can be one host's.
#[inline(always)]
fn has_single_sender(parsed: &Parsed) -> bool {
    let is_icmp = matches!(parsed.flow.protocol, wire::ICMP | wire::ICMPV6);
    !is_icmp && !martian::is_martian(&parsed.source, &parsed.flow.vip, parsed.flow.version)
}
