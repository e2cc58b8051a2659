//! What a role is for, if it is not for everything.

use std::{fmt, net::IpAddr, str::FromStr, sync::Arc};

use lb_base::{Prefix, PrefixError, error_chain};

/// Most patterns of a client, and most prefixes.
const MOST: usize = 100;

/// Some pools, and what belongs to them: `web-*,api`. With prefixes of addresses after an `@`, only services at these
/// addresses: `web-*@192.0.2.0/24,2001:db8::/64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pools: PoolPatterns,
    /// Empty: services at any address.
    vips: Arc<[Prefix]>,
}

impl Scope {
    /// Whether a pool is one of them.
    pub fn has_pool(&self, name: &str) -> bool {
        self.pools.matches(name)
    }

    /// Whether services of its pools may have an address.
    pub fn has_vip(&self, address: IpAddr) -> bool {
        self.vips.is_empty() || self.vips.iter().any(|prefix| prefix.contains(address))
    }
}

impl FromStr for Scope {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (pools, vips) = match text.split_once('@') {
            Some((pools, vips)) => (pools, vips.split(',').map(vip_prefix).collect()),
            None => (text, Ok(Vec::new())),
        };
        let (pools, vips) = (pools.parse()?, vips?);
        match vips.len() > MOST {
            true => Err(PatternError::TooManyPrefixes),
            false => Ok(Self { pools, vips: vips.into() }),
        }
    }
}

fn vip_prefix(text: &str) -> Result<Prefix, PatternError> {
    text.parse().map_err(PatternError::Prefix)
}

/// As it stands in a sentence after `the pools`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pools.fmt(f)?;
        if self.vips.is_empty() {
            return Ok(());
        }
        let vips: Vec<_> = self.vips.iter().map(ToString::to_string).collect();
        write!(f, " with services at {}", vips.join(","))
    }
}

/// Patterns, of which one must match. `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PoolPatterns(Arc<[String]>);

/// Why a text is no list of patterns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a pattern of pools is empty")]
    Empty,
    #[error("{0:?} is not a pattern of pools; it may hold only a-z, 0-9, '-' and '*'")]
    Characters(String),
    #[error("at most {MOST} patterns of pools are allowed")]
    TooMany,
    #[error("addresses of services: {}", error_chain::message(.0))]
    Prefix(PrefixError),
    #[error("at most {MOST} prefixes of addresses are allowed")]
    TooManyPrefixes,
}

impl PoolPatterns {
    fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }
}

impl FromStr for PoolPatterns {
    type Err = PatternError;

    /// From `web-*,api`.
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-*".contains(&b);
        let pattern = |text: &str| match text {
            "" => Err(PatternError::Empty),
            text if text.bytes().all(fits) => Ok(text.to_owned()),
            text => Err(PatternError::Characters(text.into())),
        };
        let patterns = text.split(',').map(pattern).collect::<Result<Vec<_>, _>>()?;
        if patterns.len() > MOST {
            return Err(PatternError::TooMany);
        }
        Ok(Self(patterns.into()))
    }
}

impl fmt::Display for PoolPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Each part between stars is looked for after the one before, the first at the beginning and the last at the end.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn patterns(text: &str) -> PoolPatterns {
        text.parse().unwrap()
    }

    #[test]
    fn one_of_them_must_match_the_whole_name() {
        let some = patterns("web-*,api");
        assert_eq!(some.to_string(), "web-*,api");
        for (name, expected) in [
            ("web-", true),
            ("web-eu", true),
            ("api", true),
            ("web", false),
            ("api2", false),
            ("my-web-eu", false),
        ] {
            assert_eq!(some.matches(name), expected, "{name}");
        }
        for (pattern, name, expected) in [
            ("*", "anything", true),
            ("*-eu", "web-eu", true),
            ("*-eu", "web-eu-1", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "ac", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(patterns(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert_eq!("".parse::<PoolPatterns>(), Err(PatternError::Empty));
        assert_eq!("web,".parse::<PoolPatterns>(), Err(PatternError::Empty));
        for wrong in ["Web", "we b", "web?", "web.*"] {
            let error = wrong.parse::<PoolPatterns>().unwrap_err();
            assert_eq!(error, PatternError::Characters(wrong.into()));
        }
        assert_eq!(vec!["a"; 101].join(",").parse::<PoolPatterns>(), Err(PatternError::TooMany));
    }

    #[test]
    fn services_may_be_limited_to_addresses() {
        let scope: Scope = "web-*,api@192.0.2.0/24,2001:db8::/64".parse().unwrap();
        assert_eq!(scope.to_string(), "web-*,api with services at 192.0.2.0/24,2001:db8::/64");
        assert!(scope.has_pool("web-eu") && !scope.has_pool("dns"));
        let has = |scope: &Scope, address: &str| scope.has_vip(address.parse().unwrap());
        for (address, expected) in [
            ("192.0.2.0", true),
            ("192.0.2.255", true),
            ("192.0.3.0", false),
            ("2001:db8::1", true),
            ("2001:db8:0:1::1", false),
        ] {
            assert_eq!(has(&scope, address), expected, "{address}");
        }
        let single: Scope = "*@192.0.2.7".parse().unwrap();
        assert!(has(&single, "192.0.2.7") && !has(&single, "192.0.2.8"));
        let all: Scope = "web-*".parse().unwrap();
        assert_eq!(all.to_string(), "web-*");
        assert!(has(&all, "192.0.3.0") && has(&all, "2001:db8:1::1"));
    }

    #[test]
    fn what_is_no_scope_is_refused() {
        let refusal = |text: &str| text.parse::<Scope>().unwrap_err().to_string();
        assert_eq!(refusal("@192.0.2.0/24"), "a pattern of pools is empty");
        assert_eq!(refusal("web@"), "addresses of services: : not an IPv4 or IPv6 address");
        assert_eq!(
            refusal("web@192.0.2.1/24"),
            "addresses of services: 192.0.2.1/24: has bits beyond its length: the network is 192.0.2.0/24"
        );
        assert!(refusal("web@192.0.2.0/24@192.0.3.0/24").starts_with("addresses of services: "));
        let many = format!("web@{}", vec!["192.0.2.1"; 101].join(","));
        assert_eq!(refusal(&many), "at most 100 prefixes of addresses are allowed");
    }

    /// Once more, character by character.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                naive(rest, name)
                    || name.split_first().is_some_and(|(_, left)| naive(pattern, left))
            }
            (Some((one, pattern)), Some((other, name))) => one == other && naive(pattern, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_a_naive_reading_does(pattern in "[ab*]{1,7}", name in "[ab]{0,8}") {
            let found = patterns(&pattern).matches(&name);
            prop_assert_eq!(found, naive(pattern.as_bytes(), name.as_bytes()), "{} {}", pattern, name);
        }
    }
}
