//! IPv4 (RFC 791).

use super::OUTER_HOP_LIMIT;
use crate::checksum;

/// Length of the header without options, bytes.
pub const LENGTH: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// ECN's bits of the traffic class (RFC 3168, 5).
const ECN: u8 = 3;

mod field {
    use core::ops::Range;
    pub(super) const VERSION_AND_LENGTH: usize = 0;
    pub(super) const TRAFFIC_CLASS: usize = 1;
    pub(super) const TOTAL_LENGTH: Range<usize> = 2..4;
    pub(super) const IDENTIFICATION: Range<usize> = 4..6;
    pub(super) const FRAGMENT: Range<usize> = 6..8;
    pub(super) const TTL: usize = 8;
    pub(super) const PROTOCOL: usize = 9;
    pub(super) const CHECKSUM: Range<usize> = 10..12;
    pub(super) const SOURCE: Range<usize> = 12..16;
    pub(super) const DESTINATION: Range<usize> = 16..20;
}

/// A view of a header's first 20 bytes.
#[derive(Clone, Copy)]
pub struct Ipv4<'a>(pub &'a [u8; LENGTH]);

impl Ipv4<'_> {
    #[inline(always)]
    fn u16(&self, range: core::ops::Range<usize>) -> u16 {
        u16::from_be_bytes([self.0[range.start], self.0[range.start + 1]])
    }

    #[inline(always)]
    fn word(&self, range: core::ops::Range<usize>) -> u32 {
        let at = range.start;
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Version, 4 in an IPv4 packet.
    #[inline(always)]
    pub fn version(&self) -> u8 {
        self.0[field::VERSION_AND_LENGTH] >> 4
    }

    /// Length of the header with options, bytes (0 to 60).
    #[inline(always)]
    pub fn header_length(&self) -> usize {
        usize::from(self.0[field::VERSION_AND_LENGTH] & 0xf) * 4
    }

    /// DSCP and ECN.
    #[inline(always)]
    pub fn traffic_class(&self) -> u8 {
        self.0[field::TRAFFIC_CLASS]
    }

    /// Length of the packet, header included, bytes.
    #[inline(always)]
    pub fn total_length(&self) -> u16 {
        self.u16(field::TOTAL_LENGTH)
    }

    /// What the fragments of one packet have in common.
    #[inline(always)]
    pub fn identification(&self) -> u16 {
        self.u16(field::IDENTIFICATION)
    }

    /// Whether it is a fragment that is not the first.
    #[inline(always)]
    pub fn is_later_fragment(&self) -> bool {
        self.u16(field::FRAGMENT) & OFFSET != 0
    }

    /// Whether it is any fragment.
    #[inline(always)]
    pub fn is_fragment(&self) -> bool {
        self.u16(field::FRAGMENT) & (OFFSET | MORE_FRAGMENTS) != 0
    }

    /// Whether DF is set.
    #[inline(always)]
    pub fn may_not_be_fragmented(&self) -> bool {
        self.u16(field::FRAGMENT) & DONT_FRAGMENT != 0
    }

    /// Time to live.
    #[inline(always)]
    pub fn ttl(&self) -> u8 {
        self.0[field::TTL]
    }

    /// Protocol of the payload.
    #[inline(always)]
    pub fn protocol(&self) -> u8 {
        self.0[field::PROTOCOL]
    }

    /// Source, as in the packet.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        self.word(field::SOURCE)
    }

    /// Destination, as in the packet.
    #[inline(always)]
    pub fn destination(&self) -> u32 {
        self.word(field::DESTINATION)
    }
}

/// Whether the checksum of a header without options is right.
#[inline(always)]
pub fn is_intact(header: &[u8; LENGTH]) -> bool {
    let word = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let sum = [0, 4, 8, 12, 16].into_iter().map(|at| u64::from(word(at))).sum();
    checksum::from_sum(sum) == [0; 2]
}

/// Takes one from the TTL, which is not 0, and keeps the checksum true (RFC 2003, 3.1: the
/// encapsulator forwards).
#[inline(always)]
pub fn decrement_ttl(header: &mut [u8; LENGTH]) {
    let old = [header[field::TTL], header[field::PROTOCOL]];
    // The TTL comes first in the packet, and thus is the low byte.
    replace_ttl(header, old, u16::from_le_bytes(old).wrapping_sub(1).to_le_bytes());
}

/// Sets the ECN bits and keeps the checksum true.
#[inline(always)]
pub fn set_ecn(header: &mut [u8; LENGTH], ecn: u8) {
    let [version, old, ..] = *header;
    let new = old & !ECN | ecn & ECN;
    let at = field::CHECKSUM.start;
    let sum = [header[at], header[at + 1]];
    let sum = checksum::updated(sum, [version, old], [version, new]);
    header[field::TRAFFIC_CLASS] = new;
    header[field::CHECKSUM].copy_from_slice(&sum);
}

/// Turns the packet back to its sender, with a TTL of its own.
#[inline(always)]
pub fn turn(header: &mut [u8; LENGTH]) {
    // The checksum stays: it is a sum.
    for at in field::SOURCE {
        header.swap(at, at + 4);
    }
    let old = [header[field::TTL], header[field::PROTOCOL]];
    replace_ttl(header, old, [OUTER_HOP_LIMIT, header[field::PROTOCOL]]);
}

/// Replaces TTL and protocol, which stand together, and keeps the checksum true.
#[inline(always)]
fn replace_ttl(header: &mut [u8; LENGTH], old: [u8; 2], new: [u8; 2]) {
    let at = field::CHECKSUM.start;
    let sum = checksum::updated([header[at], header[at + 1]], old, new);
    header[field::TTL..at].copy_from_slice(&new);
    header[field::CHECKSUM].copy_from_slice(&sum);
}

/// The fields of an outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Source, as in the packet.
    pub source: u32,
    /// Destination, as in the packet.
    pub destination: u32,
    /// DSCP and ECN (RFC 2983, RFC 6040: copied).
    pub traffic_class: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Length of the payload, bytes; at most 65515.
    pub payload: u16,
}

impl Outer {
    /// The header's bytes.
    ///
    /// Made and stored as words: byte by byte it would be half of the work on a packet.
    #[inline(always)]
    pub fn emit(&self) -> [u8; LENGTH] {
        let length = self.payload.wrapping_add(LENGTH as u16).to_be_bytes();
        // With DF the identification may be zero (RFC 6864, 4.1).
        let (identification, fragment) = ([0; 2], DONT_FRAGMENT.to_be_bytes());
        let first = u64::from_le_bytes([
            0x45,
            self.traffic_class,
            length[0],
            length[1],
            identification[0],
            identification[1],
            fragment[0],
            fragment[1],
        ]);
        let source = u64::from(u32::from_le_bytes(self.source.to_ne_bytes()));
        let second = u64::from(OUTER_HOP_LIMIT) | u64::from(self.protocol) << 8 | source << 32;
        let third = u32::from_le_bytes(self.destination.to_ne_bytes());
        let checksum = checksum::ipv4_header(first.to_le(), second.to_le(), third.to_le());
        let second = second | u64::from(u16::from_le_bytes(checksum)) << 16;
        let mut header = [0; LENGTH];
        header[..8].copy_from_slice(&first.to_le_bytes());
        header[8..16].copy_from_slice(&second.to_le_bytes());
        header[16..].copy_from_slice(&third.to_le_bytes());
        header
    }
}
