//! The receiver's decision, pure: which tunnel packets lose their outer header.
//!
//! Nothing here adds a header, so every packet gets shorter, and none is decapsulated twice. Packets that could still loop
//! with the host's help (through a tunnel device of the kernel, or from the host to itself) are dropped.

mod inner;
mod outer;
mod transport;

pub use self::transport::{checksums, outer_checksum};
use self::{inner::Inner, outer::Outer};
use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6},
        verdict::Verdict,
    },
    martian,
    wire::{IP_IN_IP, IPV6_IN_IP, Packet, ethernet, ipv4, ipv6},
};

/// The receiver's allow-lists: its maps, or plain ones in a test.
pub trait AllowLists {
    /// Whether balancers have this source address.
    fn source(&self, address: &AddressWords) -> bool;
    /// Whether this host serves this VIP; `version` is 4 or 6.
    fn vip(&self, address: &AddressWords, version: u8) -> bool;
    /// Whether tunnels end at this address. No VIP is such an endpoint.
    fn endpoint(&self, address: &AddressWords, version: u8) -> bool;
    /// UDP port where GUE ends; 0: nowhere.
    fn gue_port(&self) -> u16;
}

/// How to decapsulate a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decapsulation {
    /// Outer headers to take off, bytes: 20 or 40, and 12 more of GUE.
    pub outer: usize,
    /// EtherType of the inner packet.
    pub ether_type: [u8; 2],
    /// The new ECN bits of the inner packet, if they change.
    pub ecn: Option<u8>,
    /// Whether the tunnel is in UDP: it is decapsulated only if [`checksums`] finds no fault.
    pub is_udp: bool,
}

/// Decides about a frame that reaches a backend.
///
/// # Errors
/// The verdict of a frame that stays as it is, or is dropped.
#[inline(always)]
pub fn decide<P: Packet + ?Sized, A: AllowLists + ?Sized>(
    packet: &P,
    allowed: &A,
) -> Result<Decapsulation, Verdict> {
    let outer = outer::read(packet)?;
    let source = outer.source;
    let outer = match outer::open_gue(packet, outer, allowed.gue_port()) {
        Err(Verdict::GueNotOurs) if !allowed.source(&source) => return Err(Verdict::NotTunnel),
        opened => opened?,
    };
    let inner = inner::read(packet, &outer)?;
    admit(allowed, &outer, &inner)?;
    // The host's stack would find it, but never sees this header.
    if !outer::is_intact(packet, &outer) {
        return Err(Verdict::OuterChecksum);
    }
    judge(allowed, &outer, &inner)?;
    let ecn = inner::combine_ecn(inner.traffic_class, outer.traffic_class);
    let ecn = ecn.ok_or(Verdict::NotEcnCapable)?;
    Ok(Decapsulation {
        outer: outer.header,
        ether_type: inner.ether_type(),
        ecn: (ecn != inner.traffic_class & inner::CE).then_some(ecn),
        is_udp: outer.is_udp,
    })
}

/// Whether a tunnel packet is a balancer's, for a VIP of this host, and ends here.
#[inline(always)]
fn admit<A: AllowLists + ?Sized>(allowed: &A, outer: &Outer, inner: &Inner) -> Result<(), Verdict> {
    let vip = allowed.vip(&inner.destination, inner.version);
    match (vip, allowed.source(&outer.source)) {
        (true, true) => {}
        (true, false) => return Err(Verdict::SourceNotAllowed),
        (false, true) => return Err(Verdict::VipNotAllowed),
        (false, false) => return Err(Verdict::NotTunnel),
    }
    // No VIP is an endpoint, so a tunnel that ends here costs one look-up; only others cost the second.
    if allowed.endpoint(&outer.destination, outer.version) {
        return Ok(());
    }
    match allowed.vip(&outer.destination, outer.version) {
        // A client's packet for a service, whatever it contains: no tunnel ends at a VIP.
        true => Err(Verdict::TunnelToVip),
        // The tunnel of another host, which may serve the same VIP: this one routes or bridges it there.
        false => Err(Verdict::TunnelNotLocal),
    }
}

/// Whether the host may get a balancer's packet.
#[inline(always)]
fn judge<A: AllowLists + ?Sized>(allowed: &A, outer: &Outer, inner: &Inner) -> Result<(), Verdict> {
    if !inner.is_whole {
        return Err(Verdict::InnerMalformed);
    }
    if inner.is_tunnel() {
        return Err(Verdict::InnerTunnel);
    }
    let is_own = inner.version == outer.version && inner.source == outer.destination;
    if is_own || allowed.vip(&inner.source, inner.version) {
        return Err(Verdict::InnerFromHere);
    }
    if martian::is_martian(&inner.source, &inner.destination, inner.version) {
        return Err(Verdict::InnerMartian);
    }
    // RFC 2003, 3.1: the inner packet has its own TTL, from which this end takes nothing.
    if inner.is_expired {
        return Err(Verdict::InnerExpired);
    }
    Ok(())
}

/// A decapsulated frame, whose inner header can be changed.
pub trait DecapsulatedFrame {
    /// Changes the first bytes of the inner packet; false where the frame ends before they do.
    #[must_use]
    fn change_inner<const N: usize>(&mut self, change: impl FnOnce(&mut [u8; N])) -> bool;
}

impl Decapsulation {
    /// Where the UDP header of a tunnel in UDP stands in the frame.
    #[inline(always)]
    pub const fn udp(&self) -> usize {
        ethernet::LENGTH + self.outer - outer::SHIM
    }

    /// IP version of the outer header.
    #[inline(always)]
    pub const fn outer_version(&self) -> u8 {
        let shim = if self.is_udp { outer::SHIM } else { 0 };
        if self.outer - shim == ipv4::LENGTH { IPV4 } else { IPV6 }
    }

    /// IP version of the inner packet.
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        if matches!(self.ether_type, ethernet::IPV4) { IPV4 } else { IPV6 }
    }

    /// IP protocol number of the inner packet.
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        if matches!(self.ether_type, ethernet::IPV4) { IP_IN_IP } else { IPV6_IN_IP }
    }

    /// Writes [`Self::ecn`] to the inner header; false if the frame is too short.
    #[inline(always)]
    #[must_use]
    pub fn mark<M: DecapsulatedFrame + ?Sized>(&self, frame: &mut M) -> bool {
        let Some(ecn) = self.ecn else { return true };
        if self.ether_type == ethernet::IPV4 {
            frame.change_inner::<{ ipv4::LENGTH }>(|header| ipv4::set_ecn(header, ecn))
        } else {
            frame.change_inner::<{ ipv6::LENGTH }>(|header| ipv6::set_ecn(header, ecn))
        }
    }
}
