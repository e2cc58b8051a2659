//! Wrappers of a check's connection: one limits what is read, one keeps the error that broke it.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Most bytes that a check reads of a connection, including TLS: several times what certificate chains, heads and
/// bodies need.
pub(super) const MOST: usize = 256 * 1024;

/// A connection of a check. It fails after [`MOST`] bytes, whatever the protocol allows a backend to send.
#[derive(Debug)]
pub(super) struct Bounded {
    stream: TcpStream,
    left: usize,
}

#[derive(Debug)]
pub(super) struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {MOST} bytes came")
    }
}

impl std::error::Error for TooMuch {}

impl Bounded {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, left: MOST }
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other(TooMuch)));
        }
        let mut part =
            ReadBuf::new(buffer.initialize_unfilled_to(self.left.min(buffer.remaining())));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        self.left -= read;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A connection that keeps the error that broke it: h2 passes on only its kind and text.
#[derive(Debug)]
pub(super) struct ErrorRecorder<S> {
    stream: S,
    broken: RecordedError,
}

/// The error that broke a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedError(Arc<Mutex<Option<io::Error>>>);

impl<S> ErrorRecorder<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, broken: RecordedError::default() }
    }

    pub(super) fn broken(&self) -> RecordedError {
        self.broken.clone()
    }
}

impl RecordedError {
    /// Takes the error, if there is one.
    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the first error, and returns one of its kind.
    fn record<T>(&self, come: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        come.map_err(|error| {
            let kind = error.kind();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            kind.into()
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ErrorRecorder<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let come = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.broken.record(come)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ErrorRecorder<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let come = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.broken.record(come)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let come = Pin::new(&mut self.stream).poll_flush(context);
        self.broken.record(come)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let come = Pin::new(&mut self.stream).poll_shutdown(context);
        self.broken.record(come)
    }
}
