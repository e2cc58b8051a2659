//! The inner header: source, destination, and whether the packet can have come through a balancer; and its ECN bits.

use super::outer::Outer;
use crate::{
    abi::{
        service::{AddressWords, IPV4, IPV6, V4_MAPPED},
        verdict::Verdict,
    },
    wire::{
        IP_IN_IP, IPV6_IN_IP, Packet, ethernet,
        ipv4::{self, Ipv4},
        ipv6::{self, ExtensionsEnd, Ipv6},
    },
};

/// The fields of an inner header.
pub(super) struct Inner {
    pub(super) source: AddressWords,
    pub(super) destination: AddressWords,
    /// IP version that the tunnel announced.
    pub(super) version: u8,
    pub(super) traffic_class: u8,
    /// Protocol behind it, past extension headers.
    pub(super) protocol: u8,
    /// Whether its length fits the outer one, and its extension headers end where a balancer would find their end.
    pub(super) is_whole: bool,
    /// Whether its TTL is 0.
    pub(super) is_expired: bool,
    /// Whether it is a fragment.
    pub(super) is_fragment: bool,
    /// Where the header of its protocol begins in the frame.
    pub(super) at: usize,
    /// Length of that header and all behind it, bytes, if the packet is whole.
    pub(super) length: usize,
}

impl Inner {
    /// EtherType of the packet.
    #[inline(always)]
    pub(super) const fn ether_type(&self) -> [u8; 2] {
        if self.version == IPV4 { ethernet::IPV4 } else { ethernet::IPV6 }
    }

    /// Whether it is itself a tunnel packet.
    #[inline(always)]
    pub(super) const fn is_tunnel(&self) -> bool {
        matches!(self.protocol, IP_IN_IP | IPV6_IN_IP)
    }
}

/// The header of the inner packet, which follows the outer one.
///
/// # Errors
/// [`Verdict::NotTunnel`]: it is another protocol, or there is no whole header.
#[inline(always)]
pub(super) fn read<P: Packet + ?Sized>(packet: &P, outer: &Outer) -> Result<Inner, Verdict> {
    let at = ethernet::LENGTH + outer.header;
    match outer.protocol {
        IP_IN_IP => read_v4(packet, at, outer.payload),
        IPV6_IN_IP => read_v6(packet, at, outer.payload),
        _ => Err(Verdict::NotTunnel),
    }
}

#[inline(always)]
fn read_v4<P: Packet + ?Sized>(packet: &P, at: usize, room: usize) -> Result<Inner, Verdict> {
    let ip = Ipv4(packet.bytes(at).ok_or(Verdict::NotTunnel)?);
    let (header, length) = (ip.header_length(), usize::from(ip.total_length()));
    let fits = header >= ipv4::LENGTH && length >= header && length <= room;
    Ok(Inner {
        source: [0, 0, V4_MAPPED, ip.source()],
        destination: [0, 0, V4_MAPPED, ip.destination()],
        version: IPV4,
        traffic_class: ip.traffic_class(),
        protocol: ip.protocol(),
        is_whole: ip.version() == IPV4 && fits,
        is_expired: ip.ttl() == 0,
        is_fragment: ip.is_fragment(),
        at: at + header,
        length: length.wrapping_sub(header),
    })
}

#[inline(always)]
fn read_v6<P: Packet + ?Sized>(packet: &P, at: usize, room: usize) -> Result<Inner, Verdict> {
    let ip = Ipv6(packet.bytes(at).ok_or(Verdict::NotTunnel)?);
    let begin = at + ipv6::LENGTH;
    let found = ipv6::walk_extensions(packet, ip.next_header(), begin);
    let nothing = ExtensionsEnd {
        protocol: ip.next_header(),
        at: begin,
        is_fragment: false,
        is_later_fragment: false,
    };
    let end = found.unwrap_or(nothing);
    let length = usize::from(ip.payload_length());
    Ok(Inner {
        source: ip.source(),
        destination: ip.destination(),
        version: IPV6,
        traffic_class: ip.traffic_class(),
        protocol: end.protocol,
        is_whole: ip.version() == IPV6
            && length + ipv6::LENGTH <= room
            && found.is_some()
            && end.at - begin <= length,
        // A packet's destination takes it with any hop limit (RFC 8200, 3).
        is_expired: false,
        is_fragment: end.is_fragment,
        at: end.at,
        length: length.wrapping_sub(end.at - begin),
    })
}

/// ECN: the sender does not support it.
const NOT_ECT: u8 = 0;
/// ECN: the sender supports it. As a mark this is weaker than [`CE`].
const ECT_1: u8 = 1;
/// ECN: the sender supports it.
const ECT_0: u8 = 2;
/// ECN: a router was congested.
pub(super) const CE: u8 = 3;
/// The bits of the traffic class that are ECN's.
const ECN: u8 = 3;

/// The ECN bits that an inner packet gets at the end of its tunnel, from both traffic classes (RFC 6040, 4.2). `None`: a
/// router marked a packet whose sender does not support marks, so the mark counts as a loss.
#[inline(always)]
pub(super) const fn combine_ecn(inner: u8, outer: u8) -> Option<u8> {
    match (inner & ECN, outer & ECN) {
        (NOT_ECT, CE) => None,
        (_, CE) => Some(CE),
        (ECT_0, ECT_1) => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 4 of RFC 6040, written out: rows are the inner header, columns the outer one.
    #[test]
    fn the_table_is_that_of_the_rfc() {
        const DROP: Option<u8> = None;
        let outer = [0b00, 0b10, 0b01, 0b11];
        let table = [
            (0b00, [Some(0b00), Some(0b00), Some(0b00), DROP]),
            (0b10, [Some(0b10), Some(0b10), Some(0b01), Some(0b11)]),
            (0b01, [Some(0b01), Some(0b01), Some(0b01), Some(0b11)]),
            (0b11, [Some(0b11), Some(0b11), Some(0b11), Some(0b11)]),
        ];
        for (inner, row) in table {
            for (outer, leaves) in outer.into_iter().zip(row) {
                assert_eq!(
                    combine_ecn(inner, outer),
                    leaves,
                    "inner {inner:02b}, outer {outer:02b}"
                );
                // DSCP, in the upper six bits, has no part in it.
                assert_eq!(combine_ecn(0xb8 | inner, 0x28 | outer), leaves);
            }
        }
    }
}
