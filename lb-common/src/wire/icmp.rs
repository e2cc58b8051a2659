//! ICMP (RFC 792) and ICMPv6 (RFC 4443).

use crate::checksum;

/// Length of the header that errors and echoes share, bytes: behind an error's stands what it quotes.
pub const LENGTH: usize = 8;

/// Types of ICMP.
pub mod v4 {
    /// The answer to an echo request.
    pub const ECHO_REPLY: u8 = 0;
    /// A host asks whether another one is there.
    pub const ECHO_REQUEST: u8 = 8;
    /// The destination cannot be reached, or the packet needs fragmentation (code 4).
    pub const UNREACHABLE: u8 = 3;
    /// The TTL ran out, or fragments did not all come.
    pub const TIME_EXCEEDED: u8 = 11;
    /// A header field is wrong.
    pub const PARAMETER_PROBLEM: u8 = 12;

    /// "Time to live exceeded in transit"; not sealed.
    #[inline(always)]
    pub const fn time_exceeded() -> [u8; super::LENGTH] {
        [TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0]
    }

    /// "Fragmentation needed and DF set", where packets of `mtu` bytes fit (RFC 1191, 4); not sealed.
    #[inline(always)]
    pub const fn fragmentation_needed(mtu: u16) -> [u8; super::LENGTH] {
        let [high, low] = mtu.to_be_bytes();
        [UNREACHABLE, 4, 0, 0, 0, 0, high, low]
    }
}

/// Types of ICMPv6.
pub mod v6 {
    /// A host asks whether another one is there.
    pub const ECHO_REQUEST: u8 = 128;
    /// The answer to an echo request.
    pub const ECHO_REPLY: u8 = 129;
    /// The destination cannot be reached.
    pub const UNREACHABLE: u8 = 1;
    /// The packet does not fit.
    pub const TOO_BIG: u8 = 2;
    /// The hop limit ran out, or fragments did not all come.
    pub const TIME_EXCEEDED: u8 = 3;
    /// A header field is wrong.
    pub const PARAMETER_PROBLEM: u8 = 4;

    /// Whether a message is of neighbour discovery (RFC 4861, 4): routers and neighbours that are asked for, that say where
    /// they are, or that redirect.
    #[inline(always)]
    pub const fn is_neighbour_discovery(kind: u8) -> bool {
        matches!(kind, 133..=137)
    }

    /// "Hop limit exceeded in transit" (RFC 4443, 3.3); not sealed.
    #[inline(always)]
    pub const fn time_exceeded() -> [u8; super::LENGTH] {
        [TIME_EXCEEDED, 0, 0, 0, 0, 0, 0, 0]
    }

    /// "Packet too big", where packets of `mtu` bytes fit (RFC 4443, 3.2); not sealed.
    #[inline(always)]
    pub const fn packet_too_big(mtu: u16) -> [u8; super::LENGTH] {
        let [high, low] = mtu.to_be_bytes();
        [TOO_BIG, 0, 0, 0, 0, 0, high, low]
    }
}

/// Writes the checksum of a header whose own is zero; `rest` is the sum of all else under it.
#[inline(always)]
pub fn seal(header: &mut [u8; LENGTH], rest: u64) {
    let own = u64::from_ne_bytes(*header);
    let sum = rest + (own & 0xffff_ffff) + (own >> 32);
    header[2..4].copy_from_slice(&checksum::from_sum(sum));
}

/// A view of a header.
#[derive(Clone, Copy)]
pub struct Icmp<'a>(pub &'a [u8; LENGTH]);

impl Icmp<'_> {
    /// Type: its meaning depends on the IP version.
    #[inline(always)]
    pub const fn kind(&self) -> u8 {
        self.0[0]
    }

    /// Code: its meaning depends on the type.
    #[inline(always)]
    pub const fn code(&self) -> u8 {
        self.0[1]
    }

    /// Whether ICMP quotes a packet that went wrong.
    #[inline(always)]
    pub const fn is_error_v4(&self) -> bool {
        matches!(self.kind(), v4::UNREACHABLE | v4::TIME_EXCEEDED | v4::PARAMETER_PROBLEM)
    }

    /// Whether ICMPv6 quotes a packet that went wrong.
    #[inline(always)]
    pub const fn is_error_v6(&self) -> bool {
        matches!(self.kind(), v6::UNREACHABLE..=v6::PARAMETER_PROBLEM)
    }
}

/// Changes a header's type and updates its checksum; a wrong checksum stays wrong.
#[inline(always)]
pub const fn set_kind(header: &mut [u8; LENGTH], kind: u8) {
    let old = [header[0], header[1]];
    header[0] = kind;
    let sum = checksum::updated([header[2], header[3]], old, [kind, header[1]]);
    // An update never gives ffff, which a message of only zeros needs. Where 0000 is right, ffff is too.
    [header[2], header[3]] = if matches!(sum, [0, 0]) { [0xff, 0xff] } else { sum };
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// What a receiver sums up; ffff: the checksum is right (RFC 1071, 1).
    fn sum(message: &[u8]) -> u16 {
        message.chunks(2).fold(0, |sum, pair| {
            let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
            let (sum, carry) = u16::overflowing_add(sum, word);
            sum + u16::from(carry)
        })
    }

    /// An echo request of this identifier, number and data.
    fn request(rest: &[u8]) -> Vec<u8> {
        let mut message = [&[v4::ECHO_REQUEST, 0, 0, 0], rest].concat();
        let checksum = !sum(&message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        message
    }

    fn answer(request: &[u8]) -> Vec<u8> {
        let mut message = request.to_vec();
        set_kind(message.first_chunk_mut().unwrap(), v4::ECHO_REPLY);
        message
    }

    #[test]
    fn an_answer_of_nothing_but_zeros_has_a_checksum() {
        assert_eq!(request(&[0; 4]), [8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
        assert_eq!(answer(&request(&[0; 4])), [0, 0, 0xff, 0xff, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn the_answer_to_a_right_request_is_right(
            rest in prop_oneof![
                prop::collection::vec(any::<u8>(), 4..64),
                prop::collection::vec(prop_oneof![Just(0), Just(0xff)], 4..64),
            ]
        ) {
            prop_assert_eq!(sum(&answer(&request(&rest))), 0xffff);
        }
    }
}
