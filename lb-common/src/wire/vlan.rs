//! VLAN tags (IEEE 802.1Q), between a frame's MACs and its EtherType.

use super::{Packet, ethernet};

/// Length of a tag, bytes.
pub const LENGTH: usize = 4;
/// EtherType of a customer's tag.
pub const CUSTOMER: [u8; 2] = [0x81, 0x00];
/// EtherType of a service provider's tag (802.1ad), outside of a customer's.
pub const SERVICE: [u8; 2] = [0x88, 0xa8];
/// The highest VLAN id that a tag can name; 0 is none, and carries only a priority.
pub const MAX_ID: u16 = 4_094;

/// The outermost tags of a frame, two at most, as they stand in it: the first byte lowest. Zero: it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags(pub u64);

impl Tags {
    /// No tags.
    pub const NONE: Self = Self(0);

    /// A customer's tag of a VLAN, with the lowest priority.
    #[inline(always)]
    pub const fn customer(id: u16) -> Self {
        let ([a, b], [c, d]) = (CUSTOMER, id.to_be_bytes());
        Self(u32::from_le_bytes([a, b, c, d]) as u64)
    }

    /// What tags a frame has, with an EtherType behind each.
    #[inline(always)]
    pub fn read<P: Packet + ?Sized>(packet: &P) -> Self {
        const FIRST: usize = ethernet::LENGTH + LENGTH;
        const SECOND: usize = FIRST + LENGTH;
        let Some(first) = packet.bytes::<FIRST>(0) else { return Self::NONE };
        let [.., a, b, c, d, e, f] = *first;
        if !is_tag([a, b]) {
            return Self::NONE;
        }
        let second = if is_tag([e, f]) { packet.bytes::<SECOND>(0) } else { None };
        match second {
            Some([.., e, f, g, h, _, _]) => Self(u64::from_le_bytes([a, b, c, d, *e, *f, *g, *h])),
            None => Self(u32::from_le_bytes([a, b, c, d]).into()),
        }
    }

    /// Whether there is none.
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether there are two. (No tag begins with zeros.)
    #[inline(always)]
    pub const fn is_pair(self) -> bool {
        self.0 >> 32 != 0
    }

    /// Their length, bytes: 0, 4 or 8. The first bit of each tag's EtherType is set. Testing that bit needs no branch; with
    /// one, the verifier would walk the rest of the program once for each side.
    #[inline(always)]
    pub const fn length(self) -> usize {
        ((self.0 >> 5 & 4) + (self.0 >> 37 & 4)) as usize
    }

    /// Their bytes, the first [`Self::length`] of them.
    #[inline(always)]
    pub const fn bytes(self) -> [u8; 2 * LENGTH] {
        self.0.to_le_bytes()
    }
}

/// Whether an EtherType announces a tag.
#[inline(always)]
pub const fn is_tag(ether_type: [u8; 2]) -> bool {
    matches!(ether_type, CUSTOMER | SERVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(after_macs: &[u8]) -> Tags {
        Tags::read(&*[&[0xa5; 12], after_macs].concat())
    }

    #[test]
    fn a_frame_says_what_tags_it_has() {
        assert_eq!(tags(&[8, 0, 0x45, 0, 0, 0, 0, 0]), Tags::NONE);
        let one = tags(&[0x81, 0, 0x20, 5, 8, 0]);
        assert_eq!((one.length(), one.bytes()), (4, [0x81, 0, 0x20, 5, 0, 0, 0, 0]));
        let two = tags(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 0x86, 0xdd]);
        assert_eq!((two.length(), two.bytes()), (8, [0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]));
        // A third is what is inside.
        let three = tags(&[0x81, 0, 0, 7, 0x81, 0, 0, 9, 0x81, 0, 0, 1, 8, 0]);
        assert_eq!(three.bytes(), [0x81, 0, 0, 7, 0x81, 0, 0, 9]);
    }

    #[test]
    fn a_tag_counts_with_the_ether_type_behind_it() {
        assert_eq!(tags(&[0x81, 0, 0, 7, 8]), Tags::NONE);
        assert_eq!(tags(&[0x81, 0, 0, 7, 0x81, 0, 0, 9, 8]).length(), 4);
    }

    #[test]
    fn a_tag_of_ours_is_read_as_it_was_made() {
        assert_eq!(tags(&[0x81, 0, 0x0f, 0xfe, 8, 0]), Tags::customer(MAX_ID));
        assert_eq!(tags(&[0x81, 0, 0, 0, 8, 0]), Tags::customer(0), "a priority is a tag too");
    }
}
