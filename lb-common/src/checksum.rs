//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
//!
//! Byte order: a ones' complement sum of 16-bit words has the same bytes in memory whichever order
//! the machine reads the words in (RFC 1071, 2.B), as long as loads and the final store agree. All
//! functions here read and write words in host order, straight from and to packet bytes.

use crate::abi::service::AddressWords;

/// Folds carries into 16 bits.
#[inline(always)]
const fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// Checksum of 20 bytes whose checksum field is zero, given as two words of eight bytes and one of
/// four; wider words sum as well, for 2^16 is 1 modulo 2^16 - 1 (RFC 1071, 2.C).
#[inline(always)]
pub const fn ipv4_header(first: u64, second: u64, third: u32) -> [u8; 2] {
    const LOW: u64 = 0xffff_ffff;
    from_sum((first & LOW) + (first >> 32) + (second & LOW) + (second >> 32) + third as u64)
}

/// Checksum of words of two or four bytes with this sum.
#[inline(always)]
pub const fn from_sum(sum: u64) -> [u8; 2] {
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    (!fold(sum as u32)).to_ne_bytes()
}

/// Sum of the pseudo-header of IPv6 (RFC 8200, 8.1), for [`from_sum`]; addresses as in the packet.
#[inline(always)]
pub fn pseudo_header_v6(
    source: &AddressWords,
    destination: &AddressWords,
    (length, protocol): (u16, u8),
) -> u64 {
    let mut sum = u64::from(length.to_be()) + u64::from(u16::from(protocol).to_be());
    for word in 0..4 {
        sum += u64::from(source[word]) + u64::from(destination[word]);
    }
    sum
}

/// A checksum after one 16-bit word under it changed from `old` to `new` (RFC 1624, equation 3).
#[inline(always)]
pub const fn updated(checksum: [u8; 2], old: [u8; 2], new: [u8; 2]) -> [u8; 2] {
    let sum = !u16::from_ne_bytes(checksum) as u32
        + !u16::from_ne_bytes(old) as u32
        + u16::from_ne_bytes(new) as u32;
    (!fold(sum)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum by the book: big-endian words, end-around carry one at a time.
    fn by_the_book(bytes: &[u8]) -> [u8; 2] {
        let mut sum = 0_u16;
        for pair in bytes.chunks(2) {
            let (next, carry) = sum.overflowing_add(u16::from_be_bytes([pair[0], pair[1]]));
            sum = next + u16::from(carry);
        }
        (!sum).to_be_bytes()
    }

    fn header_checksum(header: &[u8; 20]) -> [u8; 2] {
        let (words, last) = header.split_at(16);
        let word = |at: usize| u64::from_ne_bytes(words[at..at + 8].try_into().unwrap());
        ipv4_header(word(0), word(8), u32::from_ne_bytes(last.try_into().unwrap()))
    }

    #[test]
    fn a_published_header_has_its_published_checksum() {
        // The worked example in many textbooks: 4500 0073 0000 4000 4011 [b861] c0a8 0001 c0a8 00c7.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(header_checksum(&header), [0xb8, 0x61]);
    }

    proptest::proptest! {
        #[test]
        fn any_header_sums_as_by_the_book(header: [u8; 20]) {
            let mut header = header;
            header[10] = 0;
            header[11] = 0;
            proptest::prop_assert_eq!(header_checksum(&header), by_the_book(&header));
        }

        #[test]
        fn an_update_equals_a_new_sum(header: [u8; 20], new: [u8; 2]) {
            let mut header = header;
            header[0] = 0x45;
            header[10] = 0;
            header[11] = 0;
            let sum = by_the_book(&header);
            let old = [header[8], header[9]];
            header[8] = new[0];
            header[9] = new[1];
            proptest::prop_assert_eq!(updated(sum, old, new), by_the_book(&header));
        }
    }
}
