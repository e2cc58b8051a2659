//! The flow hash, written again from its formula on 128-bit integers, with a mask wherever 64 bits
//! end. Addresses and ports are the bytes of the packet read as little-endian integers.

use std::net::{IpAddr, Ipv4Addr};

use super::{frames::Flow, layout};

const MASK: u128 = u64::MAX as u128;

/// What the hash decides for a flow under a key.
#[derive(Clone, Copy, Debug)]
pub struct Hash(u64);

/// The hash of a flow as a service with some flags has it: 1 by addresses, 8 by the service's port.
pub fn of_service(flow: &Flow, protocol: u8, flags: u32, key: [u64; 2]) -> Hash {
    match flags & 9 {
        8 => of_port(flow.vip.port(), key),
        by_address => hash(flow, protocol, by_address == 1, key),
    }
}

/// The hash that the outer header shows of a flow: of addresses and ports, unless the service forwards
/// fragments (16), which have no ports.
pub fn entropy(flow: &Flow, protocol: u8, flags: u32, key: [u64; 2]) -> Hash {
    hash(flow, protocol, flags & 16 != 0, key)
}

/// The hash of a service's port alone.
pub fn of_port(port: u16, key: [u64; 2]) -> Hash {
    let first = u128::from(u64::from(port.swap_bytes()) ^ key[0]);
    Hash(finish(fold(first, key[1])))
}

/// The hash of a flow; without any port for a service by address.
pub fn hash(flow: &Flow, protocol: u8, by_address: bool, key: [u64; 2]) -> Hash {
    let port = |port: u16| if by_address { 0 } else { u64::from(port.swap_bytes()) };
    let ports = port(flow.client.port()) << 16 | port(flow.vip.port());
    let (client, vip) = (words(flow.client.ip()), words(flow.vip.ip()));
    let protocol = u64::from(protocol);
    let mut folded = if flow.client.is_ipv4() {
        vec![client[3] << 32 | ports, vip[3] << 32 | protocol]
    } else {
        vec![
            client[0] << 32 | client[1],
            client[2] << 32 | client[3],
            vip[0] << 32 | vip[1],
            vip[2] << 32 | vip[3],
            protocol << 32 | ports,
        ]
    };
    for (word, key) in folded.iter_mut().zip(key.into_iter().cycle()) {
        *word ^= key;
    }
    Hash(finish(folded[1..].iter().fold(u128::from(folded[0]), |h, &word| fold(h, word))))
}

impl Hash {
    /// All of it.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The slot among `slots`.
    pub fn slot(self, slots: u32) -> u32 {
        ((u128::from(self.0 >> 32) * u128::from(slots)) >> 32) as u32
    }

    /// The hash of the first to fourth further slot.
    pub fn further(self, attempt: u64) -> Self {
        let word = (u128::from(attempt) * 0x9e37_79b9_7f4a_7c15) & MASK;
        Self(finish(fold(u128::from(self.0), word as u64)))
    }

    /// Which of the group's eight standbys.
    pub fn standby(self) -> usize {
        (self.0 as usize & 0x700) >> 8
    }

    /// Flow label of an outer IPv6 header.
    pub fn flow_label(self) -> u32 {
        self.0 as u32 & 0xf_ffff
    }

    /// Outer IPv4 source: the first address of a prefix, with a host part of the hash's last four bytes, the last
    /// but three first.
    pub fn source_v4(self, first: Ipv4Addr, prefix: u8) -> Ipv4Addr {
        let hosts = 1_u64 << (32 - prefix);
        let bytes = u64::from((self.0 as u32).swap_bytes());
        Ipv4Addr::from(u32::from(first) + (bytes % hosts) as u32)
    }

    /// Source port of a UDP tunnel: the last 14 bits behind two that are set.
    pub fn source_port(self) -> u16 {
        (self.0 % 16_384 + 49_152) as u16
    }
}

/// Where a slot's new connections begin to be those of a ramping member, by its rank: at this ramp plus one.
pub fn ramp_threshold(slot: u32, rank: u16) -> u8 {
    let hash = finish(fold(u128::from(slot), u64::from(rank)));
    ((u128::from(hash >> 32) * 255) >> 32) as u8
}

fn fold(mut h: u128, word: u64) -> u128 {
    h ^= h >> 32;
    h = (h * 0xbf58_476d_1ce4_e5b9) & MASK;
    h ^= h >> 29;
    (h + u128::from(word)) & MASK
}

fn finish(mut h: u128) -> u64 {
    h = (h * 0x94d0_49bb_1331_11eb) & MASK;
    h ^= h >> 32;
    ((h * 0xd6e8_feb8_6659_fd93) & MASK) as u64
}

fn words(ip: IpAddr) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(layout::address(ip).chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_worked_out_elsewhere_has_its_slot() {
        // By a third hand: the formula in Python's integers, whose size has no end.
        let flow = Flow::new("192.0.2.9:4711", "198.51.100.1:80");
        let hash = hash(&flow, 6, false, [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
        assert_eq!(hash.0, 0x6791_b531_ca91_e3e8);
        assert_eq!(hash.slot(65_537), 26_514);
    }
}
