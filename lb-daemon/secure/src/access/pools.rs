//! Patterns of pool names, by which a role is for some pools alone.

use std::{fmt, str::FromStr, sync::Arc};

/// Most patterns of a client.
const MOST: usize = 100;

/// Patterns, of which one must match. `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPatterns(Arc<[String]>);

/// Why a text is no list of patterns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a pattern of pools is empty")]
    Empty,
    #[error("{0:?} is not a pattern of pools; it may hold only a-z, 0-9, '-' and '*'")]
    Characters(String),
    #[error("at most {MOST} patterns of pools are allowed")]
    TooMany,
}

impl PoolPatterns {
    /// Whether a pool is one of them.
    pub fn matches(&self, name: &str) -> bool {
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
