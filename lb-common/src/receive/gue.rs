//! Tunnels in UDP: GUE, variant 0 (draft-ietf-intarea-gue).
//!
//! A checksum of zero is taken, over IPv6 too (RFC 6935): to one port, from sources that are known, with an
//! inner packet that is looked at by itself, as RFC 6936, 4 and 5, ask. Another one has to be right.

use super::outer::Outer;
use crate::{
    abi::verdict::Verdict,
    wire::{
        IP_IN_IP, IPV6_IN_IP, UDP, ethernet,
        gue::{self, Gue},
        packet::Packet,
        udp::{self, Udp},
    },
};

/// What stands between the outer IP header and the inner one, bytes.
pub(super) const SHIM: usize = udp::LENGTH + gue::LENGTH;

/// Takes the headers of UDP and GUE to the outer one, if this is what they are. `port` is where GUE ends;
/// 0: nowhere.
///
/// # Errors
/// [`Verdict::GueNotOurs`]: GUE, but of a kind that balancers do not send. [`Verdict::NotTunnel`]: its UDP
/// header contradicts the IP header.
#[inline(always)]
pub(super) fn open<P: Packet + ?Sized>(
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
    // The kernel's own GUE, or a program, may have that port for others.
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
