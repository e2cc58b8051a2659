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

/// Destination MAC, in the low 48 bits, its first byte lowest.
#[inline(always)]
pub const fn destination(header: &[u8; LENGTH]) -> u64 {
    let [a, b, c, d, e, f, ..] = *header;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Whether a frame is for a group of hosts, which broadcast is too (IEEE 802.3, 3.2.3).
#[inline(always)]
pub const fn is_to_group(header: &[u8; LENGTH]) -> bool {
    header[0] & 1 != 0
}

/// Source MAC, as [`destination`].
#[inline(always)]
pub const fn source(header: &[u8; LENGTH]) -> u64 {
    let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *header;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

/// Turns the frame back to its sender.
#[inline(always)]
pub fn turn(header: &mut [u8; LENGTH]) {
    for at in 0..6 {
        header.swap(at, at + 6);
    }
}

/// A header's bytes. MACs stand in the low 48 bits, their first byte lowest.
#[inline(always)]
pub fn header(destination: u64, source: u64, ether_type: [u8; 2]) -> [u8; LENGTH] {
    let mut header = [0; LENGTH];
    header[..8].copy_from_slice(&(destination & MAC | source << 48).to_le_bytes());
    header[8..12].copy_from_slice(&((source >> 16) as u32).to_le_bytes());
    header[12..].copy_from_slice(&ether_type);
    header
}

/// The bits of a MAC.
const MAC: u64 = 0xffff_ffff_ffff;
