//! What becomes of a packet that is larger than what its backend's MTU leaves of a tunnel.
//!
//! A sender that wants no fragments (DF, and all of IPv6) is told how much fits. For one that allows them the
//! packet goes on whole, in an outer packet that may be fragmented too, as long as the local link carries it:
//! nobody here takes packets apart, which would need memory on both ends.

use super::{
    Choice, Forward, Question, Tables,
    encapsulate::{self, framed},
    parse::{self, Kind, Version},
};
use crate::{
    abi::{
        next_hop::{InterfaceWord, NextHopWord},
        service::IPV4,
        verdict::Verdict,
    },
    wire::{
        self, ethernet,
        ipv4::{self, Ipv4},
        packet::Packet,
    },
};

/// A packet that is too large, and where it was to go: in whole words, as [`Question`].
#[derive(Clone, Copy, Debug)]
pub struct Large {
    next_hop: u64,
    /// `{service 32, source of IPv4 tunnels 32}` from the low end.
    way: u64,
    /// `{backend 32, is a new connection 32}` from the low end.
    to: u64,
}

impl Large {
    /// Of a packet that was on its way.
    #[inline(always)]
    pub fn of(forward: &Forward<'_>) -> Self {
        let is_new = forward.parsed.kind == Kind::NewConnection;
        let source = forward.descriptor.source_v4;
        Self::new(&forward.choice, forward.service, source, is_new)
    }

    /// Of what a question was answered with.
    #[inline(always)]
    pub fn answered<T: Tables + ?Sized>(tables: &T, question: &Question, choice: &Choice) -> Self {
        let source = tables.descriptor(question.version()).map_or(0, |there| there.source_v4);
        let is_new = question.kind() == Kind::NewConnection;
        Self::new(choice, question.service(), source, is_new)
    }

    #[inline(always)]
    const fn new(choice: &Choice, service: u32, source: u32, is_new: bool) -> Self {
        Self {
            next_hop: choice.next_hop.0,
            way: service as u64 | (source as u64) << 32,
            to: choice.member.backend() as u64 | (is_new as u64) << 32,
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
        self.to >> 32 != 0
    }

    /// Index of the interface that it goes out by.
    #[inline(always)]
    pub const fn interface(&self) -> u16 {
        NextHopWord(self.next_hop).interface()
    }
}

/// A head, and the interface that it goes out by.
pub type Divisible = ([u8; ethernet::LENGTH + ipv4::LENGTH], InterfaceWord);

/// The head for a packet that lets itself be fragmented, if it goes on. `None`: it lets not, and its sender is
/// to be told ([`super::answer::too_large`]) that [`room`] fits.
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
    let fits = parsed.ip_length + ipv4::LENGTH as u32 <= u32::from(backend.link);
    // Of IPv6 only the sender itself can make fragments (RFC 8200, 5).
    if backend.version != IPV4 || !fits {
        return Err(Verdict::CannotFragment);
    }
    let source = (large.way >> 32) as u32;
    if source == 0 {
        return Err(Verdict::NoSourceAddress);
    }
    let outer = ipv4::Outer {
        source,
        destination: backend.address[3],
        traffic_class: parsed.traffic_class,
        protocol: wire::IP_IN_IP,
        payload: parsed.ip_length as u16,
        divisible: Some(identification(inner)),
    };
    let macs = (large.next_hop, own.0);
    Ok(Some((framed(macs, ethernet::IPV4, outer.emit()), own)))
}

/// How much fits where a packet was to go, bytes.
#[inline(always)]
pub fn room<T: Tables + ?Sized>(tables: &T, large: &Large) -> u16 {
    tables.backend(large.backend()).map_or(0, encapsulate::room)
}

/// The identification of an outer packet that may be fragmented: it must not come again soon between the same
/// two hosts (RFC 6864, 4.3). A sender keeps to that in what it sends to one destination, so its number serves,
/// moved by a hash of the two addresses: those of different clients meet as seldom as numbers at random do.
#[inline(always)]
fn identification(inner: Ipv4<'_>) -> u16 {
    let addresses = u64::from(u32::from_be(inner.source())) << 32
        | u64::from(u32::from_be(inner.destination()));
    let moved = addresses.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    inner.identification().wrapping_add(moved as u16)
}
