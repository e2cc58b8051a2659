//! IPv6 (RFC 8200).

use super::{OUTER_HOP_LIMIT, Packet};
use crate::abi::service::AddressWords;

/// Length of the header, bytes.
pub const LENGTH: usize = 40;

mod field {
    pub(super) const PAYLOAD_LENGTH: usize = 4;
    pub(super) const NEXT_HEADER: usize = 6;
    pub(super) const HOP_LIMIT: usize = 7;
    pub(super) const SOURCE: usize = 8;
    pub(super) const DESTINATION: usize = 24;
}

/// A view of a header.
#[derive(Clone, Copy)]
pub struct Ipv6<'a>(pub &'a [u8; LENGTH]);

impl Ipv6<'_> {
    #[inline(always)]
    fn words(&self, at: usize) -> AddressWords {
        let word = |at: usize| {
            u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
        };
        [word(at), word(at + 4), word(at + 8), word(at + 12)]
    }

    /// Version, 6 in an IPv6 packet.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// DSCP and ECN.
    #[inline(always)]
    pub fn traffic_class(&self) -> u8 {
        self.0[0] << 4 | self.0[1] >> 4
    }

    /// Length of what follows the header, bytes.
    #[inline(always)]
    pub fn payload_length(&self) -> u16 {
        let at = field::PAYLOAD_LENGTH;
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    /// Protocol of what follows, or an extension header.
    #[inline(always)]
    pub fn next_header(&self) -> u8 {
        self.0[field::NEXT_HEADER]
    }

    /// Hop limit.
    #[inline(always)]
    pub fn hop_limit(&self) -> u8 {
        self.0[field::HOP_LIMIT]
    }

    /// Source, as in the packet.
    #[inline(always)]
    pub fn source(&self) -> AddressWords {
        self.words(field::SOURCE)
    }

    /// Destination, as in the packet.
    #[inline(always)]
    pub fn destination(&self) -> AddressWords {
        self.words(field::DESTINATION)
    }
}

/// Takes one from the hop limit (RFC 2473, 3.1: the encapsulator forwards).
#[inline(always)]
pub fn decrement_hop_limit(header: &mut [u8; LENGTH]) {
    header[field::HOP_LIMIT] = header[field::HOP_LIMIT].wrapping_sub(1);
}

/// Sets the ECN bits, the last two of the traffic class (RFC 3168, 5).
#[inline(always)]
pub fn set_ecn(header: &mut [u8; LENGTH], ecn: u8) {
    header[1] = header[1] & !0x30 | (ecn & 3) << 4;
}

/// Turns the packet back to its sender, with a hop limit of its own.
#[inline(always)]
pub fn turn(header: &mut [u8; LENGTH]) {
    for at in field::SOURCE..field::DESTINATION {
        header.swap(at, at + 16);
    }
    header[field::HOP_LIMIT] = OUTER_HOP_LIMIT;
}

/// The fields of an outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Source, as in the packet.
    pub source: AddressWords,
    /// Destination, as in the packet.
    pub destination: AddressWords,
    /// DSCP and ECN (RFC 2983, RFC 6040: copied).
    pub traffic_class: u8,
    /// Flow label, 20 bits, from the flow's hash (RFC 6438).
    pub flow_label: u32,
    /// Protocol of the payload.
    pub next_header: u8,
    /// Length of the payload, bytes.
    pub payload: u16,
}

impl Outer {
    /// The header's bytes, made and stored as words.
    #[inline(always)]
    pub fn emit(&self) -> [u8; LENGTH] {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        let second = u32::from(self.payload) << 16
            | u32::from(self.next_header) << 8
            | u32::from(OUTER_HOP_LIMIT);
        let first = u64::from(first) << 32 | u64::from(second);
        let mut header = [0; LENGTH];
        header[..8].copy_from_slice(&first.to_be_bytes());
        let mut i = 0;
        while i < 2 {
            let at = field::SOURCE + 8 * i;
            header[at..at + 8].copy_from_slice(&pair(&self.source, i).to_ne_bytes());
            let at = field::DESTINATION + 8 * i;
            header[at..at + 8].copy_from_slice(&pair(&self.destination, i).to_ne_bytes());
            i += 1;
        }
        header
    }
}

/// The first or second half of an address, as in the packet.
#[inline(always)]
const fn pair(address: &AddressWords, half: usize) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) =
        (address[2 * half].to_ne_bytes(), address[2 * half + 1].to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Most extension headers that are walked over. Packets in the wild have one or two.
pub const MAX_EXTENSIONS: usize = 4;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
/// Next header of a fragment header.
pub const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// Length of a fragment header, bytes.
pub const FRAGMENT_LENGTH: usize = 8;

/// A view of a fragment header (RFC 8200, 4.5).
#[derive(Clone, Copy)]
pub struct Fragment<'a>(pub &'a [u8; FRAGMENT_LENGTH]);

