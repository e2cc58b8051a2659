//! Generic UDP Encapsulation, variant 0 (draft-ietf-intarea-gue, 3).

/// Length of the header without optional fields, bytes.
pub const LENGTH: usize = 4;
/// The port that IANA registered for it.
pub const PORT: u16 = 6080;
/// The variant that this is; variant 1 is an IP header straight behind that of UDP.
pub const VARIANT: u8 = 0;

const CONTROL: u8 = 0x20;
const WORDS: u8 = 0x1f;

/// A header's bytes in front of data of an IP protocol: no optional fields, no flags.
#[inline(always)]
pub const fn header(protocol: u8) -> [u8; LENGTH] {
    [VARIANT << 6, protocol, 0, 0]
}

/// A view of a header's first four bytes.
#[derive(Clone, Copy)]
pub struct Gue<'a>(pub &'a [u8; LENGTH]);

impl Gue<'_> {
    /// Variant, 0 to 3; in others than [`VARIANT`] the rest of the header differs.
    #[inline(always)]
    pub const fn variant(&self) -> u8 {
        self.0[0] >> 6
    }

    /// Whether it is a control message; [`Self::protocol`] is then its kind.
    #[inline(always)]
    pub const fn is_control(&self) -> bool {
        self.0[0] & CONTROL != 0
    }

    /// Length of the header with optional fields, bytes: 4 to 128.
    #[inline(always)]
    pub const fn header_length(&self) -> usize {
        LENGTH + 4 * (self.0[0] & WORDS) as usize
    }

    /// IP protocol number of the payload.
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        self.0[1]
    }

    /// Which optional fields there are.
    #[inline(always)]
    pub const fn flags(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_what_is_in_it_and_no_more() {
        assert_eq!(header(4), [0, 4, 0, 0]);
        assert_eq!(header(41), [0, 41, 0, 0]);
    }

    #[test]
    fn each_field_is_read_from_its_bits() {
        // Variant 0, data, three words of optional fields, UDP, the flags' highest and lowest bit.
        let data = Gue(&[0b000_00011, 17, 0x80, 0x01]);
        assert_eq!((data.variant(), data.is_control()), (0, false));
        assert_eq!((data.header_length(), data.protocol(), data.flags()), (16, 17, 0x8001));
        let control = Gue(&[0b001_00000, 1, 0, 0]);
        assert_eq!((control.variant(), control.is_control()), (0, true));
        assert_eq!((control.header_length(), control.protocol()), (4, 1));
        let longest = Gue(&[0b000_11111, 4, 0, 0]);
        assert_eq!((longest.variant(), longest.is_control()), (0, false));
        assert_eq!(longest.header_length(), 128);
        // The first byte of an IPv4 and an IPv6 header, which are variant 1.
        assert_eq!(Gue(&[0x45, 0, 0, 20]).variant(), 1);
        assert_eq!(Gue(&[0x60, 0, 0, 0]).variant(), 1);
        assert_eq!(Gue(&[0xff; 4]).variant(), 3);
    }
}
