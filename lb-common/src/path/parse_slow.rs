//! The slow parser, for packets with IPv6 extension headers other than one fragment header, for ICMPv6 errors that are or quote
//! such packets, and, in frames that had tags, for all ICMP errors and IPv6 fragments.

use super::{
    parse::{self, Parsed, without_ports},
    quoted,
};
use crate::{
    abi::verdict::Verdict,
    wire::{self, Packet, ethernet, ipv6},
};

/// Reads the headers of an IPv6 frame that [`parse::parse`] found to be of another protocol.
///
/// # Errors
/// The verdict of a frame that no service can have.
#[inline(always)]
pub fn parse_ipv6<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    let mut parsed = parse::ipv6_header(packet)?;
    let first = ethernet::LENGTH + ipv6::LENGTH;
    let end = ipv6::walk_extensions(packet, parsed.flow.protocol, first);
    let end = end.ok_or(Verdict::OtherProtocol)?;
    let headers = end.at - ethernet::LENGTH;
    if headers > parsed.ip_length as usize {
        return Err(Verdict::Malformed);
    }
    parsed.flow.protocol = end.protocol;
    parsed.is_fragment = end.is_fragment;
    parsed.is_without_ports = end.is_later_fragment;
    if end.is_later_fragment {
        return without_ports(parsed);
    }
    if end.protocol != wire::ICMPV6 {
        return parse::parse_transport(packet, parsed, headers);
    }
    quoted::parse_ipv6(packet, parsed, end.at, |next, at| ipv6::walk_extensions(packet, next, at))
}
