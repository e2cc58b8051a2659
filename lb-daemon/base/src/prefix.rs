//! Prefixes of addresses.

use std::{
    collections::BTreeMap,
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
        let prefix = Self::parse(text)?;
        let is_all_mapped = text.contains(':') && prefix.address.is_ipv4() && prefix.bits == 0;
        match prefix.covers_ipv4() || is_all_mapped {
            true => Err(PrefixError::CoversIpv4 { text: text.to_owned() }),
            false => Ok(prefix),
        }
    }
}

impl Prefix {
    /// The prefix that a text spells. Unlike one of [`FromStr`], it may be so short that v4-mapped addresses are in it, so it
    /// is no key of a trie that has both families.
    ///
    /// # Errors
    /// [`PrefixError`], but for [`PrefixError::CoversIpv4`].
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
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

/// Of prefixes the longest one that contains an address, with its value.
pub fn longest_match<V>(prefixes: &BTreeMap<Prefix, V>, address: IpAddr) -> Option<(Prefix, &V)> {
    let address = address.to_canonical();
    let mut bound = Prefix::containing(address, u8::MAX);
    loop {
        let (found, value) = prefixes.range(..=bound).next_back()?;
        if found.contains(address) {
            return Some((*found, value));
        }
        // What contains the address is before this one in the order, so it contains this one too.
        bound = Prefix::containing(address, found.common_bits(address)?);
    }
}

impl Prefix {
    /// The prefix of an address that has so many bits, at most all of them.
    pub fn containing(address: IpAddr, bits: u8) -> Self {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let (bits, octets) = Self { address, bits: bits.min(most) }.key();
        Self::from_key(bits, octets)
    }

    /// How many bits an address and the prefix begin with in common; `None`: they are of different families.
    fn common_bits(&self, address: IpAddr) -> Option<u8> {
        let number = |address| u128::from_be_bytes(Self::containing(address, u8::MAX).key().1);
        let same = (number(self.address) ^ number(address)).leading_zeros();
        let same = if self.address.is_ipv4() { same.checked_sub(96)? } else { same };
        (self.address.is_ipv4() == address.is_ipv4()).then_some(self.bits.min(same as u8))
    }

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
        // A short IPv6 prefix has the v4-mapped addresses, which stand for IPv4.
        self.address.is_ipv4() == address.is_ipv4()
            && u128::from_be_bytes(octets) & mask(bits) == u128::from_be_bytes(network)
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
    use std::net::Ipv6Addr;

    use proptest::{array::uniform4, collection::vec, prelude::*, sample::select};

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

    #[test]
    fn a_prefix_that_is_no_key_of_a_trie_has_no_ipv4() {
        for (text, v6) in
            [("::/0", "2001:db8::1"), ("::/80", "::1"), ("::fffe:0:0/95", "::fffe:0:1")]
        {
            let prefix = Prefix::parse(text).unwrap();
            assert_eq!(prefix.to_string(), text);
            assert!(prefix.contains(v6.parse().unwrap()), "{text}");
            assert!(!prefix.contains("192.0.2.1".parse().unwrap()), "{text}");
        }
    }

    fn longest(prefixes: &[&str], address: &str) -> Option<String> {
        let prefixes = prefixes.iter().map(|text| (Prefix::parse(text).unwrap(), ()));
        let prefixes = prefixes.collect();
        let found = longest_match(&prefixes, address.parse().unwrap());
        found.map(|(prefix, ())| prefix.to_string())
    }

    #[test]
    fn the_longest_prefix_counts() {
        let v4 =
            ["0.0.0.0/0", "203.0.113.0/24", "203.0.113.0/25", "203.0.113.7", "203.0.113.64/26"];
        for (address, expected) in [
            ("203.0.113.7", "203.0.113.7/32"),
            ("203.0.113.6", "203.0.113.0/25"),
            ("203.0.113.8", "203.0.113.0/25"),
            ("203.0.113.65", "203.0.113.64/26"),
            ("203.0.113.128", "203.0.113.0/24"),
            ("::ffff:203.0.113.128", "203.0.113.0/24"),
            ("203.0.114.0", "0.0.0.0/0"),
            ("0.0.0.0", "0.0.0.0/0"),
            ("255.255.255.255", "0.0.0.0/0"),
        ] {
            assert_eq!(longest(&v4, address).as_deref(), Some(expected), "{address}");
        }
        assert_eq!(longest(&v4, "2001:db8::1"), None);
        assert_eq!(longest(&v4[1..], "203.0.112.255"), None);
        assert_eq!(longest(&[], "203.0.113.7"), None);
        let both = ["::/0", "203.0.113.0/24"];
        assert_eq!(longest(&both, "192.0.2.1"), None);
        assert_eq!(longest(&both, "2001:db8::1").as_deref(), Some("::/0"));
    }

    fn byte() -> impl Strategy<Value = u8> {
        select(&[0, 1, 128, 255][..])
    }

    proptest! {
        /// As a look at each prefix finds it. Few distinct bytes make prefixes contain each other.
        #[test]
        fn the_longest_match_is_that_of_all_prefixes(
            prefixes in vec((any::<bool>(), uniform4(byte()), 0..=40_u8), 0..30),
            (is_v4, bytes) in (any::<bool>(), uniform4(byte())),
        ) {
            let address = |is_v4, bytes: [u8; 4]| {
                let v4 = Ipv4Addr::from(bytes);
                if is_v4 { IpAddr::V4(v4) } else { Ipv6Addr::from(u128::from(v4.to_bits()) << 96).into() }
            };
            let prefixes: BTreeMap<Prefix, ()> = prefixes
                .into_iter()
                .map(|(is_v4, bytes, bits)| (Prefix::containing(address(is_v4, bytes), bits), ()))
                .collect();
            let address = address(is_v4, bytes);
            let containing = prefixes.keys().filter(|prefix| prefix.contains(address));
            let expected = containing.max_by_key(|prefix| prefix.bits()).copied();
            let found = longest_match(&prefixes, address).map(|(prefix, ())| prefix);
            prop_assert_eq!(found, expected);
        }
    }
}
