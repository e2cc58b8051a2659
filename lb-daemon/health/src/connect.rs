//! TCP connections of checks and probes, through a tunnel or without one.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    os::fd::AsFd,
};

use nix::errno::Errno;
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};

/// Largest TCP segment in a tunnel, bytes: with all headers it fits IPv6's minimum MTU, so that no check fails
/// because of its size. The doctor checks whether clients' packets fit.
const SEGMENT: u32 = 1_160;

/// What a socket needs besides the address that it connects to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// The mark of packets that go through a tunnel.
    pub mark: Option<u32>,
    /// Source address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// The link that packets leave by, where the mark does not route them there: to an address of this host.
    pub link: Option<&'static str>,
}

/// Where a connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The backend's host, which is probed if it does not answer.
    pub host: IpAddr,
    /// What is connected to: the backend's address, or a VIP.
    pub server: SocketAddr,
    pub options: SocketOptions,
}

impl Destination {
    /// A server without a tunnel; `source` `None`: the kernel chooses.
    pub const fn direct(server: SocketAddr, source: Option<IpAddr>) -> Self {
        Self {
            host: server.ip(),
            server,
            options: SocketOptions { mark: None, source, link: None },
        }
    }

    /// The VIP, if that is connected to.
    pub(crate) fn vip(&self) -> Option<IpAddr> {
        Some(self.server.ip()).filter(|server| *server != self.host)
    }

    /// The local address to bind, if any.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.options.source?, 0))
    }

    /// Prepares a socket for the tunnel, if there is one.
    ///
    /// # Errors
    /// Setting the mark needs `CAP_NET_ADMIN`.
    pub(crate) fn prepare(&self, socket: &impl AsFd, is_tcp: bool) -> io::Result<()> {
        let Some(mark) = self.options.mark else { return Ok(()) };
        let socket = SockRef::from(socket);
        if is_tcp {
            socket.set_tcp_mss(SEGMENT)?;
        }
        if let Some(link) = self.options.link {
            socket.bind_device(Some(link.as_bytes()))?;
        }
        socket.set_mark(mark)
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

/// Whether the error is a lack of resources on this host.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}
