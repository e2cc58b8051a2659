//! Connecting to a backend, and finding out whether its host is there if that fails.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    os::fd::AsFd,
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    net::{TcpSocket, TcpStream},
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use super::{Failure, NoConnection, is_shortage};
use crate::{host::HostProber, tunnel::SocketOptions};

/// The host is probed after this fraction of the timeout without any answer: late enough that hosts that serve are
/// never probed, early enough that the probe has three times as long.
const ASK_AFTER: u32 = 4;

/// Largest TCP segment in a tunnel, bytes: with all headers it fits IPv6's minimum MTU, so that no check fails
/// because of its size. The doctor checks whether clients' packets fit.
const SEGMENT: u32 = 1_160;

/// Where a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The backend's host, which is probed if it does not answer.
    pub host: IpAddr,
    /// What is connected to: the backend's address, or a VIP.
    pub server: SocketAddr,
    /// How packets get into the tunnel; `None`: no tunnel.
    pub tunnel: Option<SocketOptions>,
}

impl Destination {
    /// A server without a tunnel.
    pub const fn of(server: SocketAddr) -> Self {
        Self { host: server.ip(), server, tunnel: None }
    }

    /// The local address to bind, if any.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        let source = self.tunnel?.source?;
        Some(SocketAddr::new(source, 0))
    }

    /// Prepares a socket for the tunnel.
    ///
    /// # Errors
    /// Setting the mark needs `CAP_NET_ADMIN`.
    pub(super) fn prepare(&self, socket: &impl AsFd, is_tcp: bool) -> io::Result<()> {
        let Some(tunnel) = self.tunnel else { return Ok(()) };
        let socket = SockRef::from(socket);
        if is_tcp {
            socket.set_tcp_mss(SEGMENT)?;
        }
        socket.set_mark(tunnel.mark)
    }
}

/// Connects. Dropping the connection resets it.
///
/// A FIN would leave this host's end in TIME_WAIT for a minute: ten thousand checks a second would
/// hold 600,000 of them, more than the kernel keeps, and use up the source ports towards a backend
/// that is checked often. A reset leaves nothing at either end.
pub async fn connect(to: Destination) -> io::Result<TcpStream> {
    let server = to.server;
    let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_zero_linger()?;
    to.prepare(&socket, true)?;
    if let Some(local) = to.local() {
        socket.bind(local)?;
    }
    let stream = socket.connect(server).await?;
    if stream.local_addr()? == server {
        // Nothing listens: the kernel chose the same port as source, and the socket connected to itself.
        return Err(ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// Whether the host itself refused. "Unreachable" is the word of a router or of this host.
pub fn is_answer(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

/// Connects within `time`, and probes the host meanwhile.
pub(super) async fn connect_or_probe_host(
    to: Destination,
    time: Duration,
    host_prober: &HostProber,
) -> Result<TcpStream, Failure> {
    wait_or_probe_host(connect(to), to.host, time, NoConnection::TimedOut(time), host_prober).await
}

/// Waits for `waiting` within `time`, and probes the host within the same time, so that the check of a host that is
/// down does not take longer. `late` is the reason if nothing answers.
pub(super) async fn wait_or_probe_host<T>(
    waiting: impl Future<Output = io::Result<T>>,
    host: IpAddr,
    time: Duration,
    late: NoConnection,
    host_prober: &HostProber,
) -> Result<T, Failure> {
    let start = Instant::now();
    let end = sleep_until(start + time);
    let hurry = Notify::new();
    let asking = async {
        // Either the time has come, or `waiting` has failed before.
        let _ = timeout_at(start + time / ASK_AFTER, hurry.notified()).await;
        host_prober.probe(host).await
    };
    tokio::pin!(waiting, asking, end);
    let (mut failed, mut sign) = (None, None);
    while failed.is_none() || sign.is_none() {
        tokio::select! {
            biased;
            come = &mut waiting, if failed.is_none() => match come {
                Err(error) if !is_answer(&error) && !is_shortage(&error) => {
                    failed = Some(error);
                    hurry.notify_one();
                }
                come => return Ok(come?),
            },
            found = &mut asking, if sign.is_none() => sign = Some(found),
            () = &mut end => break,
        }
    }
    let sign = sign.transpose()?.flatten();
    let why = failed.map_or(late, NoConnection::Failed);
    Err(Failure::NoConnection { why, sign })
}
