use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use memchr::memmem;
use tokio::net::UdpSocket;

use super::{Destination, Failure, NoConnection, connection::wait_or_probe_host};
use crate::host::HostQuestion;
use lb_model::UdpCheck;

/// How much of an answer is read, bytes.
pub(super) const MOST: usize = 4096;

/// Sends the datagram and checks the first answer, within `time`.
pub(super) async fn ask(
    to: Destination,
    probe: &UdpCheck,
    time: Duration,
    question: HostQuestion<'_>,
) -> Result<(), Failure> {
    let answer = exchange(to, &probe.request);
    let answer =
        wait_or_probe_host(answer, to, NoConnection::NoDatagram(time), time, question).await?;
    if !answer.starts_with(&probe.answer_prefix) {
        return Err(Failure::Prefix(probe.answer_prefix.clone()));
    }
    match memmem::find(&answer, &probe.answer_contains) {
        Some(_) => Ok(()),
        None => Err(Failure::AnswerLacks(probe.answer_contains.clone())),
    }
}

/// Uses a new socket each time, so that only an answer to this request, or an ICMP error about it, gets there.
async fn exchange(to: Destination, request: &[u8]) -> io::Result<Vec<u8>> {
    let server = to.server;
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(to.local().unwrap_or(any)).await?;
    to.prepare(&socket, false)?;
    socket.connect(server).await?;
    if socket.local_addr()? == server {
        // Nothing listens: the kernel chose the same port as source, and the socket connected to itself.
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    socket.send(request).await?;
    let mut answer = Vec::with_capacity(MOST);
    socket.recv_buf(&mut answer).await?;
    Ok(answer)
}
