//! The head of an HTTP/1 response, as it comes in.

use httparse::EMPTY_HEADER;

use super::super::Failure;

/// Longest head that is read, with interim responses, bytes.
pub(super) const MOST: usize = 16 * 1024;

/// Most headers; a head of [`MOST`] bytes has at most as many as fit with name, colon and line end.
const HEADERS: usize = 128;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Response {
    bytes: Vec<u8>,
    /// Where the head that is being read begins; interim responses stand before it.
    start: usize,
    /// No blank line ends before here.
    searched: usize,
}

impl Response {
    /// Where to append what is read.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The head, of which [`Response::status`] gave the status.
    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[self.start..self.searched]
    }

    /// What was read after the head.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.searched..]
    }

    /// The status, once the head is whole. Interim responses (1xx) are passed over.
    ///
    /// # Errors
    /// What came is no response, or longer than [`MOST`].
    pub(super) fn status(&mut self) -> Result<Option<u16>, Failure> {
        loop {
            // AgentReport at the first bytes: a server of another protocol may never send a blank line.
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
            // However much came at once.
            if end > MOST {
                return Err(Failure::HeadTooLong(MOST));
            }
            match parse(&self.bytes[self.start..end])? {
                100 | 102..=199 => self.start = end,
                status => return Ok(Some(status)),
            }
        }
    }

    /// Where the head ends: after an empty line. Each byte is looked at once.
    fn blank_line(&mut self) -> Option<usize> {
        while let Some(offset) = self.bytes[self.searched..].iter().position(|b| *b == b'\n') {
            let next = self.searched + offset + 1;
            match &self.bytes[next..] {
                [b'\n', ..] => return Some(self.found(next + 1)),
                [b'\r', b'\n', ..] => return Some(self.found(next + 2)),
                // The line may yet turn out empty: look at its line feed again.
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
    match response.parse(head) {
        Ok(_) => response.code.ok_or(Failure::NotHttp),
        // The status line stands before the headers.
        Err(httparse::Error::TooManyHeaders) => response.code.ok_or(Failure::NotHttp),
        Err(_) => Err(Failure::NotHttp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for `bytes` read whole, and read in every way in two, and byte by byte.
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
