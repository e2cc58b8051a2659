//! Headers in a packet: views over byte arrays, and writers into them.
//!
//! Views only name fields; [`crate::path`] and [`crate::receive`] validate them.

pub mod ethernet;
pub mod gue;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod tcp;
pub mod udp;
pub mod vlan;

use crate::checksum;

/// IP protocol number of ICMP (RFC 792).
pub const ICMP: u8 = 1;
/// IP protocol number of ICMPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// IP protocol number of TCP (RFC 9293).
pub const TCP: u8 = 6;
/// IP protocol number of UDP (RFC 768).
pub const UDP: u8 = 17;
/// IP protocol number of IPv4 in IP (RFC 2003).
pub const IP_IN_IP: u8 = 4;
/// IP protocol number of IPv6 in IP (RFC 2473, RFC 4213).
pub const IPV6_IN_IP: u8 = 41;
/// Hop limit and TTL of the outer header (RFC 1700's recommended default).
pub const OUTER_HOP_LIMIT: u8 = 64;

/// A frame that headers can be borrowed from. In the kernel each call is one bounds check.
pub trait Packet {
    /// `N` bytes from `offset`, or `None` where the frame ends before.
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]>;

    /// Length of the frame, bytes.
    fn length(&self) -> usize;

    /// Sum of `N` bytes from `offset`, as [`crate::checksum::from_sum`] wants it; `N` is at most 512 and a
    /// multiple of 4. `None` where the frame ends before.
    fn sum<const N: usize>(&self, offset: usize) -> Option<u32>;

    /// The same of `length` bytes, any number of them; an odd one is followed by a zero. `offset` is below 2^16.
    fn sum_up(&self, offset: usize, length: usize) -> Option<u32>;

    /// The same number. In the kernel it is one that the verifier does not know: it would walk what comes after once for each
    /// value that it knows.
    #[inline(always)]
    fn hide_constant(&self, number: u64) -> u64 {
        number
    }

    /// Whether the checksum in `length` bytes from `offset` is right; `pseudo` is the sum of their pseudo-header, or 0. In the
    /// kernel none is of bytes beyond the first 32767 of a frame.
    #[inline(always)]
    fn has_right_checksum(&self, offset: usize, length: usize, pseudo: u64) -> bool {
        let sum = self.sum_up(offset, length);
        sum.is_some_and(|sum| checksum::from_sum(pseudo + u64::from(sum)) == [0; 2])
    }
}

impl Packet for [u8] {
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]> {
        self.get(offset..)?.first_chunk()
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn sum<const N: usize>(&self, offset: usize) -> Option<u32> {
        let words = self.bytes::<N>(offset)?.chunks_exact(2);
        Some(words.map(|word| u32::from(u16::from_ne_bytes([word[0], word[1]]))).sum())
    }

    fn sum_up(&self, offset: usize, length: usize) -> Option<u32> {
        let words = self.get(offset..)?.get(..length)?.chunks(2);
        let word = |word: &[u8]| [word[0], word.get(1).copied().unwrap_or(0)];
        Some(words.map(|bytes| u32::from(u16::from_ne_bytes(word(bytes)))).sum())
    }
}
