//! Why a change is made, in the words of who makes it.

use std::fmt;

/// Longest reason, bytes.
pub const MAX_REASON: usize = 256;

/// A reason for the history and the audit log. Empty: none is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason(String);

/// Why a text is no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReasonError {
    /// It is longer than [`MAX_REASON`].
    #[error("{0} bytes are more than {MAX_REASON}")]
    TooLong(usize),
    /// It has a line break or another control character.
    #[error("must not contain line breaks or other control characters")]
    ControlCharacter,
}

impl Reason {
    /// A reason without the white space around it.
    ///
    /// # Errors
    /// [`ReasonError`]
    pub fn new(text: &str) -> Result<Self, ReasonError> {
        let text = text.trim_matches(' ');
        if text.len() > MAX_REASON {
            return Err(ReasonError::TooLong(text.len()));
        }
        match text.contains(is_control) {
            true => Err(ReasonError::ControlCharacter),
            false => Ok(Self(text.to_owned())),
        }
    }

    /// A reason from another balancer, which may have had other rules: without control characters, and not too long.
    pub fn cleaned(text: &str) -> Self {
        let kept: String = text.chars().filter(|it| !is_control(*it)).collect();
        let mut kept = kept.trim_matches(' ');
        if kept.len() > MAX_REASON {
            let end = (0..=MAX_REASON).rev().find(|at| kept.is_char_boundary(*at));
            kept = kept[..end.unwrap_or_default()].trim_matches(' ');
        }
        Self(kept.to_owned())
    }

    /// The text, if one is given.
    pub fn given(&self) -> Option<&str> {
        Some(&*self.0).filter(|text| !text.is_empty())
    }
}

/// Control characters, and directional marks: these could make a line of the history read as another one.
fn is_control(it: char) -> bool {
    it.is_control() || matches!(it, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        let text = |text: &str| Reason::new(text).map(|reason| reason.to_string());
        assert_eq!(
            text(" ticket 4711: Österreich is full "),
            Ok("ticket 4711: Österreich is full".into())
        );
        assert_eq!(Reason::new("  ").unwrap().given(), None);
        assert_eq!(text(&"ö".repeat(128)), Ok("ö".repeat(128)));
        assert_eq!(text(&"x".repeat(257)), Err(ReasonError::TooLong(257)));
        for wrong in ["a\nb", "a\tb", "\u{1b}[2J", "a\u{7f}", "a\u{85}b", "a\u{202e}b", "a\0"] {
            assert_eq!(text(wrong), Err(ReasonError::ControlCharacter), "{wrong:?}");
        }
    }

    #[test]
    fn a_reason_of_another_balancer_is_made_one_short_line() {
        let cleaned = |text: &str| Reason::cleaned(text).to_string();
        assert_eq!(cleaned("ticket 7"), "ticket 7");
        assert_eq!(cleaned(" a\nb\u{202e}\u{1b}c "), "abc");
        assert_eq!(cleaned("\n \n"), "");
        assert_eq!(cleaned(&"x".repeat(300)), "x".repeat(256));
        assert_eq!(cleaned(&format!("x{}", "é".repeat(200))).len(), 255);
        for text in ["ticket 7", &format!("{} {}", "x".repeat(255), "y".repeat(9))] {
            let once = cleaned(text);
            assert_eq!(
                (Reason::new(&once).unwrap().to_string(), cleaned(&once)),
                (once.clone(), once)
            );
        }
    }
}
