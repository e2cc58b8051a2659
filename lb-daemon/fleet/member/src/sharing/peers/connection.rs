//! A connection that a peer made.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use lb_model::Name;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use lb_secure::access::Lease;

/// A connection ends if nothing comes for so long. A peer sends four times a second.
const IDLE: Duration = Duration::from_secs(10);

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    /// The balancers that its certificate speaks for; `None`: it has shown none, and may be any.
    pub(super) certified: Option<BTreeSet<Name>>,
}

/// A connection, with its share of the listener's limit.
pub(super) struct PeerConnection {
    stream: PeerStream,
    caller: Caller,
    idle: Pin<Box<Sleep>>,
    /// Completes when the connection must end.
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
    _slot: Lease<IpAddr>,
}

/// In plain text, or over TLS.
pub(super) type PeerStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl fmt::Debug for PeerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerConnection").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl PeerConnection {
    pub(super) fn new(
        stream: PeerStream,
        caller: Caller,
        revoked: impl Future<Output = ()> + Send + 'static,
        slot: Lease<IpAddr>,
    ) -> Self {
        let (idle, revoked) = (Box::pin(sleep(IDLE)), Box::pin(revoked));
        Self { stream, caller, idle, revoked, _slot: slot }
    }

    /// Fails when the connection must end; wakes its task when that happens.
    fn check_revoked(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.revoked.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        // Later polls fail too.
        self.revoked = Box::pin(async {});
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl Connected for PeerConnection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for PeerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_revoked(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.idle.as_mut().reset(Instant::now() + IDLE);
        } else if self.idle.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for PeerConnection {
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
