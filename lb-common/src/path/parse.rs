//! Parse: from a frame to the flow it belongs to. One bounds check per header.

use super::quoted;
use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    flow_hash::FlowTuple,
    wire::{
        self, Packet, ethernet,
        icmp::{self, Icmp},
        ipv4::{self, Ipv4},
        ipv6::{self, ExtensionsEnd, Fragment, Ipv6},
        tcp, udp,
    },
};

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SYN without ACK: a new connection.
    NewConnection,
    /// Any other TCP segment: one of an open connection.
    OpenConnection,
    /// A UDP datagram.
    Datagram,
}

/// The fields of a packet that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The flow.
    pub flow: FlowTuple,
    /// Source of the packet: the client, or, of an ICMP error, whoever sent the error.
    pub source: AddressWords,
    /// Its kind.
    pub kind: Kind,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Length of the IP packet, bytes.
    pub ip_length: u32,
    /// Whether it is a fragment.
    pub is_fragment: bool,
    /// Whether it is a fragment without ports, or quotes one; the flow's ports are then 0.
    pub is_without_ports: bool,
    /// TCP control bits; 0 for UDP.
    pub tcp_flags: u8,
    /// TCP sequence number; 0 for UDP.
    pub sequence: u32,
    /// Whether it is an ICMP error; its flow is that of the packet that it quotes.
    pub is_quoted: bool,
}

/// Reads a frame's headers.
///
/// # Errors
/// The verdict of a frame that no service can have.
#[inline(always)]
pub fn parse<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    match version(packet)? {
        Version::V4 => parse_ipv4(packet),
        Version::V6 => parse_ipv6(packet),
    }
}

/// The IP version that a frame's EtherType announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Reads a frame's EtherType. A frame for a group of hosts reached the other balancers on the link too: each would send its
/// backend a copy.
///
/// # Errors
/// [`Verdict::NotIp`], [`Verdict::BroadcastFrame`].
#[inline(always)]
pub fn version<P: Packet + ?Sized>(packet: &P) -> Result<Version, Verdict> {
    let frame = packet.bytes::<{ ethernet::LENGTH }>(0).ok_or(Verdict::NotIp)?;
    let version = match ethernet::ether_type(frame) {
        ethernet::IPV4 => Version::V4,
        ethernet::IPV6 => Version::V6,
        _ => return Err(Verdict::NotIp),
    };
    if ethernet::is_to_group(frame) { Err(Verdict::BroadcastFrame) } else { Ok(version) }
}

/// Reads only where a frame goes: the address, and the IP version. `None`: it is no IP packet, or for a group of hosts.
#[inline(always)]
pub fn destination<P: Packet + ?Sized>(packet: &P) -> Option<(AddressWords, u8)> {
    Some(match version(packet).ok()? {
        Version::V4 => {
            let ip = Ipv4(packet.bytes(ethernet::LENGTH)?);
            ([0, 0, V4_MAPPED, ip.destination()], IPV4)
        }
        Version::V6 => (Ipv6(packet.bytes(ethernet::LENGTH)?).destination(), IPV6),
    })
}

/// Whether a frame asks for a neighbour or says where one is, over IPv6, and comes from this link: with the greatest hop
/// limit (RFC 4861, 7.1.1), and without extension headers, as all systems send it.
#[inline(always)]
pub fn is_neighbour_discovery<P: Packet + ?Sized>(packet: &P) -> bool {
    let Ok(Version::V6) = version(packet) else { return false };
    let Some(ip) = packet.bytes(ethernet::LENGTH) else { return false };
    Ipv6(ip).next_header() == wire::ICMPV6
        && Ipv6(ip).hop_limit() == u8::MAX
        && packet
            .bytes(ethernet::LENGTH + ipv6::LENGTH)
            .is_some_and(|message| icmp::v6::is_neighbour_discovery(Icmp(message).kind()))
}

