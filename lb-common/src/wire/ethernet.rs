//! Ethernet II.

/// Length of the header, bytes.
pub const LENGTH: usize = 14;
/// EtherType of IPv4.
pub const IPV4: [u8; 2] = [0x08, 0x00];
/// EtherType of IPv6.
pub const IPV6: [u8; 2] = [0x86, 0xdd];

/// EtherType of a frame.
#[inline(always)]
pub const fn ether_type(header: &[u8; LENGTH]) -> [u8; 2] {
    [header[12], header[13]]
}
