//! Names of regions, pools, health checks and services.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Longest name, bytes (that of a DNS label, RFC 1035, 2.3.4).
const MAX_LENGTH: usize = 63;

/// A name: 1 to 63 of `a-z`, `0-9` and `-`, neither first nor last a `-`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("must be set")]
    Empty,
    /// It is longer than a DNS label.
    #[error("has {0} bytes; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// It holds something else than `a-z`, `0-9`, `-`, or begins or ends with `-`.
    #[error("may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit")]
    BadCharacter,
}

impl Name {
    /// The name a text spells.
    ///
    /// # Errors
    /// [`NameError`] says which rule it breaks.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        match text.len() {
            0 => Err(NameError::Empty),
            length if length > MAX_LENGTH => Err(NameError::TooLong(length)),
            _ if !text.bytes().all(fits) || text.starts_with('-') || text.ends_with('-') => {
                Err(NameError::BadCharacter)
            }
            _ => Ok(Self(text.into())),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_lower_case_dns_label() {
        for good in ["a", "web", "eu-west-1", "0", &"x".repeat(63)] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert_eq!(Name::new(&"x".repeat(64)), Err(NameError::TooLong(64)));
        for bad in ["-a", "a-", "A", "a b", "a.b", "ä", "a\n"] {
            assert_eq!(Name::new(bad), Err(NameError::BadCharacter), "{bad:?}");
        }
    }
}