/// Whether an IP frame that [`parse`] cannot read is one that the slow parser may read, or a ping.
#[inline(always)]
pub fn may_hold_more<P: Packet + ?Sized>(packet: &P) -> bool {
    match version(packet) {
        Ok(Version::V4) => {
            packet.bytes(ethernet::LENGTH).is_some_and(|ip| Ipv4(ip).protocol() == wire::ICMP)
        }
        Ok(Version::V6) => packet.bytes(ethernet::LENGTH).is_some_and(|ip| {
            let next = Ipv6(ip).next_header();
            next == wire::ICMPV6 || ipv6::is_extension(next)
        }),
        Err(_) => false,
    }
}

/// Reads the headers of an IPv4 frame.
///
/// # Errors
/// As [`parse`].
#[inline(always)]
pub fn parse_ipv4<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    let (parsed, header_length) = ipv4_header(packet)?;
    if parsed.flow.protocol == wire::ICMP && !parsed.is_without_ports {
        return quoted::parse_ipv4(packet, parsed, header_length);
    }
    parse_ipv4_payload(packet, parsed, header_length)
}

/// As [`parse_ipv4`]; an ICMP error is of another protocol.
///
/// # Errors
/// As [`parse`].
#[inline(always)]
pub fn parse_ipv4_without_errors<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    let (parsed, header_length) = ipv4_header(packet)?;
    parse_ipv4_payload(packet, parsed, header_length)
}

#[inline(always)]
fn parse_ipv4_payload<P: Packet + ?Sized>(
    packet: &P,
    parsed: Parsed,
    header_length: usize,
) -> Result<Parsed, Verdict> {
    if parsed.is_without_ports {
        return without_ports(parsed);
    }
    parse_transport(packet, parsed, header_length)
}

/// Reads only an IPv4 header, and returns its length too, 20 to 60 bytes.
///
/// # Errors
/// [`Verdict::Malformed`].
#[inline(always)]
pub fn ipv4_header<P: Packet + ?Sized>(packet: &P) -> Result<(Parsed, usize), Verdict> {
    let header = packet.bytes(ethernet::LENGTH).ok_or(Verdict::Malformed)?;
    let ip = Ipv4(header);
    let (header_length, length) = (ip.header_length(), usize::from(ip.total_length()));
    if ip.version() != IPV4 || header_length < ipv4::LENGTH || length < header_length {
        return Err(Verdict::Malformed);
    }
    if length > packet.length() - ethernet::LENGTH {
        return Err(Verdict::Malformed);
    }
    let source = [0, 0, V4_MAPPED, ip.source()];
    let parsed = Parsed {
        flow: FlowTuple {
            client: source,
            vip: [0, 0, V4_MAPPED, ip.destination()],
            client_port: 0,
            service_port: 0,
            protocol: ip.protocol(),
            version: IPV4,
        },
        source,
        kind: Kind::Datagram,
        traffic_class: ip.traffic_class(),
        hop_limit: ip.ttl(),
        ip_length: length as u32,
        is_fragment: ip.is_fragment(),
        is_without_ports: ip.is_later_fragment(),
        tcp_flags: 0,
        sequence: 0,
        is_quoted: false,
    };
    Ok((parsed, header_length))
}

/// Reads the headers of an IPv6 frame.
///
/// # Errors
/// As [`parse`].
#[inline(always)]
pub fn parse_ipv6<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    let parsed = ipv6_header(packet)?;
    match parsed.flow.protocol {
        wire::ICMPV6 => {
            let at = ethernet::LENGTH + ipv6::LENGTH;
            quoted::parse_ipv6(packet, parsed, at, ExtensionsEnd::of_none)
        }
        ipv6::FRAGMENT => parse_ipv6_fragment(packet, parsed),
        _ => parse_transport(packet, parsed, ipv6::LENGTH),
    }
}

/// Reads what follows an IPv6 header that has a fragment header directly behind it, as fragments in the wild do. One that
/// is cut short is of another protocol here: the slow parser says that it is malformed, if it is for a VIP.
#[inline(always)]
fn parse_ipv6_fragment<P: Packet + ?Sized>(
    packet: &P,
    mut parsed: Parsed,
) -> Result<Parsed, Verdict> {
    const HEADERS: usize = ipv6::LENGTH + ipv6::FRAGMENT_LENGTH;
    let header = packet.bytes(ethernet::LENGTH + ipv6::LENGTH).ok_or(Verdict::OtherProtocol)?;
    if (parsed.ip_length as usize) < HEADERS {
        return Err(Verdict::OtherProtocol);
    }
    let fragment = Fragment(header);
    parsed.flow.protocol = fragment.next_header();
    parsed.is_fragment = fragment.is_fragment();
    parsed.is_without_ports = fragment.is_later();
    if parsed.is_without_ports {
        return without_ports(parsed);
    }
    parse_transport(packet, parsed, HEADERS).map_err(|_| Verdict::OtherProtocol)
}

