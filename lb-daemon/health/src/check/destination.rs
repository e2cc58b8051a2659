use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::AsFd,
};

use socket2::SockRef;

use crate::tunnel::Entrance;

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
