//! Encapsulate: the bytes that go in front of the packet.

use super::{Forward, tables::Tables};
use crate::{
    abi::{
        backend::Backend,
        form::Form,
        next_hop::InterfaceWord,
        service::{AddressWords, IPV4},
        verdict::Verdict,
    },
    flow_hash::FlowHash,
    wire::{self, ethernet, gue, ipv4, ipv6, udp, vlan::Tags},
};

/// The new head of the frame: Ethernet and outer IP header. The frame grows by the outer header, and by what
/// stands behind it ([`shim`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An IPv4 tunnel: 20 bytes.
    V4([u8; ethernet::LENGTH + ipv4::LENGTH]),
    /// An IPv6 tunnel: 40 bytes.
    V6([u8; ethernet::LENGTH + ipv6::LENGTH]),
    /// No tunnel: the frame has another Ethernet header.
    Link([u8; ethernet::LENGTH]),
}

/// The UDP and GUE headers behind the outer IP header.
pub type Shim = [u8; udp::LENGTH + gue::LENGTH];

/// The head for a packet on its way to a backend, and the interface that it goes out by.
///
/// # Errors
/// [`Verdict::TooLarge`], [`Verdict::NoSourceAddress`], [`Verdict::NextHopUnresolved`]: also without a tunnel,
/// where the next hop is a gateway; to it the packet would be for the VIP as before.
#[inline(always)]
pub fn head<T: Tables + ?Sized>(
    tables: &T,
    forward: &Forward<'_>,
) -> Result<(Head, InterfaceWord), Verdict> {
    head_in(tables, forward, forward.descriptor.form())
}

/// As [`head`], for a form that the caller knows, so that the compiler removes the code of the others.
///
/// # Errors
/// As [`head`].
#[inline(always)]
pub fn head_in<T: Tables + ?Sized>(
    tables: &T,
    forward: &Forward<'_>,
    form: Form,
) -> Result<(Head, InterfaceWord), Verdict> {
    let (backend, parsed) = (forward.backend, &forward.parsed);
    let interface = u32::from(forward.choice.next_hop.interface());
    let own = tables.interface(interface).filter(|own| own.is_known());
    let own = own.ok_or(Verdict::NextHopUnresolved)?;
    let (is_v4, payload) = (backend.version == IPV4, parsed.ip_length);
    if payload > u32::from(room(backend, form)) {
        return Err(Verdict::TooLarge);
    }
    if form.is_direct() {
        if backend.on_link == 0 {
            return Err(Verdict::NextHopUnresolved);
        }
        let is_v4 = parsed.flow.version == IPV4;
        let ether_type = if is_v4 { ethernet::IPV4 } else { ethernet::IPV6 };
        let macs = ethernet::header(forward.choice.next_hop.0, own.0, ether_type);
        return Ok((Head::Link(macs), own));
    }
    let (protocol, payload) = outer_payload(form, parsed.flow.version, payload as u16);
    let macs = (forward.choice.next_hop.0, own.0);
    if is_v4 {
        let descriptor = forward.descriptor;
        let source = if descriptor.source_v4 == 0 {
            tunnel_source(tables, forward)?[3]
        } else {
            descriptor.flow_source_v4(forward.entropy)
        };
        let outer = ipv4::Outer {
            source,
            destination: backend.address[3],
            traffic_class: parsed.traffic_class,
            protocol,
            payload,
        };
        Ok((Head::V4(framed(macs, ethernet::IPV4, outer.emit())), own))
    } else {
        let outer = ipv6::Outer {
            source: tunnel_source(tables, forward)?,
            destination: backend.address,
            traffic_class: parsed.traffic_class,
            flow_label: forward.entropy.flow_label(),
            next_header: protocol,
            payload,
        };
        Ok((Head::V6(framed(macs, ethernet::IPV6, outer.emit())), own))
    }
}

/// The address of this host that the kernel would take towards the backend.
#[inline(always)]
fn tunnel_source<T: Tables + ?Sized>(
    tables: &T,
    forward: &Forward<'_>,
) -> Result<AddressWords, Verdict> {
    let source = tables.tunnel_source(u32::from(forward.choice.member.next_hop()));
    source.filter(|source| !is_unset(source)).ok_or(Verdict::NoSourceAddress)
}

/// The tags of a frame that leaves by an interface: the configured VLAN, or else the tags that it came with, if it came in
/// by the same interface or by a port of that bond.
#[inline(always)]
pub const fn tags(own: InterfaceWord, came_in_by_it: bool, came_with: Tags) -> Tags {
    if own.vlan() != 0 {
        Tags::customer(own.vlan())
    } else if came_in_by_it {
        came_with
    } else {
        Tags::NONE
    }
}

/// Protocol and length of what is behind the outer IP header of a packet of so many bytes.
#[inline(always)]
pub(super) const fn outer_payload(form: Form, version: u8, packet: u16) -> (u8, u16) {
    let inner = inner_protocol(version);
    let protocol = if form.is_gue() { wire::UDP } else { inner };
    (protocol, packet.wrapping_add(form.shim()))
}

#[inline(always)]
const fn inner_protocol(version: u8) -> u8 {
    if version == IPV4 { wire::IP_IN_IP } else { wire::IPV6_IN_IP }
}

/// The UDP and GUE headers in front of a packet of an IP version and length.
///
/// The UDP checksum is zero: one over the whole packet would require reading all of it. Deriving it from the headers and
/// the inner checksum is correct only if that covers the rest, which it does not in fragments, in datagrams without one,
/// and in ICMP errors. So a receiver has to accept zero anyway (RFC 6935, RFC 6936).
#[inline(always)]
pub fn shim(form: Form, entropy: FlowHash, version: u8, packet: u16) -> Shim {
    let udp = udp::Header {
        source: entropy.source_port(),
        destination: form.port(),
        payload: packet.wrapping_add(gue::LENGTH as u16),
        checksum: [0; 2],
    };
    let mut shim = [0; udp::LENGTH + gue::LENGTH];
    shim[..udp::LENGTH].copy_from_slice(&udp.emit());
    shim[udp::LENGTH..].copy_from_slice(&gue::header(inner_protocol(version)));
    shim
}

/// Largest packet that goes to a backend, bytes: in its tunnel, if there is one.
#[inline(always)]
pub const fn room(backend: &Backend, form: Form) -> u16 {
    backend.mtu.saturating_sub(form.overhead(backend.version == IPV4))
}

#[inline(always)]
const fn is_unset(address: &AddressWords) -> bool {
    address[0] | address[1] | address[2] | address[3] == 0
}

/// An Ethernet header and what follows it; `macs` are destination and source.
#[inline(always)]
pub(super) fn framed<const IP: usize, const ALL: usize>(
    (destination, source): (u64, u64),
    ether_type: [u8; 2],
    ip: [u8; IP],
) -> [u8; ALL] {
    const { assert!(ALL == IP + ethernet::LENGTH) };
    let mut head = [0; ALL];
    head[..ethernet::LENGTH].copy_from_slice(&ethernet::header(destination, source, ether_type));
    head[ethernet::LENGTH..].copy_from_slice(&ip);
    head
}