/// As [`parse_ipv6`]; an ICMP error and a fragment are of another protocol.
///
/// # Errors
/// As [`parse`].
#[inline(always)]
pub fn parse_ipv6_without_errors<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    parse_transport(packet, ipv6_header(packet)?, ipv6::LENGTH)
}

/// Reads only an IPv6 header.
///
/// # Errors
/// [`Verdict::Malformed`].
#[inline(always)]
pub fn ipv6_header<P: Packet + ?Sized>(packet: &P) -> Result<Parsed, Verdict> {
    let header = packet.bytes(ethernet::LENGTH).ok_or(Verdict::Malformed)?;
    let ip = Ipv6(header);
    let length = usize::from(ip.payload_length()) + ipv6::LENGTH;
    if ip.version() != IPV6 || length > packet.length() - ethernet::LENGTH {
        return Err(Verdict::Malformed);
    }
    let source = ip.source();
    let parsed = Parsed {
        flow: FlowTuple {
            client: source,
            vip: ip.destination(),
            client_port: 0,
            service_port: 0,
            protocol: ip.next_header(),
            version: IPV6,
        },
        source,
        kind: Kind::Datagram,
        traffic_class: ip.traffic_class(),
        hop_limit: ip.hop_limit(),
        ip_length: length as u32,
        is_fragment: false,
        is_without_ports: false,
        tcp_flags: 0,
        sequence: 0,
        is_quoted: false,
    };
    Ok(parsed)
}

/// Fills in the fields of TCP or UDP; `ip_header` is the length of all IP headers, at most that of the packet.
#[inline(always)]
pub(super) fn parse_transport<P: Packet + ?Sized>(
    packet: &P,
    mut parsed: Parsed,
    ip_header: usize,
) -> Result<Parsed, Verdict> {
    let at = ethernet::LENGTH + ip_header;
    let room = (parsed.ip_length as usize).wrapping_sub(ip_header);
    match parsed.flow.protocol {
        wire::TCP => {
            let header = packet.bytes::<{ tcp::LENGTH }>(at).ok_or(Verdict::Malformed)?;
            if room < tcp::LENGTH {
                return Err(Verdict::Malformed);
            }
            (parsed.flow.client_port, parsed.flow.service_port) = udp::ports(header);
            parsed.tcp_flags = tcp::flags(header);
            parsed.sequence = tcp::sequence(header);
            parsed.kind = match parsed.tcp_flags & (tcp::SYN | tcp::ACK) {
                tcp::SYN => Kind::NewConnection,
                _ => Kind::OpenConnection,
            };
        }
        wire::UDP => {
            let header = packet.bytes::<{ udp::LENGTH }>(at).ok_or(Verdict::Malformed)?;
            if room < udp::LENGTH {
                return Err(Verdict::Malformed);
            }
            (parsed.flow.client_port, parsed.flow.service_port) = udp::ports(header);
        }
        _ => return Err(Verdict::OtherProtocol),
    }
    Ok(parsed)
}

/// A fragment without ports.
#[inline(always)]
pub(super) fn without_ports(parsed: Parsed) -> Result<Parsed, Verdict> {
    let (kind, tcp_flags) =
        kind_without_ports(parsed.flow.protocol).ok_or(Verdict::LaterFragment)?;
    Ok(Parsed { kind, tcp_flags, ..parsed })
}

/// Kind and control bits for a packet without a readable transport header: as a RST, it changes no cell.
#[inline(always)]
pub(super) const fn kind_without_ports(protocol: u8) -> Option<(Kind, u8)> {
    match protocol {
        wire::TCP => Some((Kind::OpenConnection, tcp::RST)),
        wire::UDP => Some((Kind::Datagram, 0)),
        _ => None,
    }
}
