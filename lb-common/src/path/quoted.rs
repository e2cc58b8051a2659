//! ICMP errors, as packets of the flow that they are about.
//!
//! An ICMP error belongs to the flow of the packet that it quotes, which a backend sent with the VIP as its source.
//! The error goes to the backend of that flow unchanged, because its socket must see it (RFC 1122, 4.2.3.9;
//! RFC 8201).

use super::parse::{Parsed, kind_without_ports};
use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    flow_hash::FlowTuple,
    wire::{
        Packet, ethernet, icmp,
        icmp::Icmp,
        ipv4::{self, Ipv4},
        ipv6::{self, ExtensionsEnd, Ipv6},
        udp,
    },
};

/// Reads an ICMP message behind an IPv4 header of so many bytes.
///
/// # Errors
/// [`Verdict::OtherProtocol`]: it is no error about a packet from its destination.
#[inline(always)]
pub(super) fn parse_ipv4<P: Packet + ?Sized>(
    packet: &P,
    parsed: Parsed,
    header_length: usize,
) -> Result<Parsed, Verdict> {
    let at = ethernet::LENGTH + header_length;
    let error = Icmp(packet.bytes(at).ok_or(Verdict::OtherProtocol)?);
    if parsed.is_fragment || !error.is_error_v4() {
        return Err(Verdict::OtherProtocol);
    }
    let at = at + icmp::LENGTH;
    let ip = Ipv4(packet.bytes(at).ok_or(Verdict::OtherProtocol)?);
    let header_length = ip.header_length();
    if ip.version() != IPV4 || header_length < ipv4::LENGTH {
        return Err(Verdict::OtherProtocol);
    }
    let quoted = Quoted {
        source: [0, 0, V4_MAPPED, ip.source()],
        destination: [0, 0, V4_MAPPED, ip.destination()],
        protocol: ip.protocol(),
        is_without_ports: ip.is_later_fragment(),
        at: at + header_length,
    };
    from_quoted(packet, parsed, &quoted)
}

/// Reads an ICMPv6 message at `at`; `walk` finds the end of the quoted packet's extension headers, of which the first is of
/// a kind and at a place.
///
/// # Errors
/// As [`parse_ipv4`].
#[inline(always)]
pub(super) fn parse_ipv6<P: Packet + ?Sized>(
    packet: &P,
    parsed: Parsed,
    at: usize,
    walk: impl FnOnce(u8, usize) -> Option<ExtensionsEnd>,
) -> Result<Parsed, Verdict> {
    let error = Icmp(packet.bytes(at).ok_or(Verdict::OtherProtocol)?);
    if parsed.is_fragment || !error.is_error_v6() {
        return Err(Verdict::OtherProtocol);
    }
    let at = at + icmp::LENGTH;
    let ip = Ipv6(packet.bytes(at).ok_or(Verdict::OtherProtocol)?);
    let end = walk(ip.next_header(), at + ipv6::LENGTH).ok_or(Verdict::OtherProtocol)?;
    if ip.version() != IPV6 {
        return Err(Verdict::OtherProtocol);
    }
    let quoted = Quoted {
        source: ip.source(),
        destination: ip.destination(),
        protocol: end.protocol,
        is_without_ports: end.is_later_fragment,
        at: end.at,
    };
    from_quoted(packet, parsed, &quoted)
}

/// What an error quotes: a packet from a VIP to a client.
struct Quoted {
    source: AddressWords,
    destination: AddressWords,
    protocol: u8,
    /// Whether it is a fragment without ports.
    is_without_ports: bool,
    /// Where its TCP or UDP header begins, of which at least eight bytes are quoted.
    at: usize,
}

/// An error, as a packet of the flow that the quoted packet belongs to, in the client's direction.
#[inline(always)]
fn from_quoted<P: Packet + ?Sized>(
    packet: &P,
    error: Parsed,
    quoted: &Quoted,
) -> Result<Parsed, Verdict> {
    let (kind, tcp_flags) = kind_without_ports(quoted.protocol).ok_or(Verdict::OtherProtocol)?;
    let header = if quoted.is_without_ports { 0 } else { udp::LENGTH };
    let end = ethernet::LENGTH + error.ip_length as usize;
    // An error goes to the source of the packet that it quotes; any other is forged.
    if quoted.at + header > end || quoted.source != error.flow.vip {
        return Err(Verdict::OtherProtocol);
    }
    let seen = packet.bytes::<{ udp::LENGTH }>(quoted.at).map(udp::ports);
    let (service_port, client_port) = match seen {
        _ if quoted.is_without_ports => (0, 0),
        Some(ports) => ports,
        None => return Err(Verdict::OtherProtocol),
    };
    let flow = FlowTuple {
        client: quoted.destination,
        vip: quoted.source,
        client_port,
        service_port,
        protocol: quoted.protocol,
        version: error.flow.version,
    };
    let is_without_ports = quoted.is_without_ports;
    Ok(Parsed { flow, kind, tcp_flags, is_without_ports, is_quoted: true, ..error })
}
