//! Sources that no router forwards.

use crate::abi::service::{AddressWords, IPV4, V4_MAPPED};

/// Whether a packet has a source that no router forwards, or comes from its own destination.
///
/// IPv4: "this network" and broadcast, loopback, multicast and class E (RFC 1812, 5.3.7), link-local addresses (RFC 3927,
/// 2.7). IPv6: the unspecified address, loopback, v4-mapped (RFC 6890, 2.2.3), link-local (RFC 4291, 2.5.6) and multicast
/// addresses (RFC 4291, 2.7).
///
/// Most addresses are told by their first byte, so that packets of the fast path pay for few comparisons.
#[inline(always)]
pub(crate) fn is_martian(source: &AddressWords, destination: &AddressWords, version: u8) -> bool {
    if version == IPV4 {
        let [first, second, ..] = source[3].to_ne_bytes();
        return matches!(first, 0 | 127 | 224..)
            || (first, second) == (169, 254)
            || source[3] == destination[3];
    }
    let [first, second, ..] = source[0].to_ne_bytes();
    match first {
        0 if source[0] | source[1] == 0 => is_low_martian(source) || source == destination,
        0xfe if second & 0xc0 == 0x80 => true,
        0xff => true,
        _ => source[3] == destination[3] && source == destination,
    }
}

/// Of an IPv6 address that begins with 64 zeros.
#[inline(always)]
const fn is_low_martian(source: &AddressWords) -> bool {
    let last = u32::from_be(source[3]);
    source[2] == V4_MAPPED || source[2] == 0 && last <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::service::address_words;

    fn is_martian_text(source: &str) -> bool {
        let words = |text: &str| address_words(text.parse().unwrap());
        let (version, vip) =
            if source.contains(':') { (6, "2001:db8:f::1") } else { (4, "203.0.113.1") };
        is_martian(&words(source), &words(vip), version)
    }

    #[test]
    fn what_no_router_forwards() {
        for source in [
            "0.0.0.0",
            "0.255.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.255.255",
            "224.0.0.0",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            "203.0.113.1",
            "::",
            "::1",
            "::ffff:0:0",
            "::ffff:192.0.2.1",
            "::ffff:255.255.255.255",
            "fe80::",
            "fe80::1",
            "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "ff00::",
            "ff02::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db8:f::1",
        ] {
            assert!(is_martian_text(source), "{source}");
        }
    }

    #[test]
    fn the_addresses_beside_them_are_forwarded() {
        for source in [
            "1.0.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "168.254.0.1",
            "223.255.255.255",
            "203.0.113.0",
            "203.0.113.2",
            "10.0.0.1",
            "::2",
            "::1:0:0:1",
            "::fffe:ffff:ffff",
            "::1:0:0:0",
            "0:0:1::1",
            "0:1::",
            "64:ff9b::192.0.2.1",
            "fe7f:ffff::",
            "fec0::1",
            "fdff::1",
            "fc00::1",
            "2001:db8:f::2",
            "2001:db8:f:1::1",
            "2001:db8:e::1",
        ] {
            assert!(!is_martian_text(source), "{source}");
        }
    }
}
