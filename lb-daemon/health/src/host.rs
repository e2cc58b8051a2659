//! Probes whether a host is up that does not answer a check's connection.
//!
//! The check's [`HostProbe`] says how. No method needs a privilege that the daemon lacks, and any answer counts. A method
//! that is not permitted or gets no answer proves nothing.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, UdpSocket as StdSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::{Either, select};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use socket2::SockRef;
use tokio::net::UdpSocket;
use tracing::{debug, warn};

use super::connect::{Destination, connect, is_answer, is_shortage};
use lb_base::error_chain;
use lb_model::{HealthCheck, HostProbe};
use lb_net::{NeighbourProbe, SourceRules};

/// The sign that a host gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It answered a SYN to a port that is not the check's.
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
    sources: SourceRules,
    /// Whether it was logged that echo requests are not permitted. Clones share it.
    warned: Arc<AtomicBool>,
}

/// How the host of a check is probed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostQuestion<'a> {
    prober: &'a HostProber,
    how: HostProbe,
    port: u16,
}

impl HostQuestion<'_> {
    /// As [`HostProber::probe`].
    pub(crate) async fn ask(&self, host: IpAddr) -> io::Result<Option<Sign>> {
        self.prober.probe(host, self.how, self.port).await
    }
}

impl HostProber {
    /// Opens its sockets in the network namespace of the calling thread; its packets have their source by `sources`.
    pub fn open(sources: SourceRules) -> Self {
        let neighbour_probe = NeighbourProbe::open().map_err(|error| {
            let error = error_chain::message(&error);
            warn!("health: cannot probe neighbours: {error}");
        });
        let neighbour_probe = neighbour_probe.ok().map(Arc::new);
        Self { neighbour_probe, sources, warned: Arc::default() }
    }

    /// How the host of a check is probed.
    pub(crate) fn question(&self, check: &HealthCheck) -> HostQuestion<'_> {
        HostQuestion { prober: self, how: check.host_probe, port: check.host_probe_port }
    }

    /// Waits for a sign of a host. Returns `None` only if no method can reach it.
    ///
    /// # Errors
    /// This host lacks a resource for probing.
    pub async fn probe(&self, host: IpAddr, how: HostProbe, port: u16) -> io::Result<Option<Sign>> {
        match how {
            HostProbe::Auto => self.quiet(host, Some(port)).await,
            HostProbe::Neighbour => self
                .neighbour(host)
                .await
                .map(|answers| answers.filter(|answers| *answers).map(|_| Sign::Neighbour)),
            HostProbe::Icmp => match open_echo_socket(host) {
                Ok(socket) => proof(host, self.echo(socket, host).await),
                Err(error) => proof(host, Err(error)),
            },
            HostProbe::Tcp => {
                let (quiet, port) = (self.quiet(host, None), self.port(host, port));
                tokio::pin!(quiet, port);
                // The first sign counts, and the first shortage. Otherwise the other method decides.
                match select(quiet, port).await {
                    Either::Left((Ok(None), port)) => port.await,
                    Either::Right((Ok(None), quiet)) => quiet.await,
                    Either::Left((sign, _)) | Either::Right((sign, _)) => sign,
                }
            }
        }
    }

    /// Asks below IP, if the kernel has the neighbour entry of the host, else by an echo request. If that is not permitted,
    /// a connection to `port` replaces it.
    async fn quiet(&self, host: IpAddr, port: Option<u16>) -> io::Result<Option<Sign>> {
        if let Some(answers) = self.neighbour(host).await? {
            return Ok(answers.then_some(Sign::Neighbour));
        }
        match (open_echo_socket(host), port) {
            (Ok(socket), _) => proof(host, self.echo(socket, host).await),
            (Err(error), Some(port)) if error.kind() == io::ErrorKind::PermissionDenied => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    warn!(
                        "health: this daemon may not send echo requests (net.ipv4.ping_group_range): silent hosts that \
                         are not on this host's links are asked by a TCP connection to port {port}"
                    );
                }
                self.port(host, port).await
            }
            (Err(error), _) => proof(host, Err(error)),
        }
    }

    /// Sends one echo request and waits for the answer without a limit.
    ///
    /// # Errors
    /// No route to the host.
    async fn echo(&self, socket: UdpSocket, host: IpAddr) -> io::Result<Option<Sign>> {
        if let Some(source) = self.source(host).await? {
            SockRef::from(&socket).bind(&SocketAddr::new(source, 0).into())?;
        }
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

    async fn source(&self, host: IpAddr) -> io::Result<Option<IpAddr>> {
        self.sources.of_own_packets(host).await.map_err(io::Error::other)
    }

    /// Connects to a port on which nothing should listen. Over UDP, Linux sends only one "port unreachable" a second.
    async fn port(&self, host: IpAddr, port: u16) -> io::Result<Option<Sign>> {
        let source = match self.source(host).await {
            Ok(source) => source,
            Err(error) => return proof(host, Err(error)),
        };
        match connect(Destination::direct(SocketAddr::new(host, port), source)).await {
            Ok(_) => Ok(Some(Sign::Port)),
            Err(error) if is_answer(&error) => Ok(Some(Sign::Port)),
            Err(error) => proof(host, Err(error)),
        }
    }

    /// Whether a host answers on the link; `None`: it cannot be asked there.
    async fn neighbour(&self, host: IpAddr) -> io::Result<Option<bool>> {
        let Some(neighbour_probe) = &self.neighbour_probe else { return Ok(None) };
        match neighbour_probe.probe(host).await {
            Ok(answers) => Ok(answers),
            Err(error) => proof(host, Err(io::Error::other(error))),
        }
    }
}

/// What a method proves: nothing if it failed, except for a shortage on this host.
fn proof<T>(host: IpAddr, answer: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match answer {
        Err(error) if !is_shortage(&error) => {
            debug!("health: {host}: one way of probing the host failed: {error}");
            Ok(None)
        }
        answer => answer,
    }
}

/// Type of an echo request, RFC 792.
const REQUEST_V4: u8 = 8;

/// Type of an echo request, RFC 4443.
const REQUEST_V6: u8 = 128;

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
