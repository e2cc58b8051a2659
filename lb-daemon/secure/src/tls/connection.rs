use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Join, ReadBuf, join},
    net::{
        TcpStream, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{Sleep, sleep},
};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use super::listener::ConnectionSlot;
use crate::users::user_name;
use crate::{
    access::{Lease, Peer, Role},
    authority::{PREFACE, WithoutAuthority},
};
use lb_model::Actor;

/// Time for a client to send its connection preface. After it the server's pings detect dead clients.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection of an authenticated client, local or over TLS.
pub struct Connection {
    stream: Stream,
    peer: Peer,
    /// Completes when the connection must end.
    revoked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Bytes of the preface that are missing, and the deadline for them; `None`: the preface is complete.
    preface: Option<(usize, Pin<Box<Sleep>>)>,
    _guard: LimitGuard,
}

/// Holds the connection's share of its listener's limit.
enum LimitGuard {
    Local { _lease: Lease<u32> },
    Remote { _slot: ConnectionSlot },
}

/// Local, or over TLS.
type Stream = Either<LocalStream, Box<TlsStream<TcpStream>>>;

type LocalStream = Join<WithoutAuthority<OwnedReadHalf>, OwnedWriteHalf>;

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection through a unix socket: whoever may open it has its role.
    pub fn local(stream: UnixStream, uid: u32, role: Role, lease: Lease<u32>) -> Self {
        let actor = Actor::User { uid, name: user_name(uid) };
        let peer = Peer { actor, role: Some(role), scope: None, connection: None };
        let guard = LimitGuard::Local { _lease: lease };
        let (read, write) = stream.into_split();
        Self::new(Either::Left(join(WithoutAuthority::new(read), write)), peer, None, guard)
    }

    /// A connection over TLS, which ends when `revoked` completes.
    pub(super) fn remote(
        stream: TlsStream<TcpStream>,
        peer: Peer,
        slot: ConnectionSlot,
        revoked: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let stream = Either::Right(Box::new(stream));
        Self::new(stream, peer, Some(Box::pin(revoked)), LimitGuard::Remote { _slot: slot })
    }

    fn new(
        stream: Stream,
        peer: Peer,
        revoked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        guard: LimitGuard,
    ) -> Self {
        let preface = Some((PREFACE, Box::pin(sleep(PREFACE_TIMEOUT))));
        Self { stream, peer, revoked, preface, _guard: guard }
    }

    /// Fails when the connection must end; wakes its task when that happens.
    fn check_revoked(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(revoked) = &mut self.revoked else { return Ok(()) };
        if revoked.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        // Later polls fail too.
        self.revoked = Some(Box::pin(async {}));
        Err(io::ErrorKind::ConnectionReset.into())
    }

    /// Fails when the preface is late. `read` is the number of bytes read now.
    fn check_preface(&mut self, read: usize, context: &mut Context<'_>) -> io::Result<()> {
        let Some((missing, until)) = &mut self.preface else { return Ok(()) };
        *missing = missing.saturating_sub(read);
        if *missing == 0 {
            self.preface = None;
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
        self.check_revoked(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.check_preface(buffer.filled().len() - before, context)?;
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_revoked(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
