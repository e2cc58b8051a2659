use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::slots::Slot;
use crate::access::{Actor, Peer, Role};

/// A connection of somebody whose name is known.
pub struct Connection {
    stream: Stream,
    peer: Peer,
    /// Done when it must end.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _slot: Option<Slot>,
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
    pub fn local(stream: UnixStream) -> Self {
        let peer = match stream.peer_cred() {
            Ok(user) => Peer { actor: Actor::User(user.uid()), role: Some(Role::Admin) },
            Err(_) => Peer::default(),
        };
        Self { stream: Stream::Local(stream), peer, over: None, _slot: None }
    }

    /// One over TLS, which ends when `over` is done.
    pub(super) fn remote(
        stream: TlsStream<TcpStream>,
        peer: Peer,
        slot: Slot,
        over: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let stream = Stream::Remote(Box::new(stream));
        Self { stream, peer, over: Some(Box::pin(over)), _slot: Some(slot) }
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
        match &mut self.stream {
            Stream::Local(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Remote(stream) => Pin::new(stream).poll_read(context, buffer),
        }
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
