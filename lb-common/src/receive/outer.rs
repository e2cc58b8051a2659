//! The outer headers: which packets are tunnel packets of the kind that balancers make.

use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    wire::{
        IP_IN_IP, IPV6_IN_IP, Packet, UDP, ethernet,
        gue::{self, Gue},
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        udp::{self, Udp},
    },
};

/// The fields of an outer header.
pub(super) struct Outer {
    pub(super) source: AddressWords,
    pub(super) destination: AddressWords,
    /// IP version.
    pub(super) version: u8,
    pub(super) traffic_class: u8,
    pub(super) protocol: u8,
    /// Its length, bytes; with the headers of a UDP tunnel.
    pub(super) header: usize,
    /// Length of what is in it, bytes.
    pub(super) payload: usize,
    /// The tunnel is in UDP.
    pub(super) is_udp: bool,
}

/// The outer header of a frame.
///
/// # Errors
/// [`Verdict::NotTunnel`]: balancers send no such packets, and none to a group of hosts.
#[inline(always)]
pub(super) fn read<P: Packet + ?Sized>(packet: &P) -> Result<Outer, Verdict> {
    let frame = packet.bytes::<{ ethernet::LENGTH }>(0).ok_or(Verdict::NotTunnel)?;
    match ethernet::ether_type(frame) {
        _ if ethernet::is_to_group(frame) => Err(Verdict::NotTunnel),
        ethernet::IPV4 => read_v4(packet),
        ethernet::IPV6 => read_v6(packet),
        _ => Err(Verdict::NotTunnel),
    }
}

#[inline(always)]
fn read_v4<P: Packet + ?Sized>(packet: &P) -> Result<Outer, Verdict> {
    let ip = Ipv4(packet.bytes(ethernet::LENGTH).ok_or(Verdict::NotTunnel)?);
    let length = usize::from(ip.total_length());
    let whole =
        ip.version() == IPV4 && !ip.is_fragment() && length <= packet.length() - ethernet::LENGTH;
    // Balancers send no options; a tunnel with options or in fragments is another's.
    if ip.header_length() != ipv4::LENGTH || length < ipv4::LENGTH || !whole {
        return Err(Verdict::NotTunnel);
    }
    Ok(Outer {
        source: [0, 0, V4_MAPPED, ip.source()],
        destination: [0, 0, V4_MAPPED, ip.destination()],
        version: IPV4,
        traffic_class: ip.traffic_class(),
        protocol: ip.protocol(),
        header: ipv4::LENGTH,
        payload: length - ipv4::LENGTH,
        is_udp: false,
    })
}

#[inline(always)]
fn read_v6<P: Packet + ?Sized>(packet: &P) -> Result<Outer, Verdict> {
    let ip = Ipv6(packet.bytes(ethernet::LENGTH).ok_or(Verdict::NotTunnel)?);
    let payload = usize::from(ip.payload_length());
    if ip.version() != IPV6 || payload + ipv6::LENGTH > packet.length() - ethernet::LENGTH {
        return Err(Verdict::NotTunnel);
    }
    Ok(Outer {
        source: ip.source(),
        destination: ip.destination(),
        version: IPV6,
        traffic_class: ip.traffic_class(),
        protocol: ip.next_header(),
        header: ipv6::LENGTH,
        payload,
        is_udp: false,
    })
}

/// Whether the checksum of the outer header is right, if its IP version has one (RFC 1122, 3.2.1.2). Reads the header again:
/// kept over the look-ups before, it would take half of the registers.
#[inline(always)]
pub(super) fn is_intact<P: Packet + ?Sized>(packet: &P, outer: &Outer) -> bool {
    outer.version != IPV4 || packet.bytes(ethernet::LENGTH).is_some_and(ipv4::is_intact)
}

/// What stands between the outer IP header and the inner one, bytes.
pub(super) const SHIM: usize = udp::LENGTH + gue::LENGTH;

/// Counts the headers of UDP and GUE (variant 0, draft-ietf-intarea-gue) to the outer one, if the packet has them.
/// `port` is where GUE ends; 0: nowhere.
///
/// A UDP checksum of zero is accepted, over IPv6 too (RFC 6935): on one port, from known sources, with an inner packet
/// that has checksums of its own, as RFC 6936, 4 and 5, require. Any other checksum has to be right ([`checksums`]).
///
/// [`checksums`]: super::checksums
///
/// # Errors
/// [`Verdict::GueNotOurs`]: GUE, but of a kind that balancers do not send. [`Verdict::NotTunnel`]: its UDP
/// header contradicts the IP header.
#[inline(always)]
pub(super) fn open_gue<P: Packet + ?Sized>(
    packet: &P,
    outer: Outer,
    port: u16,
) -> Result<Outer, Verdict> {
    if outer.protocol != UDP || port == 0 {
        return Ok(outer);
    }
    let at = ethernet::LENGTH + outer.header;
    let udp = Udp(packet.bytes(at).ok_or(Verdict::NotTunnel)?);
    if udp.destination() != port {
        return Ok(outer);
    }
    let length = usize::from(udp.length());
    if length < SHIM || length > outer.payload {
        return Err(Verdict::NotTunnel);
    }
    let gue = Gue(packet.bytes(at + udp::LENGTH).ok_or(Verdict::NotTunnel)?);
    let is_plain = gue.variant() == gue::VARIANT
        && !gue.is_control()
        && gue.header_length() == gue::LENGTH
        && gue.flags() == 0;
    // The kernel's own GUE, or another program, may use that port for other packets.
    if !is_plain || !matches!(gue.protocol(), IP_IN_IP | IPV6_IN_IP) {
        return Err(Verdict::GueNotOurs);
    }
    Ok(Outer {
        protocol: gue.protocol(),
        header: outer.header + SHIM,
        payload: length - SHIM,
        is_udp: true,
        ..outer
    })
}
