//! Checksums that a UDP tunnel could hide.
//!
//! Network cards and the kernel (GRO) note on a packet that the checksum of its outermost UDP header is right, or zero and
//! therefore valid. An XDP program cannot remove the note, and the host's stack would take it for one about the inner
//! segment. So packets in UDP are checked here. For IP in IP the note is about the inner checksum itself. A tc program
//! removes the note, and the stack checks the inner segment: there only the outer checksum, which nothing checks later, is
//! checked here.

use super::{
    inner::{self, Inner},
    outer::SHIM,
    outer::{self, Outer},
};
use crate::{
    abi::verdict::Verdict,
    checksum,
    wire::{
        ICMP, ICMPV6, Packet, TCP, UDP, ethernet,
        udp::{self, Udp},
    },
};

/// Checks both checksums of a tunnel packet in UDP, over all of it; `header` and `protocol` are the length of its outer
/// headers and the protocol of the inner packet, as [`super::decide`] found them.
///
/// # Errors
/// [`Verdict::OuterChecksum`], [`Verdict::InnerChecksum`].
#[inline(always)]
pub fn checksums<P: Packet + ?Sized>(
    packet: &P,
    header: usize,
    protocol: u8,
) -> Result<(), Verdict> {
    let (outer, length) = summed_outer(packet)?;
    let payload = usize::from(length).wrapping_sub(SHIM);
    let inner = inner::read(packet, &Outer { protocol, header, payload, ..outer })?;
    if inner_is_right(packet, &inner) { Ok(()) } else { Err(Verdict::InnerChecksum) }
}

/// Checks only the outer checksum, for a hook after which the stack checks the inner one.
///
/// # Errors
/// [`Verdict::OuterChecksum`].
#[inline(always)]
pub fn outer_checksum<P: Packet + ?Sized>(packet: &P) -> Result<(), Verdict> {
    summed_outer(packet).map(drop)
}

/// The outer header and UDP's length, with a checksum that is zero or right.
#[inline(always)]
fn summed_outer<P: Packet + ?Sized>(packet: &P) -> Result<(Outer, u16), Verdict> {
    let outer = outer::read(packet)?;
    let at = ethernet::LENGTH + outer.header;
    let udp = Udp(packet.bytes(at).ok_or(Verdict::OuterChecksum)?);
    let length = udp.length();
    if udp.has_checksum() {
        // A v4-mapped address adds 0xffff to the sum, which is nothing in ones' complement, so this is IPv4's
        // pseudo-header as well.
        let pseudo = checksum::pseudo_header_v6(&outer.source, &outer.destination, (length, UDP));
        if !packet.has_right_checksum(at, length.into(), pseudo) {
            return Err(Verdict::OuterChecksum);
        }
    }
    Ok((outer, length))
}

/// Whether the checksum of the inner segment, datagram or ICMP message is right. Fragments and other protocols cannot be
/// checked here, and pass.
#[inline(always)]
pub(super) fn inner_is_right<P: Packet + ?Sized>(packet: &P, inner: &Inner) -> bool {
    if inner.is_fragment {
        return true;
    }
    let mut length = inner.length;
    match inner.protocol {
        TCP | ICMP | ICMPV6 => {}
        UDP => {
            let Some(udp) = packet.bytes::<{ udp::LENGTH }>(inner.at).map(Udp) else {
                return false;
            };
            let claimed = usize::from(udp.length());
            if claimed < udp::LENGTH || claimed > length {
                return false;
            }
            // Over IPv6 the host refuses a zero checksum, whatever is noted.
            if !udp.has_checksum() {
                return true;
            }
            length = claimed;
        }
        _ => return true,
    }
    let pseudo = if inner.protocol == ICMP {
        0
    } else {
        let what = (length as u16, inner.protocol);
        checksum::pseudo_header_v6(&inner.source, &inner.destination, what)
    };
    packet.has_right_checksum(inner.at, length, pseudo)
}
