//! Datagrams that are only to be counted.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context as _, Result};

use crate::topology::Node;

/// Sends so many datagrams of so many bytes, each from a port of its own of an address of the node. The
/// sockets are to stay until all is counted: an answer to one that is closed brings an error, which is a
/// packet too.
///
/// # Errors
/// When one cannot be sent.
pub fn datagrams(
    node: &Node,
    from: IpAddr,
    to: SocketAddr,
    number: usize,
    bytes: usize,
) -> Result<Vec<UdpSocket>> {
    let payload = vec![0; bytes];
    node.enter(|| -> Result<Vec<UdpSocket>> {
        let send = |_| {
            let socket = UdpSocket::bind((from, 0)).context("datagrams: bind")?;
            socket.send_to(&payload, to).context("datagrams: send")?;
            Ok(socket)
        };
        (0..number).map(send).collect()
    })?
}
