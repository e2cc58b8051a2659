//! The outer header: what is a tunnel of the kind that balancers make.

use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    wire::{
        ethernet,
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        packet::Packet,
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
/// [`Verdict::NotTunnel`]: balancers send no such packets.
#[inline(always)]
pub(super) fn read<P: Packet + ?Sized>(packet: &P) -> Result<Outer, Verdict> {
    let frame = packet.bytes::<{ ethernet::LENGTH }>(0).ok_or(Verdict::NotTunnel)?;
    match ethernet::ether_type(frame) {
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
