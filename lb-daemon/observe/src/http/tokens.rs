//! Tokens of clients of the HTTP listener.

use std::str;

use axum::http::{HeaderMap, HeaderValue, header};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use subtle::{Choice, ConstantTimeEq as _};

/// Fewest and most bytes of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;
/// Most tokens of a file. Two are enough to replace one by another.
const MOST: usize = 64;

/// The challenges of an answer to a request without a token (RFC 9110, 11.6.1): for programs, and for browsers, which ask
/// their user.
pub(super) const CHALLENGES: [HeaderValue; 2] = [
    HeaderValue::from_static("Bearer realm=\"spillway\""),
    HeaderValue::from_static("Basic realm=\"spillway\", charset=\"UTF-8\""),
];

/// Tokens that are accepted; at least one.
#[derive(Clone)]
pub(super) struct Tokens(Vec<String>);

impl Tokens {
    /// Reads a file with a token on each line. Empty lines and those that begin with `#` are ignored.
    ///
    /// # Errors
    /// What is wrong with it, without any of its text.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(text).map_err(|_| "is not text in UTF-8".to_owned())?;
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if !LENGTHS.contains(&line.len()) || !is_token(line) {
                let (least, most) = (LENGTHS.start(), LENGTHS.end());
                return Err(format!(
                    "line {number}: a token is {least} to {most} letters, digits or -._~+/, then any number of ="
                ));
            }
            tokens.push(line.to_owned());
        }
        match tokens.len() {
            0 => Err("contains no token".into()),
            number if number > MOST => Err(format!("contains {number} tokens, more than {MOST}")),
            _ => Ok(Self(tokens)),
        }
    }

    /// Whether a request has a token, as a bearer (RFC 6750) or as the password of any user (RFC 7617).
    pub(super) fn accept(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(header::AUTHORIZATION).and_then(credentials) else {
            return false;
        };
        // All are compared, each in a time that does not depend on where it differs.
        let same = self.0.iter().map(|token| token.as_bytes().ct_eq(&given));
        same.fold(Choice::from(0), |any, same| any | same).into()
    }
}

/// Whether this is a `b64token` (RFC 6750, 2.1).
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !body.is_empty() && body.bytes().all(is_allowed)
}

/// The token of an `Authorization` header.
fn credentials(header: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, rest) = header.to_str().ok()?.trim().split_once(' ')?;
    let rest = rest.trim_start();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.into());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let user_and_password = BASE64_STANDARD.decode(rest).ok()?;
    let colon = user_and_password.iter().position(|byte| *byte == b':')?;
    Some(user_and_password[colon + 1..].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "c2l4dGVlbi1ieXRlcw==";

    fn is_accepted(tokens: &Tokens, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        tokens.accept(&headers)
    }

    #[test]
    fn a_file_has_a_token_on_each_line() {
        let file = format!("# Prometheus\n{TOKEN}\n\n  another-token-of-22-ch  \r\n");
        let tokens = Tokens::parse(file.as_bytes()).unwrap();
        assert_eq!(tokens.0, [TOKEN, "another-token-of-22-ch"]);
        let wrong = "a token is 16 to 256 letters, digits or -._~+/, then any number of =";
        for (file, line) in [
            ("fifteen-bytes--", 1),
            ("================", 1),
            ("sixteen=bytes---", 1),
            ("two words of text", 1),
            ("# ok\nsixteen-bytes---\nümlaut-in-a-token", 3),
            (&*"x".repeat(257), 1),
        ] {
            let refused = Tokens::parse(file.as_bytes()).err().unwrap();
            assert_eq!(refused, format!("line {line}: {wrong}"), "{file}");
            assert!(!refused.contains(file));
        }
        assert_eq!(Tokens::parse(b"# none\n\n").err().unwrap(), "contains no token");
        assert_eq!(Tokens::parse(b"\xff").err().unwrap(), "is not text in UTF-8");
        let many = format!("{TOKEN}\n").repeat(65);
        let refused = Tokens::parse(many.as_bytes()).err().unwrap();
        assert_eq!(refused, "contains 65 tokens, more than 64");
        assert!(Tokens::parse("x".repeat(256).as_bytes()).is_ok());
    }

    #[test]
    fn a_token_is_a_bearer_or_a_password() {
        let file = format!("{TOKEN}\nanother-token-of-22-ch");
        let tokens = Tokens::parse(file.as_bytes()).unwrap();
        // By `printf 'eye:another-token-of-22-ch' | base64`, and the same with no user and with a colon too many.
        for value in [
            "Bearer c2l4dGVlbi1ieXRlcw==",
            "bearer   another-token-of-22-ch",
            "Basic ZXllOmFub3RoZXItdG9rZW4tb2YtMjItY2g=",
            "BASIC OmFub3RoZXItdG9rZW4tb2YtMjItY2g=",
        ] {
            assert!(is_accepted(&tokens, value), "{value}");
        }
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer c2l4dGVlbi1ieXRlcw=",
            "Bearer c2l4dGVlbi1ieXRlcw==x",
            "Bearer c2l4dGVlbi1ieXRlcw== another-token-of-22-ch",
            "c2l4dGVlbi1ieXRlcw==",
            "Digest c2l4dGVlbi1ieXRlcw==",
            "Basic another-token-of-22-ch",
            // another-token-of-22-ch without a colon, and as the user.
            "Basic YW5vdGhlci10b2tlbi1vZi0yMi1jaA==",
            "Basic YW5vdGhlci10b2tlbi1vZi0yMi1jaDo=",
            "Basic ZXllOjphbm90aGVyLXRva2VuLW9mLTIyLWNo",
        ] {
            assert!(!is_accepted(&tokens, value), "{value}");
        }
        assert!(!tokens.accept(&HeaderMap::new()));
    }
}
