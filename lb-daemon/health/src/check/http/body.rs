//! Searches the beginning of a body for a text.

use memchr::memmem::Finder;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{super::Failure, framing::Framing};

/// How much of a body is read, with its framing, bytes.
pub(in crate::check) const MOST: usize = 64 * 1024;

/// Read buffer, bytes.
const READ: usize = 4096;

/// Reads on after `begun`, until the text is found or cannot be found any more.
pub(super) async fn contains<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut framing: Framing,
    begun: &[u8],
    text: &str,
) -> Result<(), Failure> {
    let mut search = Search::new(text.as_bytes());
    let mut ended = framing.body_of(begun, |part| search.look(part))?;
    let mut left = MOST.saturating_sub(begun.len());
    let mut buffer = [0; READ];
    while !search.found && !ended && left > 0 {
        let room = &mut buffer[..READ.min(left)];
        let read = match stream.read(room).await.map_err(Failure::from) {
            // A body without a length ends with the connection.
            Ok(0) | Err(Failure::Closed) if framing == Framing::UntilClose => 0,
            Ok(0) => return Err(Failure::Closed),
            read => read?,
        };
        left -= read;
        ended = read == 0 || framing.body_of(&room[..read], |part| search.look(part))?;
    }
    match search.found {
        true => Ok(()),
        false => Err(Failure::BodyLacks { text: text.to_owned(), whole: ended }),
    }
}

/// A search over parts of a body.
struct Search<'t> {
    text: Finder<'t>,
    /// The end of the last part, where the text may have begun.
    tail: Vec<u8>,
    found: bool,
}

impl<'t> Search<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text: Finder::new(text), tail: Vec::new(), found: text.is_empty() }
    }

    fn look(&mut self, part: &[u8]) {
        self.tail.extend_from_slice(part);
        self.found |= self.text.find(&self.tail).is_some();
        let keep = self.text.needle().len().saturating_sub(1);
        self.tail.drain(..self.tail.len().saturating_sub(keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_however_it_is_cut() {
        let (body, text) = (b"so much of it: all is well, and more", b"is well");
        for size in 1..=body.len() {
            let mut search = Search::new(text);
            let mut kept = 0;
            for part in body.chunks(size) {
                search.look(part);
                kept = kept.max(search.tail.len());
            }
            assert!(search.found, "in parts of {size}");
            assert_eq!(kept, text.len() - 1);
        }
        let mut search = Search::new(text);
        search.look(b"is we");
        search.look(b"is wel");
        assert!(!search.found);
    }
}
