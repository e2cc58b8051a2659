//! Asking a service who answers, from a chosen address and port.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use socket2::{Domain, Socket, Type};

use crate::topology::Node;

/// No answer for so long: there is none.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends one datagram from `from` to `to` and returns the answer of an [`Echo`](super::Echo): the
/// name of its node.
///
/// # Errors
/// When there is no answer, or it comes from elsewhere.
pub fn name_over_udp(node: &Node, from: SocketAddr, to: SocketAddr) -> Result<String> {
    node.enter(|| ask_udp(from, to))?
}

/// [`name_over_udp`] from within a node.
///
/// # Errors
/// As there.
pub fn ask_udp(from: SocketAddr, to: SocketAddr) -> Result<String> {
    let socket = UdpSocket::bind(from).with_context(|| format!("bind {from}"))?;
    socket.connect(to).with_context(|| format!("connect {from} to {to}"))?;
    socket.set_read_timeout(Some(PATIENCE)).context("timeout")?;
    socket.send(b"?").with_context(|| format!("send from {from} to {to}"))?;
    let mut buffer = [0; 64];
    let length = socket.recv(&mut buffer).with_context(|| format!("answer of {to} to {from}"))?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Asks for `/` on a fresh connection from `from` to `to` and returns the page of an
/// [`Nginx`](super::Nginx): the name of its node.
///
/// # Errors
/// When there is no answer, or one that is no success.
pub fn name_over_http(node: &Node, from: SocketAddr, to: SocketAddr) -> Result<String> {
    node.enter(|| ask_http(from, to))?
}

/// [`name_over_http`] from within a node.
///
/// # Errors
/// As there.
pub fn ask_http(from: SocketAddr, to: SocketAddr) -> Result<String> {
    let body = exchange(from, to, b"GET / HTTP/1.0\r\n\r\n", PATIENCE)?;
    Ok(String::from_utf8_lossy(&body).trim_end().into())
}

/// Puts bytes on a fresh connection from `from` to `to` and returns those that a [web server](super::serve) gives
/// back.
///
/// # Errors
/// When there is no answer, or one that is no success.
pub fn returned_over_http(
    node: &Node,
    from: SocketAddr,
    to: SocketAddr,
    bytes: &[u8],
) -> Result<Vec<u8>> {
    /// A guest's processor is emulated.
    const LONG: Duration = Duration::from_secs(60);
    let head = format!("PUT / HTTP/1.0\r\nContent-Length: {}\r\n\r\n", bytes.len());
    node.enter(|| exchange(from, to, &[head.as_bytes(), bytes].concat(), LONG))?
}

/// Asks on a fresh connection, and returns the body of the answer.
fn exchange(
    from: SocketAddr,
    to: SocketAddr,
    request: &[u8],
    patience: Duration,
) -> Result<Vec<u8>> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).context("socket")?;
    socket.set_reuse_address(true).context("reuse")?;
    socket.bind(&from.into()).with_context(|| format!("bind {from}"))?;
    let failed = || format!("{from} to {to}");
    socket.connect_timeout(&to.into(), patience).with_context(failed)?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience)).context("timeout")?;
    stream.write_all(request).with_context(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(failed)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").with_context(failed)?;
    let body = answer.split_off(end + 4);
    let head = String::from_utf8_lossy(&answer);
    ensure!(head.starts_with("HTTP/1.1 200 "), "{from} to {to}: {head}");
    Ok(body)
}
