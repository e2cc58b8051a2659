//! Encapsulate: the bytes that go in front of the packet.

use super::{Forward, tables::Tables};
use crate::{
    abi::{
        backend::Backend,
        next_hop::InterfaceWord,
        service::{AddressWords, IPV4},
        verdict::Verdict,
    },
    wire::{self, ethernet, ipv4, ipv6, vlan::Tags},
};

/// The new head of the frame: Ethernet and outer IP header. The frame grows by the outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An IPv4 tunnel: the frame grows by 20 bytes.
    V4([u8; ethernet::LENGTH + ipv4::LENGTH]),
    /// An IPv6 tunnel: the frame grows by 40 bytes.
    V6([u8; ethernet::LENGTH + ipv6::LENGTH]),
}

/// The head for a packet on its way to a backend, and the interface that it goes out by.
///
/// # Errors
/// [`Verdict::TooLarge`], [`Verdict::NoSourceAddress`], [`Verdict::NextHopUnresolved`].
#[inline(always)]
pub fn head<T: Tables + ?Sized>(
    tables: &T,
    forward: &Forward<'_>,
) -> Result<(Head, InterfaceWord), Verdict> {
    let (backend, parsed) = (forward.backend, &forward.parsed);
    let interface = u32::from(forward.choice.next_hop.interface());
    let own = tables.interface(interface).filter(|own| own.is_known());
    let own = own.ok_or(Verdict::NextHopUnresolved)?;
    let (is_v4, payload) = (backend.version == IPV4, parsed.ip_length);
    if payload > u32::from(room(backend)) {
        return Err(Verdict::TooLarge);
    }
    let protocol = if parsed.flow.version == IPV4 { wire::IP_IN_IP } else { wire::IPV6_IN_IP };
    let macs = (forward.choice.next_hop.0, own.0);
    if is_v4 {
        let source = forward.descriptor.source_v4;
        if source == 0 {
            return Err(Verdict::NoSourceAddress);
        }
        let outer = ipv4::Outer {
            source,
            destination: backend.address[3],
            traffic_class: parsed.traffic_class,
            protocol,
            payload: payload as u16,
            divisible: None,
        };
        Ok((Head::V4(framed(macs, ethernet::IPV4, outer.emit())), own))
    } else {
        let source = forward.descriptor.source_v6;
        if is_unset(&source) {
            return Err(Verdict::NoSourceAddress);
        }
        let outer = ipv6::Outer {
            source,
            destination: backend.address,
            traffic_class: parsed.traffic_class,
            flow_label: forward.hash.flow_label(),
            next_header: protocol,
            payload: payload as u16,
        };
        Ok((Head::V6(framed(macs, ethernet::IPV6, outer.emit())), own))
    }
}

/// The tags of what goes out by an interface: what is set for it, or else those of the packet that came in,
/// if it came in by the same one.
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

/// Largest packet that fits into the tunnel to a backend, bytes.
#[inline(always)]
pub const fn room(backend: &Backend) -> u16 {
    let outer = if backend.version == IPV4 { ipv4::LENGTH } else { ipv6::LENGTH };
    backend.mtu.saturating_sub(outer as u16)
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
