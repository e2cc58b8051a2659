//! Packets that do not fit their backend's MTU after encapsulation.
//!
//! A sender that forbids fragments (DF, and all of IPv6) gets an ICMP error that tells how much fits. If it allows
//! them, the packet goes on whole in an outer packet that may be fragmented, as long as the local link carries it.
//! The balancer makes no fragments itself, which would need memory on both ends.

use super::{
    Choice, Forward, Query, Tables,
    encapsulate::{self, Shim, framed},
    parse::{self, Kind, Version},
};
use crate::{
    abi::{
        form::Form,
        next_hop::{InterfaceWord, NextHopWord},
        service::IPV4,
        verdict::Verdict,
    },
    flow_hash::FlowHash,
    wire::{
        ethernet,
        ipv4::{self, Ipv4},
        packet::Packet,
    },
};

/// A packet that is too large, and where it was to go: in whole words, as [`Query`].
#[derive(Clone, Copy, Debug)]
pub struct Large {
    next_hop: u64,
    /// `{service 32, source of IPv4 tunnels 32}` from the low end.
    way: u64,
    /// `{backend 32, is a new connection 1, form 31}` from the low end.
    to: u64,
    hash: u64,
}

impl Large {
    /// The packet of the fast path.
    #[inline(always)]
    pub fn from_forward(forward: &Forward<'_>) -> Self {
        let Forward { descriptor, hash, .. } = *forward;
        let is_new = forward.parsed.kind == Kind::NewConnection;
        let tunnel = (descriptor.source_v4, descriptor.form());
        Self::new(&forward.choice, forward.service, tunnel, (is_new, hash))
    }

    /// The packet of a resolved query.
    #[inline(always)]
    pub fn from_query<T: Tables + ?Sized>(tables: &T, query: &Query, choice: &Choice) -> Self {
        let tunnel = match tables.descriptor(query.version()) {
            Some(descriptor) => (descriptor.source_v4, descriptor.form()),
            None => (0, Form::IP_IN_IP),
        };
        let is_new = query.kind() == Kind::NewConnection;
        Self::new(choice, query.service(), tunnel, (is_new, query.hash))
    }

    #[inline(always)]
    const fn new(
        choice: &Choice,
        service: u32,
        (source, form): (u32, Form),
        (is_new, hash): (bool, FlowHash),
    ) -> Self {
        let to = is_new as u64 | form.flags() as u64;
        Self {
            next_hop: choice.next_hop.0,
            way: service as u64 | (source as u64) << 32,
            to: choice.member.backend() as u64 | to << 32,
            hash: hash.0,
        }
    }

    /// Index of the service.
    #[inline(always)]
    pub const fn service(&self) -> u32 {
        self.way as u32
    }

    /// Index of the backend.
    #[inline(always)]
    pub const fn backend(&self) -> u32 {
        self.to as u32
    }

    /// Whether it asks for a new connection.
    #[inline(always)]
    pub const fn is_new(&self) -> bool {
        self.to >> 32 & 1 != 0
    }

    /// How it was to go.
    #[inline(always)]
    pub const fn form(&self) -> Form {
        Form::from_flags((self.to >> 32) as u32)
    }

    /// Index of the interface that it goes out by.
    #[inline(always)]
    pub const fn interface(&self) -> u16 {
        NextHopWord(self.next_hop).interface()
    }
}

/// What goes in front of a packet that may be fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisible {
    /// The head.
    pub head: [u8; ethernet::LENGTH + ipv4::LENGTH],
    /// What stands between that and the packet where it goes in GUE.
    pub shim: Shim,
    /// The interface that it goes out by.
    pub own: InterfaceWord,
}

/// The head for a packet that may be fragmented, if it goes on. `None`: it may not be, and its sender gets an ICMP
/// error ([`super::icmp_reply::too_large`]) that [`room`] fits.
///
/// # Errors
/// [`Verdict::CannotFragment`], [`Verdict::NoSourceAddress`]; [`Verdict::Inconsistent`].
#[inline(always)]
pub fn divisible<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
    large: &Large,
) -> Result<Option<Divisible>, Verdict> {
    if parse::version(packet)? == Version::V6 {
        return Ok(None);
    }
    let (parsed, _) = parse::ipv4_header(packet)?;
    let inner = Ipv4(packet.bytes(ethernet::LENGTH).ok_or(Verdict::Malformed)?);
    if inner.may_not_be_fragmented() {
        return Ok(None);
    }
    let backend = tables.backend(large.backend()).ok_or(Verdict::Inconsistent)?;
    let own = tables.interface(large.interface().into()).ok_or(Verdict::Inconsistent)?;
    let form = large.form();
    let fits = parsed.ip_length + u32::from(form.overhead(true)) <= u32::from(backend.link);
    // Without a tunnel there is no outer packet to fragment. IPv6 packets only their sender can (RFC 8200, 5).
    if form.is_direct() || backend.version != IPV4 || !fits {
        return Err(Verdict::CannotFragment);
    }
    let source = (large.way >> 32) as u32;
    if source == 0 {
        return Err(Verdict::NoSourceAddress);
    }
    let length = parsed.ip_length as u16;
    let (protocol, payload) = encapsulate::outer_payload(form, IPV4, length);
    let outer = ipv4::Outer {
        source,
        destination: backend.address[3],
        traffic_class: parsed.traffic_class,
        protocol,
        payload,
        divisible: Some(identification(inner)),
    };
    let shim = encapsulate::shim(form, FlowHash(large.hash), IPV4, length);
    let macs = (large.next_hop, own.0);
    let head = framed(macs, ethernet::IPV4, outer.emit());
    Ok(Some(Divisible { head, shim, own }))
}

/// How much fits where a packet was to go, bytes.
#[inline(always)]
pub fn room<T: Tables + ?Sized>(tables: &T, large: &Large) -> u16 {
    tables.backend(large.backend()).map_or(0, |backend| encapsulate::room(backend, large.form()))
}

/// The identification of an outer packet that may be fragmented: it must not come again soon between the same
/// two hosts (RFC 6864, 4.3). A sender keeps to that in what it sends to one destination, so its number serves,
/// moved by a hash of the two addresses: those of different clients meet as rarely as random numbers do.
#[inline(always)]
fn identification(inner: Ipv4<'_>) -> u16 {
    let addresses = u64::from(u32::from_be(inner.source())) << 32
        | u64::from(u32::from_be(inner.destination()));
    let moved = addresses.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    inner.identification().wrapping_add(moved as u16)
}
