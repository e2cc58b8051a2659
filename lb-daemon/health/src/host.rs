//! Probes whether a host is up that does not answer a check's connection.
//!
//! Several methods run concurrently, none of which needs a privilege that the daemon lacks, and the first answer
//! counts. A method that is not permitted or gets no answer proves nothing.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, UdpSocket as StdSocket},
    sync::Arc,
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use tokio::net::UdpSocket;
use tracing::{debug, warn};

use super::connect::{Destination, connect, is_answer, is_shortage};
use lb_base::error_chain;
use lb_net::NeighbourProbe;

/// A port that is normally unused (tcpmux, RFC 1078): a host that is up refuses each connection to it. For UDP,
/// Linux sends only one "port unreachable" a second.
pub const UNSERVED: u16 = 1;

/// The sign that a host gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It answered a SYN to [`UNSERVED`].
    Port,
    /// It answered an echo request.
    Echo,
    /// It answered ARP or neighbour discovery.
    Neighbour,
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Port => "answers on another port",
            Self::Echo => "answers echo requests",
            Self::Neighbour => "answers for its address on the link",
        })
    }
}

/// Probes hosts.
#[derive(Clone, Debug)]
pub struct HostProber {
    neighbour_probe: Option<Arc<NeighbourProbe>>,
}

impl HostProber {
    /// Opens its sockets in the network namespace of the calling thread.
    pub fn open() -> Self {
        let neighbour_probe = NeighbourProbe::open().map_err(|error| {
            let error = error_chain::message(&error);
            warn!("health: cannot probe neighbours: {error}");
        });
        Self { neighbour_probe: neighbour_probe.ok().map(Arc::new) }
    }

    /// Waits for a sign of a host. Returns `None` only if no method can reach it.
    ///
    /// # Errors
    /// This host lacks a resource for probing.
    pub async fn probe(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        let ways = [self.port(host).boxed(), ask_echo(host).boxed(), self.neighbour(host).boxed()];
        let mut ways: FuturesUnordered<_> = ways.into_iter().collect();
        while let Some(answer) = ways.next().await {
            match answer {
                Ok(Some(sign)) => return Ok(Some(sign)),
                Ok(None) => {}
                Err(error) if is_shortage(&error) => return Err(error),
                Err(error) => debug!("health: {host}: one way of probing the host failed: {error}"),
            }
        }
        Ok(None)
    }

    async fn port(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        match connect(Destination::of(SocketAddr::new(host, UNSERVED))).await {
            Ok(_) => Ok(Some(Sign::Port)),
            Err(error) if is_answer(&error) => Ok(Some(Sign::Port)),
            Err(error) => Err(error),
        }
    }

    async fn neighbour(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        let Some(neighbour_probe) = &self.neighbour_probe else { return Ok(None) };
        let answers = neighbour_probe.answers(host).await.map_err(io::Error::other)?;
        Ok(answers.then_some(Sign::Neighbour))
    }
}

/// Type of an echo request, RFC 792.
const REQUEST_V4: u8 = 8;

/// Type of an echo request, RFC 4443.
const REQUEST_V6: u8 = 128;

/// Sends one echo request and waits for the answer without a limit.
///
/// # Errors
/// Not permitted, or no route to the host.
async fn ask_echo(host: IpAddr) -> io::Result<Option<Sign>> {
    let socket = open_echo_socket(host)?;
    socket.connect(SocketAddr::new(host, 0)).await?;
    socket.send(&echo_request(host)).await?;
    // The kernel delivers answers to this socket's requests from any sender.
    let mut answer = [0; 64];
    loop {
        let (_, from) = socket.recv_from(&mut answer).await?;
        if from.ip() == host {
            return Ok(Some(Sign::Echo));
        }
    }
}

/// A socket for echo requests over ICMP, unprivileged if `net.ipv4.ping_group_range` allows it.
///
/// # Errors
/// Not permitted.
pub fn open_echo_socket(host: IpAddr) -> io::Result<UdpSocket> {
    let (family, protocol) = match host {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
        IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Datagram, flags, protocol)?;
    UdpSocket::from_std(StdSocket::from(socket))
}

/// An echo request's type, code, space for the checksum and identifier that the kernel sets, and a sequence number.
pub fn echo_request(host: IpAddr) -> [u8; 8] {
    let kind = if host.is_ipv4() { REQUEST_V4 } else { REQUEST_V6 };
    [kind, 0, 0, 0, 0, 0, 0, 1]
}
