//! The answer to an echo request: so a VIP can be pinged, whatever its backends do (RFC 792; RFC 4443, 4.2).

use super::{HEAD_V4, HEAD_V6, is_one_host};
use crate::{
    abi::service::AddressWords,
    path::parse::{self, Version},
    wire::{
        self, ethernet,
        icmp::{self, Icmp},
        ipv4, ipv6,
        packet::Packet,
    },
};

/// An echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Whom it asks.
    pub vip: AddressWords,
    /// 4 or 6.
    pub version: u8,
}

/// The echo request that a frame is. `None`: it is none, or one that the host's own stack should look at:
/// with IP options or extension headers, in fragments, or from no single host.
#[inline(always)]
pub fn echo<P: Packet + ?Sized>(packet: &P) -> Option<Echo> {
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
    is_request.then_some(Echo { vip: parsed.flow.vip, version: parsed.flow.version })
}

/// Makes the head of an [`Echo`] over IPv4 that of its answer, which goes back to where it came from; what
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
