//! TCP (RFC 9293).

/// Length of the header without options, bytes.
pub const LENGTH: usize = 20;

/// FIN.
pub const FIN: u8 = 0x01;
/// SYN.
pub const SYN: u8 = 0x02;
/// PSH: data for the application at once.
pub const PSH: u8 = 0x08;
/// RST.
pub const RST: u8 = 0x04;
/// ACK.
pub const ACK: u8 = 0x10;

/// The control bits CWR to FIN.
#[inline(always)]
pub const fn flags(header: &[u8; LENGTH]) -> u8 {
    header[13]
}

/// The sequence number.
#[inline(always)]
pub const fn sequence(header: &[u8; LENGTH]) -> u32 {
    u32::from_be_bytes([header[4], header[5], header[6], header[7]])
}
