//! Prefixes of addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    num::ParseIntError,
    str::FromStr,
};

/// An address prefix, `192.0.2.0/24` or `2001:db8::/32`; a bare address is a prefix of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why a text is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The part before the slash is no address.
    #[error("{0}: not an IPv4 or IPv6 address")]
    Address(String),
    /// The part after the slash is no number.
    #[error("{text}: prefix length")]
    Length { text: String, source: ParseIntError },
    /// An IPv6 prefix that is so short that the v4-mapped addresses, which stand for IPv4 in the
    /// trie, are in it.
    #[error("{text}: covers ::ffff:0:0/96 and with it every IPv4 address: give a longer prefix")]
    CoversIpv4 { text: String },
    /// It names more than its length says: somebody meant an address, or another length.
    #[error("{text}: has bits beyond its length: the network is {network}")]
    Beyond {
        text: String,
        /// What it would be.
        network: Prefix,
    },
    /// The length is longer than the address.
    #[error("{text}: prefix length: at most {most}")]
    TooLong {
        text: String,
        /// Bits of such an address.
        most: u8,
    },
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr =
            address.parse().map_err(|_| PrefixError::Address(address.to_owned()))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match length {
            None => most,
            Some(length) => length
                .parse()
                .map_err(|source| PrefixError::Length { text: text.to_owned(), source })?,
        };
        if bits > most {
            return Err(PrefixError::TooLong { text: text.to_owned(), most });
        }
        let prefix = Self { address, bits };
        if prefix.covers_ipv4() {
            return Err(PrefixError::CoversIpv4 { text: text.to_owned() });
        }
        // One spelling: a v4-mapped address is IPv4.
        let (bits, octets) = prefix.key();
        let network = Self::from_key(bits, octets);
        match network.address == address.to_canonical() {
            true => Ok(network),
            false => Err(PrefixError::Beyond { text: text.to_owned(), network }),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Prefix {
    /// Its first address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits that its addresses have in common.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether an address is one of its addresses; an IPv4-mapped one is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let (bits, network) = self.key();
        let most = if address.is_ipv4() { 32 } else { 128 };
        let (_, octets) = Self { address, bits: most }.key();
        u128::from_be_bytes(octets) & mask(bits) == u128::from_be_bytes(network)
    }

    /// The key in a trie of the kernel: significant bits, and the address, IPv4 v4-mapped, other bits zero.
    pub fn key(&self) -> (u32, [u8; 16]) {
        let (octets, bits) = match self.address {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().octets(), 96 + u32::from(self.bits)),
            IpAddr::V6(v6) => (v6.octets(), u32::from(self.bits)),
        };
        (bits, (u128::from_be_bytes(octets) & mask(bits)).to_be_bytes())
    }

    /// The prefix that [`Self::key`] made a key of.
    pub fn from_key(bits: u32, octets: [u8; 16]) -> Self {
        let address = IpAddr::from(octets).to_canonical();
        let bits = if address.is_ipv4() { bits.saturating_sub(96) } else { bits };
        Self { address, bits: bits as u8 }
    }

    fn covers_ipv4(&self) -> bool {
        let mapped = u128::from(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped());
        let (bits, octets) = self.key();
        self.address.is_ipv6() && bits <= 96 && mapped & mask(bits) == u128::from_be_bytes(octets)
    }
}

fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> (u32, String) {
        let (bits, octets) = text.parse::<Prefix>().unwrap().key();
        (bits, IpAddr::from(octets).to_string())
    }

    #[test]
    fn keys_are_v4_mapped() {
        assert_eq!(key("192.0.2.0/24"), (120, "::ffff:192.0.2.0".into()));
        assert_eq!(key("192.0.2.77"), (128, "::ffff:192.0.2.77".into()));
        assert_eq!(key("0.0.0.0/0"), (96, "::ffff:0.0.0.0".into()));
        assert_eq!(key("2001:db8:8000::/33"), (33, "2001:db8:8000::".into()));
        assert_eq!(key("2001:db8::1"), (128, "2001:db8::1".into()));
    }

    #[test]
    fn a_prefix_contains_what_begins_like_it() {
        for (prefix, address, expected) in [
            ("192.0.2.0/24", "192.0.2.0", true),
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "::ffff:192.0.2.7", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.0/24", "2001:db8::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8:8000::/33", "2001:db8:ffff::1", true),
            ("2001:db8:8000::/33", "2001:db8:7fff::1", false),
        ] {
            let contained = prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap());
            assert_eq!(contained, expected, "{prefix} {address}");
        }
    }

    #[test]
    fn a_key_reads_back_as_its_prefix() {
        for text in ["192.0.2.0/24", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::/32", "fe80::1/128"] {
            let (bits, octets) = text.parse::<Prefix>().unwrap().key();
            assert_eq!(Prefix::from_key(bits, octets).to_string(), text);
        }
    }

    #[test]
    fn a_prefix_is_one_however_it_is_written() {
        // What a restart reads back must be what it was told, or it would take it out again.
        for (written, meant) in [
            ("2001:0db8:8000:0::/33", "2001:db8:8000::/33"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.77/32"),
        ] {
            let prefix = written.parse::<Prefix>().unwrap();
            assert_eq!(prefix, meant.parse().unwrap(), "{written}");
            let (bits, octets) = prefix.key();
            assert_eq!(Prefix::from_key(bits, octets), prefix, "{written}");
            assert_eq!(prefix.to_string(), meant);
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused_by_name() {
        let refusal = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert_eq!(refusal("x/8"), "x: not an IPv4 or IPv6 address");
        assert_eq!(refusal("10.0.0.0/33"), "10.0.0.0/33: prefix length: at most 32");
        assert_eq!(refusal("::1/129"), "::1/129: prefix length: at most 128");
        assert_eq!(refusal("10.0.0.0/"), "10.0.0.0/: prefix length");
        for (text, network) in [
            ("10.0.0.2/24", "10.0.0.0/24"),
            ("2001:db8:ffff::1/33", "2001:db8:8000::/33"),
            ("::ffff:192.0.2.77/120", "192.0.2.0/24"),
            ("10.0.0.2/0", "0.0.0.0/0"),
        ] {
            let expected = format!("{text}: has bits beyond its length: the network is {network}");
            assert_eq!(refusal(text), expected);
        }
        for covering in ["::/0", "::/80", "::ffff:0:0/96"] {
            assert!(refusal(covering).contains("every IPv4 address"), "{covering}");
        }
        assert!("::/81".parse::<Prefix>().is_ok());
    }
}
