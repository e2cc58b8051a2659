//! The receiver's decision, pure: which tunnel packets lose their outer header.

use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    wire::{
        IP_IN_IP, IPV6_IN_IP, ethernet,
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        packet::Packet,
    },
};

/// What the receiver asks of its maps.
pub trait Allowed {
    /// Whether balancers have this source address.
    fn source(&self, address: &AddressWords) -> bool;
    /// Whether this host serves this VIP; `version` is 4 or 6.
    fn vip(&self, address: &AddressWords, version: u8) -> bool;
}

/// A tunnel packet to take apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decapsulation {
    /// Outer IP header to take off, bytes: 20 or 40.
    pub outer: usize,
    /// EtherType of the inner packet.
    pub ether_type: [u8; 2],
}

struct Outer {
    source: AddressWords,
    protocol: u8,
    header: usize,
    payload: usize,
}

/// What becomes of a frame that reaches a backend.
///
/// # Errors
/// The verdict of a frame that stays as it is, or is dropped.
#[inline(always)]
pub fn decide<P: Packet + ?Sized, A: Allowed + ?Sized>(
    packet: &P,
    allowed: &A,
) -> Result<Decapsulation, Verdict> {
    let frame = packet.bytes::<{ ethernet::LENGTH }>(0).ok_or(Verdict::NotTunnel)?;
    let outer = match ethernet::ether_type(frame) {
        ethernet::IPV4 => outer_ipv4(packet)?,
        ethernet::IPV6 => outer_ipv6(packet)?,
        _ => return Err(Verdict::NotTunnel),
    };
    match outer.protocol {
        IP_IN_IP => inner_ipv4(packet, allowed, &outer),
        IPV6_IN_IP => inner_ipv6(packet, allowed, &outer),
        _ => Err(Verdict::NotTunnel),
    }
}

#[inline(always)]
fn outer_ipv4<P: Packet + ?Sized>(packet: &P) -> Result<Outer, Verdict> {
    let ip = Ipv4(packet.bytes(ethernet::LENGTH).ok_or(Verdict::NotTunnel)?);
    let length = usize::from(ip.total_length());
    let whole = !ip.is_fragment() && length <= packet.length() - ethernet::LENGTH;
    // Balancers send no options; a tunnel with options or in fragments is another's.
    if ip.header_length() != ipv4::LENGTH || length < ipv4::LENGTH || !whole {
        return Err(Verdict::NotTunnel);
    }
    Ok(Outer {
        source: [0, 0, V4_MAPPED, ip.source()],
        protocol: ip.protocol(),
        header: ipv4::LENGTH,
        payload: length - ipv4::LENGTH,
    })
}

#[inline(always)]
fn outer_ipv6<P: Packet + ?Sized>(packet: &P) -> Result<Outer, Verdict> {
    let ip = Ipv6(packet.bytes(ethernet::LENGTH).ok_or(Verdict::NotTunnel)?);
    let payload = usize::from(ip.payload_length());
    if payload + ipv6::LENGTH > packet.length() - ethernet::LENGTH {
        return Err(Verdict::NotTunnel);
    }
    Ok(Outer { source: ip.source(), protocol: ip.next_header(), header: ipv6::LENGTH, payload })
}

#[inline(always)]
fn inner_ipv4<P: Packet + ?Sized, A: Allowed + ?Sized>(
    packet: &P,
    allowed: &A,
    outer: &Outer,
) -> Result<Decapsulation, Verdict> {
    let at = ethernet::LENGTH + outer.header;
    let ip = Ipv4(packet.bytes(at).ok_or(Verdict::NotTunnel)?);
    admit(allowed, outer, &[0, 0, V4_MAPPED, ip.destination()], IPV4)?;
    let (header, length) = (ip.header_length(), usize::from(ip.total_length()));
    if ip.version() != IPV4 || header < ipv4::LENGTH || length < header || length > outer.payload {
        return Err(Verdict::InnerMalformed);
    }
    Ok(Decapsulation { outer: outer.header, ether_type: ethernet::IPV4 })
}

#[inline(always)]
fn inner_ipv6<P: Packet + ?Sized, A: Allowed + ?Sized>(
    packet: &P,
    allowed: &A,
    outer: &Outer,
) -> Result<Decapsulation, Verdict> {
    let at = ethernet::LENGTH + outer.header;
    let ip = Ipv6(packet.bytes(at).ok_or(Verdict::NotTunnel)?);
    admit(allowed, outer, &ip.destination(), IPV6)?;
    if ip.version() != IPV6 || usize::from(ip.payload_length()) + ipv6::LENGTH > outer.payload {
        return Err(Verdict::InnerMalformed);
    }
    Ok(Decapsulation { outer: outer.header, ether_type: ethernet::IPV6 })
}

/// Whether a tunnel packet is a balancer's, for a VIP of this host.
#[inline(always)]
fn admit<A: Allowed + ?Sized>(
    allowed: &A,
    outer: &Outer,
    vip: &AddressWords,
    version: u8,
) -> Result<(), Verdict> {
    match (allowed.vip(vip, version), allowed.source(&outer.source)) {
        (true, true) => Ok(()),
        (true, false) => Err(Verdict::SourceNotAllowed),
        (false, true) => Err(Verdict::VipNotAllowed),
        (false, false) => Err(Verdict::NotTunnel),
    }
}
