//! The answer to an echo request: so a VIP can be pinged, whatever its backends do (RFC 792; RFC 4443, 4.2).

use super::{HEAD_V4, HEAD_V6, is_one_host};
use crate::{
    abi::{
        limiter,
        service::{AddressWords, IPV4},
        verdict::Verdict,
    },
    path::{
        Tables,
        parse::{self, Version},
    },
    wire::{
        self, ethernet,
        icmp::{self, Icmp},
        ipv4, ipv6,
        packet::Packet,
    },
};

/// Judges a frame of no flow: an echo request for a VIP is answered, by [`turn_v4`] or [`turn_v6`]. The answer
/// is its IP version.
///
/// # Errors
/// [`Verdict::OtherProtocol`]: it is none, or one that the host's own stack should look at, with IP options or
/// extension headers, in fragments, or from no single host. [`Verdict::EchoLimited`].
#[inline(always)]
pub fn echo<P: Packet + ?Sized, T: Tables + ?Sized>(
    packet: &P,
    tables: &T,
) -> Result<Version, Verdict> {
    let asked = asked(packet).filter(|(vip, version)| tables.is_vip(vip, *version));
    let (_, version) = asked.ok_or(Verdict::OtherProtocol)?;
    if !tables.debit(limiter::ECHOES, tables.now()) {
        return Err(Verdict::EchoLimited);
    }
    Ok(if version == IPV4 { Version::V4 } else { Version::V6 })
}

/// Destination and IP version of a frame that is an echo request.
#[inline(always)]
fn asked<P: Packet + ?Sized>(packet: &P) -> Option<(AddressWords, u8)> {
    let (parsed, header, protocol, request) = match parse::version(packet).ok()? {
        Version::V4 => {
            let (parsed, header) = parse::ipv4_header(packet).ok()?;
            if header != ipv4::LENGTH {
                return None;
            }
            (parsed, ipv4::LENGTH, wire::ICMP, icmp::v4::ECHO_REQUEST)
        }
        Version::V6 => {
            (parse::ipv6_header(packet).ok()?, ipv6::LENGTH, wire::ICMPV6, icmp::v6::ECHO_REQUEST)
        }
    };
    let whole = parsed.flow.protocol == protocol
        && !parsed.is_fragment
        && parsed.ip_length as usize >= header + icmp::LENGTH;
    if !whole || !is_one_host(&parsed.flow.client, parsed.flow.version) {
        return None;
    }
    let message = Icmp(packet.bytes(ethernet::LENGTH + header)?);
    let is_request = message.kind() == request && message.code() == 0;
    is_request.then_some((parsed.flow.vip, parsed.flow.version))
}

/// Makes the head of an echo request over IPv4 that of its answer, which goes back to where it came from; what
/// follows stays. `None`: it is none.
#[inline(always)]
pub fn turn_v4(head: &mut [u8; HEAD_V4]) -> Option<()> {
    ethernet::turn(head.first_chunk_mut()?);
    ipv4::turn(head.get_mut(ethernet::LENGTH..)?.first_chunk_mut()?);
    icmp::set_kind(head.last_chunk_mut()?, icmp::v4::ECHO_REPLY);
    Some(())
}

/// The same over IPv6.
#[inline(always)]
pub fn turn_v6(head: &mut [u8; HEAD_V6]) -> Option<()> {
    ethernet::turn(head.first_chunk_mut()?);
    ipv6::turn(head.get_mut(ethernet::LENGTH..)?.first_chunk_mut()?);
    icmp::set_kind(head.last_chunk_mut()?, icmp::v6::ECHO_REPLY);
    Some(())
}
