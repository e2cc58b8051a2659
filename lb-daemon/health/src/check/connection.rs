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
use crate::{host::Asker, tunnel::Entrance};

/// The host is asked when this part of the time has passed without a word of it: late enough that
/// hosts that serve are never asked, early enough that an answer has thrice as long to come.
const ASK_AFTER: u32 = 4;

/// Largest TCP segment in a tunnel, bytes: with all headers it fits every link that IPv6 crosses, so that
/// no check fails for the size of its question. Whether clients' packets fit is for the doctor to say.
const SEGMENT: u32 = 1_160;

/// Where a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The backend's host, which is asked whether it is there.
    pub host: IpAddr,
    /// What is connected to: the backend's address, or a VIP.
    pub server: SocketAddr,
    /// How its packets get there; `None`: as any others.
    pub entrance: Option<Entrance>,
}

impl Destination {
    /// A server by its own address.
    pub const fn of(server: SocketAddr) -> Self {
        Self { host: server.ip(), server, entrance: None }
    }

    /// What a socket is bound to first, if to anything.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        let source = self.entrance?.source?;
        Some(SocketAddr::new(source, 0))
    }

    /// Sets up a socket for it.
    ///
    /// # Errors
    /// It may not have a mark: that takes `CAP_NET_ADMIN`.
    pub(super) fn prepare(&self, socket: &impl AsFd, is_tcp: bool) -> io::Result<()> {
        let Some(entrance) = self.entrance else { return Ok(()) };
        let socket = SockRef::from(socket);
        if is_tcp {
            socket.set_tcp_mss(SEGMENT)?;
        }
        socket.set_mark(entrance.mark)
    }
}

/// Connects; the connection ends with a reset when it is dropped.
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
        // Nobody listens: the kernel picked the very port as source, and the socket met itself.
        return Err(ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// Whether the host itself said that there is no connection. What is unreachable somebody else says:
/// this host, or a router.
pub fn is_answer(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

/// Connects within `time`, from now.
pub(super) async fn made(
    to: Destination,
    time: Duration,
    asker: &Asker,
) -> Result<TcpStream, Failure> {
    word(connect(to), to.host, time, NoConnection::InTime(time), asker).await
}

/// What comes of `waiting`, for a word of the host, within `time` from now; `late` if nothing does.
/// The same time serves to ask the host: the check of a host that is gone takes no longer for it.
pub(super) async fn word<T>(
    waiting: impl Future<Output = io::Result<T>>,
    host: IpAddr,
    time: Duration,
    late: NoConnection,
    asker: &Asker,
) -> Result<T, Failure> {
    let start = Instant::now();
    let end = sleep_until(start + time);
    let hurry = Notify::new();
    let asking = async {
        // Whether the time came or the wait failed before.
        let _ = timeout_at(start + time / ASK_AFTER, hurry.notified()).await;
        asker.sign_of(host).await
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
