//! Reads the head of an HTTP/1 response.

use httparse::{EMPTY_HEADER, ParserConfig};

use super::super::Failure;

/// Longest head that is read, with interim responses, bytes.
pub(super) const MOST: usize = 16 * 1024;

/// Most headers that are parsed.
const HEADERS: usize = 128;

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Response {
    bytes: Vec<u8>,
    /// Start of the head that is being read, after interim responses.
    start: usize,
    /// No empty line ends before this.
    searched: usize,
}

impl Response {
    /// The buffer for what is read.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The head, once [`Response::status`] returned the status.
    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[self.start..self.searched]
    }

    /// What was read after the head.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.searched..]
    }

    /// The status, once the head is complete. Interim responses (1xx) are skipped.
    ///
    /// # Errors
    /// Not a response, or longer than [`MOST`].
    pub(super) fn status(&mut self) -> Result<Option<u16>, Failure> {
        loop {
            // Fails at the first bytes: a server of another protocol may never send an empty line.
            let begun = self.bytes[self.start..].iter().zip(b"HTTP/1.");
            if begun.clone().any(|(got, wanted)| got != wanted) {
                return Err(Failure::NotHttp);
            }
            let Some(end) = self.blank_line() else {
                return match self.bytes.len() >= MOST {
                    true => Err(Failure::HeadTooLong(MOST)),
                    false => Ok(None),
                };
            };
            // Also if more arrived at once.
            if end > MOST {
                return Err(Failure::HeadTooLong(MOST));
            }
            match parse(&self.bytes[self.start..end])? {
                100 | 102..=199 => self.start = end,
                status => return Ok(Some(status)),
            }
        }
    }

    /// The end of the head, after an empty line. Each byte is read once.
    fn blank_line(&mut self) -> Option<usize> {
        while let Some(offset) = self.bytes[self.searched..].iter().position(|b| *b == b'\n') {
            let next = self.searched + offset + 1;
            match &self.bytes[next..] {
                [b'\n', ..] => return Some(self.found(next + 1)),
                [b'\r', b'\n', ..] => return Some(self.found(next + 2)),
                // The line may be empty: look at its line feed again.
                [] | [b'\r'] => {
                    self.searched = next - 1;
                    return None;
                }
                _ => self.searched = next,
            }
        }
        self.searched = self.bytes.len();
        None
    }

    fn found(&mut self, end: usize) -> usize {
        self.searched = end;
        end
    }
}

fn parse(head: &[u8]) -> Result<u16, Failure> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    // Old servers fold a header over several lines (RFC 9112, section 5.2).
    let mut parser = ParserConfig::default();
    parser.allow_obsolete_multiline_headers_in_responses(true);
    match parser.parse_response(&mut response, head) {
        Ok(_) => response.code.ok_or(Failure::NotHttp),
        // The status line comes before the headers.
        Err(httparse::Error::TooManyHeaders) => response.code.ok_or(Failure::NotHttp),
        Err(_) => Err(Failure::NotHttp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for `bytes` read at once, in two parts split anywhere, and byte by byte.
    fn read(bytes: &[u8]) -> String {
        let in_pieces = |pieces: &[&[u8]]| {
            let mut response = Response::default();
            let mut said = "more".to_owned();
            for piece in pieces {
                response.buffer().extend_from_slice(piece);
                match response.status() {
                    Ok(None) => {}
                    Ok(Some(status)) => said = status.to_string(),
                    Err(failure) => said = failure.to_string(),
                }
                if said != "more" {
                    break;
                }
            }
            said
        };
        let whole = in_pieces(&[bytes]);
        for cut in 0..bytes.len() {
            assert_eq!(in_pieces(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
        }
        assert_eq!(in_pieces(&bytes.chunks(1).collect::<Vec<_>>()), whole);
        whole
    }

    #[test]
    fn heads_and_what_they_say() {
        for (head, said) in [
            (&b"HTTP/1.1 200 OK\r\n\r\n"[..], "200"),
            (b"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\nbody", "404"),
            (b"HTTP/1.1 204\r\n\r\n", "204"),
            (b"HTTP/1.1 200 OK\nA: b\n\nbody", "200"),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "200"),
            (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101"),
            (b"HTTP/1.1 200 OK\r\nX-Status: all\r\n\tfine\r\nA: b\r\n\r\n", "200"),
            (b"HTTP/1.1 200 OK\r\nA:\r\n  b\r\n \r\n  c\r\n\r\n", "200"),
            (b"HTTP/1.1 200 OK\nA: b\n c\n\n", "200"),
            (b"HTTP/1.1 200 OK\r\n folds nothing\r\n\r\n", "the answer is not HTTP/1"),
            (b"HTTP/1.1 200 OK\r\nA: b\r\n", "more"),
            (b"HTTP/1.1 100 Continue\r\n\r\n", "more"),
            (b"", "more"),
            (b"HTT", "more"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP/1"),
            (b"HTTP/2 200\r\n\r\n", "the answer is not HTTP/1"),
            (b"HTTP/1.1 2x0 OK\r\n\r\n", "the answer is not HTTP/1"),
            (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "the answer is not HTTP/1"),
            (b"HTTP/1.1 100 Continue\r\n\r\ngarbage", "the answer is not HTTP/1"),
        ] {
            assert_eq!(read(head), said, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn a_head_is_read_up_to_the_bound() {
        let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
        while head.len() < MOST - 64 {
            head.extend_from_slice(b"X-Filler: and more of the same\r\n");
        }
        let mut response = Response::default();
        response.buffer().extend_from_slice(&head);
        assert_eq!(response.status().unwrap(), None);
        response.buffer().extend_from_slice(b"\r\n");
        assert_eq!(response.status().unwrap(), Some(200), "500 headers are no reason to fail");

        let mut endless = Response::default();
        endless.buffer().extend_from_slice(&head);
        endless.buffer().resize(MOST, b'a');
        let failure = endless.status().unwrap_err();
        assert_eq!(failure.to_string(), "the answer's head is over 16384 bytes");
    }
}
