//! UDP (RFC 768), and what it shares with TCP: the ports.

/// Length of the header, bytes.
pub const LENGTH: usize = 8;

/// Source and destination port, in the byte order of the packet.
#[inline(always)]
pub const fn ports<const N: usize>(header: &[u8; N]) -> (u16, u16) {
    const { assert!(N >= 4) };
    (u16::from_ne_bytes([header[0], header[1]]), u16::from_ne_bytes([header[2], header[3]]))
}
