//! A connection that keeps what broke it, for whoever hears only that something did: h2 hands on of an
//! error its kind and its text.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
