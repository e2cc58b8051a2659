//! UDP (RFC 768), and what it shares with TCP: the ports.

/// Length of the header, bytes.
pub const LENGTH: usize = 8;

/// Source and destination port, in the byte order of the packet.
#[inline(always)]
pub const fn ports<const N: usize>(header: &[u8; N]) -> (u16, u16) {
    const { assert!(N >= 4) };
    (u16::from_ne_bytes([header[0], header[1]]), u16::from_ne_bytes([header[2], header[3]]))
}

/// A view of a header.
#[derive(Clone, Copy)]
pub struct Udp<'a>(pub &'a [u8; LENGTH]);

impl Udp<'_> {
    #[inline(always)]
    const fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    /// Source port.
    #[inline(always)]
    pub const fn source(&self) -> u16 {
        self.u16(0)
    }

    /// Destination port.
    #[inline(always)]
    pub const fn destination(&self) -> u16 {
        self.u16(2)
    }

    /// Length of header and payload, bytes.
    #[inline(always)]
    pub const fn length(&self) -> u16 {
        self.u16(4)
    }

    /// The checksum, as in the packet.
    #[inline(always)]
    pub const fn checksum(&self) -> [u8; 2] {
        [self.0[6], self.0[7]]
    }

    /// Whether the sender made a checksum.
    #[inline(always)]
    pub const fn has_checksum(&self) -> bool {
        self.u16(6) != 0
    }
}

/// The fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Length of the payload, bytes; at most 65527.
    pub payload: u16,
    /// The checksum, as in the packet. `[0; 2]`: none is made, which IPv4 allows always and IPv6 to tunnels
    /// (RFC 6935, RFC 6936).
    pub checksum: [u8; 2],
}

impl Header {
    /// The header's bytes, made as one word.
    #[inline(always)]
    pub const fn emit(&self) -> [u8; LENGTH] {
        let ports = (self.source as u64) << 48 | (self.destination as u64) << 32;
        let length = self.payload.wrapping_add(LENGTH as u16) as u64;
        let checksum = u16::from_be_bytes(self.checksum) as u64;
        (ports | length << 16 | checksum).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From port 49153 to 6080 with four bytes of payload.
    const BYTES: [u8; LENGTH] = [0xc0, 0x01, 0x17, 0xc0, 0, 12, 0xbe, 0xef];

    #[test]
    fn a_header_is_written_as_by_hand() {
        let header =
            Header { source: 49_153, destination: 6_080, payload: 4, checksum: [0xbe, 0xef] };
        assert_eq!(header.emit(), BYTES);
        let header = Header { payload: 1_000, checksum: [0; 2], ..header };
        assert_eq!(header.emit(), [0xc0, 0x01, 0x17, 0xc0, 0x03, 0xf0, 0, 0]);
    }

    #[test]
    fn each_field_is_read_from_its_place() {
        let udp = Udp(&BYTES);
        assert_eq!((udp.source(), udp.destination(), udp.length()), (49_153, 6_080, 12));
        assert_eq!(udp.checksum(), [0xbe, 0xef]);
        assert!(udp.has_checksum());
        assert!(Udp(&[0, 0, 0, 0, 0, 0, 0, 1]).has_checksum());
        assert!(!Udp(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]).has_checksum());
        assert_eq!(ports(&BYTES), (49_153_u16.to_be(), 6_080_u16.to_be()));
    }
}
