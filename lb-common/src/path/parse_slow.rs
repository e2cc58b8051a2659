//! The slow parser, for packets whose ports do not directly follow the IP header.
//!
//! An ICMP error belongs to the flow of the packet that it quotes, which a backend sent with the VIP as its source.
//! The error goes to the backend of that flow unchanged, because its socket must see it (RFC 1122, 4.2.3.9;
//! RFC 8201).

use super::parse::{self, Parsed, Version, kind_without_ports, without_ports};
use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    flow_hash::FlowTuple,
    wire::{
        self, Packet, ethernet, icmp,
        icmp::Icmp,
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        udp,
    },
};

/// Reads the headers of a frame that [`parse::parse`] found to be of another protocol.
///
/// # Errors
/// The verdict of a frame that no service can have.
#[inline(always)]
pub fn parse<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    match parse::version(packet)? {
        Version::V4 => parse_ipv4(packet),
        Version::V6 => parse_ipv6(packet),
    }
}

/// As [`parse()`], of an IPv4 frame.
///
/// # Errors
/// As [`parse()`].
#[inline(always)]
pub fn parse_ipv4<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    let (parsed, header_length) = parse::ipv4_header(packet)?;
    if parsed.flow.protocol != wire::ICMP || parsed.is_fragment {
        return Err(Verdict::OtherProtocol);
    }
    let at = ethernet::LENGTH + header_length;
    let error = Icmp(packet.bytes(at).ok_or(Verdict::OtherProtocol)?);
    if !error.is_error_v4() {
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

/// As [`parse()`], of an IPv6 frame.
///
/// # Errors
/// As [`parse()`].
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
    let error = Icmp(packet.bytes(end.at).ok_or(Verdict::OtherProtocol)?);
    if parsed.is_fragment || !error.is_error_v6() {
        return Err(Verdict::OtherProtocol);
    }
    let at = end.at + icmp::LENGTH;
    let ip = Ipv6(packet.bytes(at).ok_or(Verdict::OtherProtocol)?);
    let end = ipv6::walk_extensions(packet, ip.next_header(), at + ipv6::LENGTH);
    let end = end.ok_or(Verdict::OtherProtocol)?;
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
