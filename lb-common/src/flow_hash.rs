//! The keyed hash of a flow (`mx2`), and what its bits decide.
//!
//! Part of the agreement between balancers: a change here moves connections.

use crate::abi::service::{AddressWords, IPV4, ServiceKey};

/// A flow's 5-tuple. Words hold bytes as in the packet. Aligned, because the compiler stores two words at once and the
/// verifier requires aligned stores on the stack.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowTuple {
    /// Client address, IPv4 v4-mapped.
    pub client: AddressWords,
    /// VIP, IPv4 v4-mapped.
    pub vip: AddressWords,
    /// Client port (0 for a by-address service).
    pub client_port: u16,
    /// Service port.
    pub service_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// 4 or 6.
    pub version: u8,
}

impl FlowTuple {
    /// The key that the flow's service is looked up by first.
    #[inline(always)]
    pub const fn service_key(&self) -> ServiceKey {
        let Self { vip, service_port, protocol, version, .. } = *self;
        ServiceKey { address: vip, port: service_port, protocol, version }
    }
}

/// 64 bits of hash: the high half picks the slot, the low half everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash(pub u64);

const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;
const THIRD: u64 = 0xd6e8_feb8_6659_fd93;
/// Steps of the sequence of further slots (2^64 divided by the golden ratio, odd).
const AGAIN: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
const fn step(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(FIRST);
    (hash ^ (hash >> 29)).wrapping_add(word)
}

#[inline(always)]
const fn finish(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(SECOND);
    (hash ^ (hash >> 32)).wrapping_mul(THIRD)
}

#[inline(always)]
const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

impl FlowHash {
    /// Hash of a flow under a key of 128 bits.
    #[inline(always)]
    pub const fn new(flow: &FlowTuple, key: &[u64; 2]) -> Self {
        let ports = (flow.client_port as u32) << 16 | flow.service_port as u32;
        let [k0, k1] = *key;
        let hash = if flow.version == IPV4 {
            let hash = pair(flow.client[3], ports) ^ k0;
            step(hash, pair(flow.vip[3], flow.protocol as u32) ^ k1)
        } else {
            let hash = pair(flow.client[0], flow.client[1]) ^ k0;
            let hash = step(hash, pair(flow.client[2], flow.client[3]) ^ k1);
            let hash = step(hash, pair(flow.vip[0], flow.vip[1]) ^ k0);
            let hash = step(hash, pair(flow.vip[2], flow.vip[3]) ^ k1);
            step(hash, pair(flow.protocol as u32, ports) ^ k0)
        };
        Self(finish(hash))
    }

    /// Hash of a service's port alone: that of an IPv4 flow whose other fields are 0. So services of one pool that have the
    /// same port get the same backend.
    #[inline(always)]
    pub const fn from_port(service_port: u16, key: &[u64; 2]) -> Self {
        let nothing = FlowTuple {
            client: [0; 4],
            vip: [0; 4],
            client_port: 0,
            service_port,
            protocol: 0,
            version: IPV4,
        };
        Self::new(&nothing, key)
    }

    /// The slot among `slots`, by multiply-shift.
    #[inline(always)]
    pub const fn slot(self, slots: u32) -> u32 {
        (((self.0 >> 32) * slots as u64) >> 32) as u32
    }

    /// The hash of a further try: its slot is independent of the first one's.
    #[inline(always)]
    pub const fn again(self, attempt: u32) -> Self {
        Self(finish(step(self.0, (attempt as u64).wrapping_mul(AGAIN))))
    }

    /// Which of eight standbys.
    #[inline(always)]
    pub const fn standby(self) -> u32 {
        (self.0 as u32 >> 8) & 7
    }

    /// 20 bits for the outer flow label (RFC 6438).
    #[inline(always)]
    pub const fn flow_label(self) -> u32 {
        (self.0 as u32) & 0xf_ffff
    }

    /// 32 bits for the host part of an outer IPv4 source, as in the packet: the lowest bits of an address, which even
    /// a long prefix leaves, are others than those of the source port, so that both together spread flows.
    #[inline(always)]
    pub const fn source_bits(self) -> u32 {
        self.0 as u32
    }

    /// The source port of a UDP tunnel: 14 bits in the range 49152 to 65535 (draft-ietf-intarea-gue, 5.6.1).
    #[inline(always)]
    pub const fn source_port(self) -> u16 {
        self.0 as u16 | 0xc000
    }

