//! Wrappers of a check's connection: one bounds what is read, one keeps the error that broke it.

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

/// Most that a check reads of a connection, TLS and all, bytes: chains of certificates, heads and
/// bodies that are looked at fit several times.
pub(super) const MOST: usize = 256 * 1024;

/// A connection of a check. Whatever its protocol allows a backend to send, and however fast it comes:
/// after [`MOST`] bytes the check has failed.
#[derive(Debug)]
pub(super) struct Bounded {
    stream: TcpStream,
    left: usize,
}

/// More came than a check reads.
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

/// The connection.
#[derive(Debug)]
pub(super) struct Noted<S> {
    stream: S,
    broken: Broken,
}

/// What broke it.
#[derive(Clone, Debug, Default)]
pub(super) struct Broken(Arc<Mutex<Option<io::Error>>>);

impl<S> Noted<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, broken: Broken::default() }
    }

    pub(super) fn broken(&self) -> Broken {
        self.broken.clone()
    }
}

impl Broken {
    /// What did, if anything, once.
    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the first error; whoever asked gets one of its kind.
    fn note<T>(&self, come: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        come.map_err(|error| {
            let kind = error.kind();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            kind.into()
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let come = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.broken.note(come)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let come = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.broken.note(come)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let come = Pin::new(&mut self.stream).poll_flush(context);
        self.broken.note(come)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let come = Pin::new(&mut self.stream).poll_shutdown(context);
        self.broken.note(come)
    }
}
