//! Where the body of a response ends, RFC 9112, section 6.

use std::{borrow::Cow, iter, str};

use super::super::Failure;

/// Longest line with a chunk's size and extensions, bytes.
const LONGEST_LINE: usize = 1024;

/// What ends the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// This many bytes are left.
    Length(u64),
    /// Chunked encoding.
    Chunked(Chunk),
    /// The end of the connection.
    UntilClose,
}

/// The position within chunked encoding.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// In a size line; what has arrived of it.
    Size(Vec<u8>),
    /// In a chunk's data; the bytes left.
    Data(u64),
    /// In the line end after the data.
    DataEnd,
    /// After the last chunk.
    Last,
}

/// Names and values of a head. The status line has no colon that matters. Lines that a value is folded over are one, with a
/// space instead of each line end and the blanks around it (RFC 9112, section 5.2).
fn headers(head: &[u8]) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
    let mut lines = head.split(|byte| *byte == b'\n').peekable();
    iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let mut value = Cow::Borrowed(line[colon + 1..].trim_ascii());
            while let Some(more) = lines.next_if(|it| it.starts_with(b" ") || it.starts_with(b"\t"))
            {
                let more = more.trim_ascii();
                if !value.is_empty() && !more.is_empty() {
                    value.to_mut().push(b' ');
                }
                value.to_mut().extend_from_slice(more);
            }
            return Some((&line[..colon], value));
        }
    })
}

/// The values of the headers of a name, in their order.
pub(super) fn values<'h>(head: &'h [u8], name: &[u8]) -> impl Iterator<Item = Cow<'h, [u8]>> {
    headers(head).filter(move |(each, _)| each.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

impl Framing {
    /// The framing of a response to `method` with this status and head.
    pub(super) fn of(method: &str, status: u16, head: &[u8]) -> Self {
        if method == "HEAD" || matches!(status, 204 | 304) {
            return Self::Length(0);
        }
        let mut length = None;
        for (name, value) in headers(head) {
            if name.eq_ignore_ascii_case(b"transfer-encoding")
                && value.to_ascii_lowercase().ends_with(b"chunked")
            {
                return Self::Chunked(Chunk::Size(Vec::new()));
            }
            if name.eq_ignore_ascii_case(b"content-length") {
                length = str::from_utf8(&value).ok().and_then(|value| value.parse().ok());
            }
        }
        length.map_or(Self::UntilClose, Self::Length)
    }

    /// Passes the bytes of the body to a function; returns whether the body has ended.
    pub(super) fn body_of(
        &mut self,
        mut bytes: &[u8],
        mut hand_on: impl FnMut(&[u8]),
    ) -> Result<bool, Failure> {
        loop {
            match self {
                Self::UntilClose => {
                    hand_on(bytes);
                    return Ok(false);
                }
                Self::Length(left) => {
                    let (body, _) = split(bytes, *left);
                    hand_on(body);
                    *left -= body.len() as u64;
                    return Ok(*left == 0);
                }
                Self::Chunked(Chunk::Last) => return Ok(true),
                Self::Chunked(_) if bytes.is_empty() => return Ok(false),
                Self::Chunked(Chunk::Data(left)) => {
                    let (body, rest) = split(bytes, *left);
                    hand_on(body);
                    *left -= body.len() as u64;
                    bytes = rest;
                    if *left == 0 {
                        *self = Self::Chunked(Chunk::DataEnd);
                    }
                }
                Self::Chunked(chunk) => bytes = chunk.line(bytes)?,
            }
        }
    }
}

impl Chunk {
    /// Reads to the end of the line, if it has arrived; returns what follows.
    fn line<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Failure> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        match self {
            Self::Size(so_far) => {
                so_far.extend_from_slice(line);
                if so_far.len() > LONGEST_LINE {
                    return Err(Failure::Chunks);
                }
                if end.is_some() {
                    *self = match size(so_far).ok_or(Failure::Chunks)? {
                        0 => Self::Last,
                        size => Self::Data(size),
                    };
                }
            }
            _ if line.iter().any(|byte| !matches!(byte, b'\r' | b'\n')) => {
                return Err(Failure::Chunks);
            }
            _ if end.is_some() => *self = Self::Size(Vec::new()),
            _ => {}
        }
        Ok(rest)
    }
}

/// The size in a line, before its extensions.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// Splits after at most `most` bytes.
fn split(bytes: &[u8], most: u64) -> (&[u8], &[u8]) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    bytes.split_at(bytes.len().min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of `bytes` after `head`, read at once and byte by byte, and whether it ended.
    fn body(method: &str, status: u16, head: &str, bytes: &[u8]) -> Result<(String, bool), String> {
        let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut framing = Framing::of(method, status, head.as_bytes());
            let mut body = Vec::new();
            let mut ended = framing.body_of(&[], |part| body.extend_from_slice(part));
            for piece in pieces {
                if !matches!(ended, Ok(false)) {
                    break;
                }
                ended = framing.body_of(piece, |part| body.extend_from_slice(part));
            }
            ended.map(|ended| (String::from_utf8(body).unwrap(), ended)).map_err(|e| e.to_string())
        };
        let whole = read(&mut [bytes].into_iter());
        assert_eq!(read(&mut bytes.chunks(1)), whole);
        whole
    }

    #[test]
    fn a_folded_value_is_one_line() {
        let head = b"HTTP/1.1 200 OK\r\nA: b\r\n\tc \r\n \r\n  d: e\r\nF:\r\n g\r\na: h\r\n\r\n";
        let of = |name: &[u8]| {
            values(head, name).map(|it| String::from_utf8(it.into()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(of(b"a"), ["b c d: e", "h"]);
        assert_eq!(of(b"f"), ["g"]);
        assert_eq!(of(b"d"), [""; 0]);
    }

    #[test]
    fn the_body_ends_where_its_framing_says() {
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 1\r\n\r\n";
        for (method, status, head, bytes, expected) in [
            ("GET", 200, "HTTP/1.1 200 OK\r\n\r\n", "abc", ("abc", false)),
            ("GET", 200, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", "abc", ("ab", true)),
            ("GET", 200, "HTTP/1.1 200 OK\ncontent-length:4\n\n", "abc", ("abc", false)),
            (
                "GET",
                200,
                "HTTP/1.1 200 OK\r\nContent-Length:\r\n\t2\r\nA: b\r\n\r\n",
                "abc",
                ("ab", true),
            ),
            (
                "GET",
                200,
                "HTTP/1.1 200 OK\r\nA: b\r\n Content-Length: 2\r\n\r\n",
                "abc",
                ("abc", false),
            ),
            ("GET", 200, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "abc", ("", true)),
            ("GET", 200, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "abc", ("abc", false)),
            ("HEAD", 200, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "abc", ("", true)),
            ("GET", 204, "HTTP/1.1 204 No Content\r\n\r\n", "abc", ("", true)),
            ("GET", 200, chunked, "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", ("abcde", true)),
            ("GET", 200, chunked, "A\nabcdefghij\n00\n", ("abcdefghij", true)),
            ("GET", 200, chunked, "3\r\nab", ("ab", false)),
        ] {
            let (body, ended) = body(method, status, head, bytes.as_bytes()).unwrap();
            assert_eq!((&*body, ended), expected, "{head} {bytes}");
        }
        for bad in ["x\r\n", "+3\r\nabc", "3\r\nabcd\r\n", "\u{e9}", &"0".repeat(1025)] {
            let failure = body("GET", 200, chunked, format!("{bad}\r\n").as_bytes()).unwrap_err();
            assert_eq!(failure, "the body's chunks are not HTTP/1.1", "{bad}");
        }
    }
}
