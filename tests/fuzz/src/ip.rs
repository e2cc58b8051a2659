//! IP packets, read by the words of RFC 791 and RFC 8200 and by nothing of ours.

use std::net::IpAddr;

/// Length of an Ethernet header.
pub const ETHERNET: usize = 14;

/// What an IP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'a> {
    /// 4 or 6.
    pub version: u8,
    /// Its header alone.
    pub header: &'a [u8],
    /// What its header says that it carries.
    pub payload: &'a [u8],
    /// Protocol or next header.
    pub protocol: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
}

/// Reads an IP packet with padding behind it. `None`: it is none, or is not whole.
pub fn read(bytes: &[u8]) -> Option<Ip<'_>> {
    let number =
        |at: usize| Some(usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
    let (header, total) = match bytes.first()? >> 4 {
        4 => (usize::from(bytes[0] & 15) * 4, number(2)?),
        6 => (40, number(4)? + 40),
        _ => return None,
    };
    let version = bytes[0] >> 4;
    if header < 20 || total < header || total > bytes.len() {
        return None;
    }
    let (header, payload) = bytes[..total].split_at(header);
    let v4 = |at: usize| IpAddr::from(*header[at..].first_chunk::<4>().unwrap());
    let v6 = |at: usize| IpAddr::from(*header[at..].first_chunk::<16>().unwrap());
    Some(match version {
        4 => Ip {
            version,
            header,
            payload,
            protocol: header[9],
            hop_limit: header[8],
            traffic_class: header[1],
            source: v4(12),
            destination: v4(16),
        },
        _ => Ip {
            version,
            header,
            payload,
            protocol: header[6],
            hop_limit: header[7],
            traffic_class: header[0] << 4 | header[1] >> 4,
            source: v6(8),
            destination: v6(24),
        },
    })
}

impl Ip<'_> {
    /// Length of the packet, bytes.
    pub fn length(&self) -> usize {
        self.header.len() + self.payload.len()
    }

    /// Whether the header's own checksum holds; IPv6 has none.
    pub fn is_sound(&self) -> bool {
        self.version == 6 || sum([self.header]) == 0xffff
    }

    /// Whether the checksum of the ICMP message that it carries holds (RFC 792; RFC 4443, 2.3).
    pub fn has_sound_icmp(&self) -> bool {
        if self.version == 4 {
            return sum([self.payload]) == 0xffff;
        }
        let length = (self.payload.len() as u32).to_be_bytes();
        sum([&self.header[8..40], &length, &[0, 0, 0, 58], self.payload]) == 0xffff
    }

    /// Whether the checksum of the TCP segment, UDP datagram or ICMP message that it carries holds. Nobody sees
    /// another one of a fragment, or a UDP datagram without one, or of what is none of these.
    pub fn has_sound_segment(&self) -> bool {
        let Some((protocol, segment)) = self.segment() else { return true };
        let segment = match (protocol, segment) {
            (17, [_, _, _, _, high, low, rest @ ..]) => {
                let claimed = usize::from(u16::from_be_bytes([*high, *low]));
                match (segment.get(..claimed), rest) {
                    (Some(whole), [_, _, ..]) if claimed >= 8 => whole,
                    _ => return false,
                }
            }
            (17, _) => return false,
            (1 | 6 | 58, segment) => segment,
            _ => return true,
        };
        if protocol == 17 && segment[6..8] == [0, 0] {
            return true;
        }
        if protocol == 1 {
            return sum([segment]) == 0xffff;
        }
        let addresses = if self.version == 4 { &self.header[12..20] } else { &self.header[8..40] };
        let [high, low] = (segment.len() as u16).to_be_bytes();
        sum([addresses, &[0, protocol, high, low], segment]) == 0xffff
    }

    /// What it carries behind extension headers (RFC 8200, 4.1; RFC 4302, 2.2), and of which protocol; `None`:
    /// it is a fragment, or they do not end in it.
    fn segment(&self) -> Option<(u8, &[u8])> {
        let (mut protocol, mut rest) = (self.protocol, self.payload);
        if self.version == 4 {
            return (!self.is_fragment()).then_some((protocol, rest));
        }
        loop {
            let length = match (protocol, rest) {
                (0 | 43 | 60, [_, words, ..]) => 8 * usize::from(*words) + 8,
                (51, [_, words, ..]) => 4 * usize::from(*words) + 8,
                (44, [_, _, high, low, ..]) if *high == 0 && *low & 0xf9 == 0 => 8,
                (0 | 43 | 44 | 51 | 60, _) => return None,
                _ => return Some((protocol, rest)),
            };
            protocol = rest[0];
            rest = rest.get(length..)?;
        }
    }

    /// Whether only its sender may fragment it: by IPv4's DF, or because it is of IPv6.
    pub fn has_df(&self) -> bool {
        self.version == 6 || self.header[6] & 0x40 != 0
    }

    /// Whether it is a fragment by its IPv4 header.
    pub fn is_fragment(&self) -> bool {
        self.version == 4 && (self.header[6] & 0x3f, self.header[7]) != (0, 0)
    }
}

/// Ones' complement sum of 16-bit numbers (RFC 1071), of parts that all but the last have an even length.
pub fn sum<const N: usize>(parts: [&[u8]; N]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into());
            if sum > 0xffff {
                sum -= 0xffff;
            }
        }
    }
    sum as u16
}

/// A frame without its VLAN tags, at most two, and these.
pub fn untagged(frame: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut end = 12;
    while end < 20
        && matches!(frame.get(end..end + 2), Some([0x81, 0x00] | [0x88, 0xa8]))
        && frame.len() >= end + 6
    {
        end += 4;
    }
    let end = end.min(frame.len());
    let macs = frame.len().min(12);
    ([&frame[..macs], &frame[end..]].concat(), frame[macs..end].to_vec())
}