    /// A number below 255 that is fixed for a slot and a member's rank in its group, which equal configurations
    /// make equal on all balancers: below the ramp, the slot's new connections are the member's.
    #[inline(always)]
    pub const fn ramp_threshold(slot: u32, rank: u16) -> u8 {
        (((finish(step(slot as u64, rank as u64)) >> 32) * 255) >> 32) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::service::{IPV6, address_words};
    use std::{net::IpAddr, vec, vec::Vec};

    fn flow(client: &str, vip: &str, client_port: u16) -> FlowTuple {
        let client: IpAddr = client.parse().unwrap();
        FlowTuple {
            client: address_words(client),
            vip: address_words(vip.parse().unwrap()),
            client_port: client_port.to_be(),
            service_port: 80_u16.to_be(),
            protocol: 6,
            version: if client.is_ipv4() { IPV4 } else { IPV6 },
        }
    }

    /// The formula of the design, written again on 128-bit integers with explicit masks.
    fn mx2_of_the_design(client: u32, ports: u32, vip: u32, proto: u32, k0: u64, k1: u64) -> u32 {
        let mask = u128::from(u64::MAX);
        let mut h = u128::from((u64::from(client) << 32 | u64::from(ports)) ^ k0);
        h ^= h >> 32;
        h = (h * 0xbf58476d1ce4e5b9) & mask;
        h ^= h >> 29;
        h = (h + u128::from((u64::from(vip) << 32 | u64::from(proto)) ^ k1)) & mask;
        h = (h * 0x94d049bb133111eb) & mask;
        h ^= h >> 32;
        h = (h * 0xd6e8feb86659fd93) & mask;
        (h >> 32) as u32
    }

    proptest::proptest! {
        #[test]
        fn ipv4_follows_the_formula(client: u32, port: u16, vip: u32, key: [u64; 2]) {
            let tuple = FlowTuple {
                client: [0, 0, 0, client], vip: [0, 0, 0, vip], client_port: port,
                service_port: 80, protocol: 17, version: IPV4,
            };
            let ports = u32::from(port) << 16 | 80;
            proptest::prop_assert_eq!(
                (FlowHash::new(&tuple, &key).0 >> 32) as u32,
                mx2_of_the_design(client, ports, vip, 17, key[0], key[1])
            );
        }

        #[test]
        fn a_slot_is_below_the_size(hash: u64, slots in 1..=16_777_213_u32) {
            proptest::prop_assert!(FlowHash(hash).slot(slots) < slots);
        }
    }

    /// Chi-squared at most six standard deviations above that of a random spread; counting inputs
    /// may well be spread more evenly than random ones.
    fn assert_even(counts: &[u64], total: u64) {
        let expected = total as f64 / counts.len() as f64;
        let chi2: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        let freedom = counts.len() as f64 - 1.0;
        assert!(chi2 - freedom < 6.0 * (2.0 * freedom).sqrt(), "chi2 {chi2} of {freedom}");
    }

    fn spread(flows: impl Iterator<Item = FlowTuple>, pick: impl Fn(FlowHash) -> u32) -> Vec<u64> {
        let mut counts = vec![0; 251];
        for tuple in flows {
            counts[pick(FlowHash::new(&tuple, &[7, 9])) as usize] += 1;
        }
        counts
    }

    #[test]
    fn counting_ports_and_counting_addresses_spread_evenly() {
        let slot = |hash: FlowHash| hash.slot(251);
        let ports = (0..60_000_u16).map(|p| flow("192.0.2.1", "198.51.100.1", p));
        assert_even(&spread(ports, slot), 60_000);
        let ports6 = (0..60_000_u16).map(|p| flow("2001:db8::1", "2001:db8:1::1", p));
        assert_even(&spread(ports6, slot), 60_000);
        let hosts = (0..60_000_u32).map(|n| FlowTuple {
            client: [0, 0, 0, n.to_be()],
            ..flow("192.0.2.1", "198.51.100.1", 1000)
        });
        assert_even(&spread(hosts, slot), 60_000);
    }

    /// The low half too: it picks the standby, and the flow label.
    #[test]
    fn every_bit_that_decides_something_depends_on_the_whole_port() {
        for (client, vip) in [("192.0.2.1", "198.51.100.1"), ("2001:db8::1", "2001:db8:1::1")] {
            for shift in [0, 8, 16, 24, 32, 40, 48, 56] {
                let flows = (0..60_000_u16).map(|port| flow(client, vip, port));
                let mut counts = vec![0; 256];
                for tuple in flows {
                    counts[(FlowHash::new(&tuple, &[7, 9]).0 >> shift) as usize & 0xff] += 1;
                }
                assert_even(&counts, 60_000);
            }
        }
    }

    #[test]
    fn further_tries_are_spread_within_one_slot() {
        // All flows of one first slot: their second slots must still be even.
        let ours = |tuple: &FlowTuple| FlowHash::new(tuple, &[7, 9]).slot(16) == 3;
        for attempt in 1..=4 {
            let flows = (0..60_000_u16).map(|p| flow("192.0.2.1", "198.51.100.1", p)).filter(ours);
            let counts = spread(flows, |hash| hash.again(attempt).slot(251));
            let total = counts.iter().sum();
            assert!(total > 3_000);
            assert_even(&counts, total);
        }
    }

    #[test]
    fn the_key_changes_every_slot() {
        let tuple = flow("192.0.2.1", "198.51.100.1", 4711);
        let same = (0..1_000_u64)
            .filter(|&k| {
                FlowHash::new(&tuple, &[k, 1]).slot(65_537)
                    == FlowHash::new(&tuple, &[k, 2]).slot(65_537)
            })
            .count();
        assert!(same < 5, "{same} of 1000 keys agree");
    }
}
