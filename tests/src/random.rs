//! Numbers that look random and are the same each time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::topology::Fabric;

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// An address and an unprivileged port of the client's, of the same IP version as `like`.
    pub fn client(&mut self, like: IpAddr) -> SocketAddr {
        let port = 1024 + self.below(65536 - 1024) as u16;
        let number = self.next();
        let address: IpAddr = if like.is_ipv4() {
            let (prefix, bits) = Fabric::CLIENTS_V4;
            // Neither the first nor the last address of the prefix.
            let host = 1 + (number as u32) % ((1 << (32 - bits)) - 2);
            Ipv4Addr::from_bits(prefix.to_bits() | host).into()
        } else {
            let (prefix, bits) = Fabric::CLIENTS_V6;
            let host = 1 + (u128::from(number) << 16) % ((1 << (128 - bits)) - 2);
            Ipv6Addr::from_bits(prefix.to_bits() | host).into()
        };
        SocketAddr::new(address, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_in_their_prefix() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let IpAddr::V4(v4) = random.client(Fabric::VIP_V4.into()).ip() else { panic!("v6") };
            assert!((64..128).contains(&v4.octets()[1]) && v4.octets()[0] == 100, "{v4}");
            let v6 = random.client(Fabric::VIP_V6.into());
            assert!(v6.to_string().starts_with("[2001:db8:ca:"), "{v6}");
            assert!(v6.port() >= 1024);
        }
    }
}
