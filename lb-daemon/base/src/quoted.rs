//! What others wrote, within sentences of ours.

use std::fmt;

/// A text of a caller's: escaped, and shortened where it would drown the message.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 70;
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}