impl Fragment<'_> {
    /// Offset in units of eight bytes, two reserved bits, and whether more follow.
    #[inline(always)]
    fn offset_and_more(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Protocol of what is in fragments, or an extension header.
    #[inline(always)]
    pub fn next_header(&self) -> u8 {
        self.0[0]
    }

    /// Whether the packet is one of several. Offset 0 and no more to come is a whole packet (RFC 6946).
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.offset_and_more() & !6 != 0
    }

    /// Whether it is one without the beginning of what is in fragments.
    #[inline(always)]
    pub fn is_later(&self) -> bool {
        self.offset_and_more() & !7 != 0
    }
}

/// Where extension headers end (RFC 8200, 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionsEnd {
    /// Protocol of what follows.
    pub protocol: u8,
    /// Where that begins.
    pub at: usize,
    /// Whether the packet is a fragment.
    pub is_fragment: bool,
    /// Whether it is one without the beginning of what follows.
    pub is_later_fragment: bool,
}

impl ExtensionsEnd {
    /// The end of no extension headers; `None`: there are some.
    #[inline(always)]
    pub const fn of_none(next: u8, at: usize) -> Option<Self> {
        if is_extension(next) {
            return None;
        }
        Some(Self { protocol: next, at, is_fragment: false, is_later_fragment: false })
    }

    /// As a number, not 0: `{at 15, is fragment 1, is later fragment 1, protocol 8}` from the low end. The headers of a
    /// packet, and of one that it quotes, end below 2^15.
    #[inline(always)]
    const fn packed(self) -> u64 {
        self.at as u64
            | (self.is_fragment as u64) << 15
            | (self.is_later_fragment as u64) << 16
            | (self.protocol as u64) << 17
    }

    #[inline(always)]
    const fn unpacked(number: u64) -> Option<Self> {
        if number == 0 {
            return None;
        }
        Some(Self {
            protocol: (number >> 17) as u8,
            at: (number & 0x7fff) as usize,
            is_fragment: number >> 15 & 1 != 0,
            is_later_fragment: number >> 16 & 1 != 0,
        })
    }
}

/// Walks over the extension headers from `at`, where one of kind `next` begins. `None`: the packet ends before they do,
/// or there are more than [`MAX_EXTENSIONS`].
#[inline(always)]
pub fn walk_extensions<P: Packet + ?Sized>(
    packet: &P,
    next: u8,
    at: usize,
) -> Option<ExtensionsEnd> {
    ExtensionsEnd::unpacked(match ExtensionsEnd::of_none(next, at) {
        Some(end) => end.packed(),
        // Otherwise the verifier walks what comes after once for each number of headers.
        None => packet.hide_constant(walk(packet, next, at).map_or(0, ExtensionsEnd::packed)),
    })
}

#[inline(always)]
fn walk<P: Packet + ?Sized>(packet: &P, next: u8, at: usize) -> Option<ExtensionsEnd> {
    let mut end =
        ExtensionsEnd { protocol: next, at, is_fragment: false, is_later_fragment: false };
    for _ in 0..MAX_EXTENSIONS {
        if !is_extension(end.protocol) || end.is_later_fragment {
            return Some(end);
        }
        let header = packet.bytes::<8>(end.at)?;
        let length = match end.protocol {
            FRAGMENT => {
                end.is_later_fragment = Fragment(header).is_later();
                end.is_fragment |= Fragment(header).is_fragment();
                FRAGMENT_LENGTH
            }
            // In words of four bytes, less two (RFC 4302, 2.2).
            AUTHENTICATION => 4 * usize::from(header[1]) + 8,
            _ => 8 * usize::from(header[1]) + 8,
        };
        end.protocol = header[0];
        end.at += length;
    }
    (!is_extension(end.protocol)).then_some(end)
}

/// Whether a next header is one of those that [`walk_extensions`] walks over.
#[inline(always)]
pub const fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_headers_end_at_a_place_that_fits() {
        const LONGEST: usize = (HEADERS + 8) + HEADERS;
        const HEADERS: usize = LENGTH + MAX_EXTENSIONS * 2048;
        for at in [0, 54, 14 + LONGEST] {
            for (protocol, is_fragment, is_later_fragment) in
                [(6, false, false), (17, true, true), (255, true, false)]
            {
                let end = ExtensionsEnd { protocol, at, is_fragment, is_later_fragment };
                assert_eq!(ExtensionsEnd::unpacked(end.packed()), Some(end));
            }
        }
        assert_eq!(ExtensionsEnd::unpacked(0), None);
    }

    #[test]
    fn a_packet_ends_behind_its_last_header_or_not_at_all() {
        let mut packet = [0; 14 + 2 * 2048];
        packet[14..16].copy_from_slice(&[DESTINATION, 255]);
        packet[14 + 2048] = 17;
        let end = |last: usize| walk_extensions(&packet[..last], HOP_BY_HOP, 14);
        let whole = end(14 + 2048 + 8).map(|end| (end.protocol, end.at));
        assert_eq!(whole, Some((17, 14 + 2048 + 8)));
        assert_eq!(end(14 + 2048 + 7), None);
    }
}
