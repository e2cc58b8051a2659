//! Whether a host that lets a check's connection hang is there at all.
//!
//! It is asked in ways that need no privilege that the daemon lacks, at once, and the first answer
//! counts. That a way is barred here, or that nothing comes of it, says nothing.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, UdpSocket as StdSocket},
    sync::Arc,
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use tokio::net::UdpSocket;
use tracing::{debug, warn};

use super::check::{Destination, connect, is_answer, is_shortage};
use lb_base::error_chain;
use lb_net::NeighbourProbe;

/// A port that nobody serves (tcpmux, RFC 1078): a host that is there refuses it, as often as it is
/// asked. What is unreachable over UDP Linux says once a second only.
pub const UNSERVED: u16 = 1;

/// What a host showed of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It answered a SYN to [`UNSERVED`].
    Port,
    /// It returned an echo request.
    Echo,
    /// It answered for its address on the link.
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

/// Asks hosts.
#[derive(Clone, Debug)]
pub struct Asker {
    neighbour_probe: Option<Arc<NeighbourProbe>>,
}

impl Asker {
    /// In the network namespace of the calling thread.
    pub fn open() -> Self {
        let neighbour_probe = NeighbourProbe::open().map_err(|error| {
            let error = error_chain::message(&error);
            warn!("health: neighbours cannot be asked whether they are there: {error}");
        });
        Self { neighbour_probe: neighbour_probe.ok().map(Arc::new) }
    }

    /// Waits for a sign of a host; ends without one only where no way of asking leads to it.
    ///
    /// # Errors
    /// This host has no room to ask.
    pub async fn sign_of(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        let ways = [self.port(host).boxed(), ask_echo(host).boxed(), self.neighbour(host).boxed()];
        let mut ways: FuturesUnordered<_> = ways.into_iter().collect();
        while let Some(answer) = ways.next().await {
            match answer {
                Ok(Some(sign)) => return Ok(Some(sign)),
                Ok(None) => {}
                Err(error) if is_shortage(&error) => return Err(error),
                Err(error) => debug!("health: {host} cannot be asked one way: {error}"),
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

/// Sends one request and waits for the host's answer, however long.
///
/// # Errors
/// It may not, or there is no way to the host.
async fn ask_echo(host: IpAddr) -> io::Result<Option<Sign>> {
    let socket = open_echo_socket(host)?;
    socket.connect(SocketAddr::new(host, 0)).await?;
    socket.send(&echo_request(host)).await?;
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
pub fn open_echo_socket(host: IpAddr) -> io::Result<UdpSocket> {
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
pub fn echo_request(host: IpAddr) -> [u8; 8] {
    let kind = if host.is_ipv4() { REQUEST_V4 } else { REQUEST_V6 };
    [kind, 0, 0, 0, 0, 0, 0, 1]
}
