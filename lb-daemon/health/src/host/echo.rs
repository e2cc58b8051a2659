//! Echo requests over the kernel's unprivileged sockets, which `net.ipv4.ping_group_range` allows to
//! groups of users; for IPv6 too.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket as StdSocket},
};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use tokio::net::UdpSocket;

use super::Sign;

/// Type of an echo request, RFC 792.
const REQUEST_V4: u8 = 8;

/// Type of an echo request, RFC 4443.
const REQUEST_V6: u8 = 128;

/// Sends one request and waits for the host's answer, however long.
///
/// # Errors
/// It may not, or there is no way to the host.
pub(super) async fn ask(host: IpAddr) -> io::Result<Option<Sign>> {
    let socket = open(host)?;
    socket.connect(SocketAddr::new(host, 0)).await?;
    socket.send(&request(host)).await?;
    // The kernel hands over answers to this socket's own requests, whoever they come from.
    let mut answer = [0; 64];
    loop {
        let (_, from) = socket.recv_from(&mut answer).await?;
        if from.ip() == host {
            return Ok(Some(Sign::Echo));
        }
    }
}

/// A socket for echo requests, of which the kernel hands over the answers.
///
/// # Errors
/// This process may not have one.
pub fn open(host: IpAddr) -> io::Result<UdpSocket> {
    let (family, protocol) = match host {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
        IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Datagram, flags, protocol)?;
    UdpSocket::from_std(StdSocket::from(socket))
}

/// Type, code, and room for what the kernel enters itself: checksum, the socket's number; then a
/// sequence number.
pub fn request(host: IpAddr) -> [u8; 8] {
    let kind = if host.is_ipv4() { REQUEST_V4 } else { REQUEST_V6 };
    [kind, 0, 0, 0, 0, 0, 0, 1]
}
