use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    time::{Sleep, sleep},
};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::slots::Slot;
use crate::access::{Lease, Peer, Role};
use lb_control::command::Actor;

/// What a client says first, RFC 9113, 3.4, and how long it may take. From there on the server asks
/// whether it is still there.
const PREFACE: usize = 24;
const SPEAKS_WITHIN: Duration = Duration::from_secs(5);

/// A connection of somebody whose name is known.
pub struct Connection {
    stream: Stream,
    peer: Peer,
    /// Done when it must end.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Until it has said so many bytes more, when that must be; `None`: it has.
    silent: Option<(usize, Pin<Box<Sleep>>)>,
    _place: Place,
}

/// A connection's place among those of its door.
enum Place {
    Local { _lease: Lease<u32> },
    Remote { _slot: Slot },
}

enum Stream {
    Local(UnixStream),
    Remote(Box<TlsStream<TcpStream>>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Connection {
    /// One of this host: who may open the socket may do everything.
    pub(crate) fn local(stream: UnixStream, uid: u32, lease: Lease<u32>) -> Self {
        let peer = Peer { actor: Actor::User(uid), role: Some(Role::Admin), connection: None };
        let place = Place::Local { _lease: lease };
        Self::new(Stream::Local(stream), peer, None, place)
    }

    /// One over TLS, which ends when `over` is done.
    pub(super) fn remote(
        stream: TlsStream<TcpStream>,
        peer: Peer,
        slot: Slot,
        over: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let stream = Stream::Remote(Box::new(stream));
        Self::new(stream, peer, Some(Box::pin(over)), Place::Remote { _slot: slot })
    }

    fn new(
        stream: Stream,
        peer: Peer,
        over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        place: Place,
    ) -> Self {
        let silent = Some((PREFACE, Box::pin(sleep(SPEAKS_WITHIN))));
        Self { stream, peer, over, silent, _place: place }
    }

    /// Fails when it must end; wakes its task when that comes.
    fn go_on(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(over) = &mut self.over else { return Ok(()) };
        if over.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        // Whoever asks again hears the same.
        self.over = Some(Box::pin(async {}));
        Err(io::ErrorKind::ConnectionReset.into())
    }

    /// Fails when it has said too little for too long; `read` is what it said now.
    fn spoke(&mut self, read: usize, context: &mut Context<'_>) -> io::Result<()> {
        let Some((missing, until)) = &mut self.silent else { return Ok(()) };
        *missing = missing.saturating_sub(read);
        if *missing == 0 {
            self.silent = None;
        } else if until.as_mut().poll(context).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.go_on(context)?;
        let before = buffer.filled().len();
        let read = match &mut self.stream {
            Stream::Local(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Remote(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        self.spoke(buffer.filled().len() - before, context)?;
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.go_on(context)?;
        match &mut self.stream {
            Stream::Local(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Remote(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Local(stream) => Pin::new(stream).poll_flush(context),
            Stream::Remote(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &mut self.stream {
            Stream::Local(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Remote(stream) => Pin::new(stream).poll_shutdown(context),
        })?;
        Poll::Ready(Ok(()))
    }
}
