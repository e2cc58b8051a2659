//! IPv6 extension headers (RFC 8200, section 4).

use super::packet::Packet;

/// Headers that are walked over at most. Packets in the wild have one or two.
pub const MOST: usize = 4;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// Where extension headers end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Protocol of what follows.
    pub protocol: u8,
    /// Where that begins.
    pub at: usize,
    /// Whether the packet is a fragment.
    pub is_fragment: bool,
    /// Whether it is one without the beginning of what follows.
    pub is_later_fragment: bool,
}

/// Walks from `at`, where a header of kind `next` begins. `None`: the packet ends before they do, or
/// there are more than [`MOST`].
#[inline(always)]
pub fn walk<P: Packet + ?Sized>(packet: &P, next: u8, at: usize) -> Option<End> {
    let mut end = End { protocol: next, at, is_fragment: false, is_later_fragment: false };
    for _ in 0..MOST {
        if !is_extension(end.protocol) || end.is_later_fragment {
            return Some(end);
        }
        let header = packet.bytes::<8>(end.at)?;
        let length = match end.protocol {
            FRAGMENT => {
                let offset = u16::from_be_bytes([header[2], header[3]]);
                end.is_later_fragment = offset & !7 != 0;
                // Offset 0 and no more to come is a whole packet (RFC 6946).
                end.is_fragment |= offset & !6 != 0;
                8
            }
            // In words of four bytes, less two (RFC 4302, 2.2).
            AUTHENTICATION => 4 * usize::from(header[1]) + 8,
            _ => 8 * usize::from(header[1]) + 8,
        };
        end.protocol = header[0];
        end.at += length;
    }
    (!is_extension(end.protocol)).then_some(end)
}

#[inline(always)]
const fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
}
