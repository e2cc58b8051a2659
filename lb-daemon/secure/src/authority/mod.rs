//! Lets clients through a unix socket whatever they name as `:authority`.
//!
//! grpcio sends the path of the socket, percent-encoded, grpc-java the path itself. Neither is an authority (RFC 3986, 3.2),
//! and h2 resets the stream with `PROTOCOL_ERROR`. The daemon has no use for the name, so it is replaced by zeros before h2
//! reads it. Nothing else changes: what is malformed passes as it is, and h2 judges it.

mod header_block;
#[cfg(test)]
mod tests;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use header_block::replace_authority;

/// Length of a client's connection preface (RFC 9113, 3.4).
pub(crate) const PREFACE: usize = 24;

/// Length of a frame's header (RFC 9113, 4.1).
const HEAD: usize = 9;

/// Largest payload of a frame that h2 accepts: the default of `SETTINGS_MAX_FRAME_SIZE`.
const MAX_PAYLOAD: usize = 16 << 10;

/// Of a longer header block nothing is held back. h2 refuses it: its fields may have 16 KiB.
const MAX_BLOCK: usize = 32 << 10;

/// Types and flags of frames (RFC 9113, 6.2 and 6.10).
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// What a server reads of a connection, without the `:authority` of the client's requests.
#[derive(Debug)]
pub(crate) struct WithoutAuthority<S> {
    stream: S,
    frames: Frames,
}

impl<S> WithoutAuthority<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, frames: Frames::new() }
    }
}

/// Bytes from the client.
#[derive(Debug)]
struct Frames {
    /// How many of the next bytes pass as they are: the rest of the preface or of a frame.
    passing: usize,
    /// A header block that is not complete yet, or a part of a frame's header.
    held: BytesMut,
    /// What can be read.
    ready: BytesMut,
}

impl Frames {
    fn new() -> Self {
        Self { passing: PREFACE, held: BytesMut::new(), ready: BytesMut::new() }
    }

    /// How many of these bytes pass as they are, before a header block or an incomplete header of a frame.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        loop {
            let passing = self.passing.min(bytes.len() - passed);
            self.passing -= passing;
            passed += passing;
            match FrameHeader::read(&bytes[passed..]) {
                Some(header) if header.kind != HEADERS => self.passing = header.frame_length(),
                _ => return passed,
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        loop {
            let mut held = std::mem::take(&mut self.held);
            let passed = self.pass(&held);
            self.ready.unsplit(held.split_to(passed));
            self.held = held;
            match block_end(&self.held) {
                BlockEnd::At(end) => {
                    let frames = self.held.split_to(end);
                    self.ready.unsplit(without_authority(&frames).unwrap_or(frames));
                }
                BlockEnd::Missing if self.held.len() < MAX_BLOCK => return,
                _ => match FrameHeader::read(&self.held) {
                    Some(header) => self.passing = header.frame_length(),
                    None => return,
                },
            }
        }
    }

    /// The client sends no more.
    fn end(&mut self) {
        self.ready.unsplit(self.held.split());
    }
}

#[derive(Clone, Copy)]
struct FrameHeader {
    /// Bytes of the payload.
    length: usize,
    kind: u8,
    flags: u8,
    stream: [u8; 4],
}

impl FrameHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, ref stream @ ..] = bytes.first_chunk::<HEAD>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        Some(Self { length, kind, flags, stream: *stream })
    }

    fn write(&self, to: &mut BytesMut) {
        to.put_uint(self.length as u64, 3);
        to.put_slice(&[self.kind, self.flags]);
        to.put_slice(&self.stream);
    }

    fn frame_length(&self) -> usize {
        HEAD + self.length
    }
}

enum BlockEnd {
    At(usize),
    /// It has not arrived yet.
    Missing,
    /// The frames are in no valid order, or too large.
    Malformed,
}

/// Where the header block ends whose first frame these bytes begin with.
fn block_end(bytes: &[u8]) -> BlockEnd {
    let (mut end, mut stream) = (0, None);
    loop {
        let Some(header) = FrameHeader::read(&bytes[end..]) else { return BlockEnd::Missing };
        let expected = if end == 0 { HEADERS } else { CONTINUATION };
        let is_same = *stream.get_or_insert(header.stream) == header.stream;
        if header.kind != expected || !is_same || header.length > MAX_PAYLOAD {
            return BlockEnd::Malformed;
        }
        end += header.frame_length();
        if end > bytes.len() {
            return BlockEnd::Missing;
        }
        if header.flags & END_HEADERS != 0 {
            return BlockEnd::At(end);
        }
    }
}

/// The frames of a whole header block with its authority replaced, and without padding. `None`: nothing to replace.
fn without_authority(frames: &[u8]) -> Option<BytesMut> {
    let first = FrameHeader::read(frames)?;
    let (payload, mut more) = frames[HEAD..].split_at_checked(first.length)?;
    let (padding, payload) = match first.flags & PADDED {
        0 => (0, payload),
        _ => payload.split_first().map(|(padding, rest)| (usize::from(*padding), rest))?,
    };
    let priority = if first.flags & PRIORITY == 0 { 0 } else { 5 };
    let (priority, fragment) = payload.split_at_checked(priority)?;
    let mut block = fragment.get(..fragment.len().checked_sub(padding)?)?.to_vec();
    while let Some(header) = FrameHeader::read(more) {
        let (frame, rest) = more.split_at_checked(header.frame_length())?;
        block.extend_from_slice(&frame[HEAD..]);
        more = rest;
    }

    let block = replace_authority(&block)?;
    let mut written = BytesMut::with_capacity(frames.len());
    let (mut rest, mut prefix) = (&*block, priority);
    let mut header = FrameHeader { flags: first.flags & !(PADDED | END_HEADERS), ..first };
    loop {
        let (fragment, next) = rest.split_at(rest.len().min(MAX_PAYLOAD - prefix.len()));
        header.length = prefix.len() + fragment.len();
        if next.is_empty() {
            header.flags |= END_HEADERS;
        }
        header.write(&mut written);
        written.put_slice(prefix);
        written.put_slice(fragment);
        if next.is_empty() {
            return Some(written);
        }
        (rest, prefix) = (next, &[]);
        (header.kind, header.flags) = (CONTINUATION, 0);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithoutAuthority<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, frames } = self.get_mut();
        while buffer.remaining() > 0 {
            if !frames.ready.is_empty() {
                let length = buffer.remaining().min(frames.ready.len());
                buffer.put_slice(&frames.ready.split_to(length));
                break;
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut *stream).poll_read(context, buffer))?;
            let read = &buffer.filled()[before..];
            if read.is_empty() {
                frames.end();
                if frames.ready.is_empty() {
                    break;
                }
                continue;
            }
            // Most bytes are of messages, and stay in the caller's buffer.
            let passed = if frames.held.is_empty() { frames.pass(read) } else { 0 };
            frames.receive(&read[passed..]);
            buffer.set_filled(before + passed);
            if passed > 0 {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
