//! What the ways to backends carry, as ICMP errors about tunnel packets tell it.
//!
//! Packets that XDP sends are no socket's, so the kernel learns nothing from the errors that they meet. They
//! come back to the source of the tunnels, which is this host, and two raw sockets hear of them. Whoever can
//! send such an error with the addresses of a tunnel in it can make it look narrower: never below 576 bytes
//! (1280 for IPv6), and for [`FORGOTTEN_AFTER`].

mod quoted;

use std::{
    io::{self, Read},
    net::IpAddr,
    os::fd::OwnedFd,
    time::Duration,
};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use tokio::{
    net::UdpSocket,
    sync::mpsc,
    time::{Instant, sleep_until},
};

use lb_model::plan::Sources;
use quoted::TooBig;

/// Time after which a way may have become wider again (RFC 8201, 5.2.3: at least 5 minutes, 10 recommended).
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// Errors that are read a second; the sockets' buffers bound what waits, and the rest is lost.
const A_SECOND: u32 = 100;
/// Read of an error at most: IPv4 header, ICMP header and the quoted header, with all options.
const LENGTH: usize = 256;

/// What a way carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathMtu {
    /// The backend.
    pub(super) to: IpAddr,
    /// Largest outer packet, bytes.
    pub(super) mtu: u16,
}

/// Hears what the ways carry, in the network namespace of the calling thread. Without the right to (CAP_NET_RAW)
/// nothing is heard, which the log says. Ends with its receiver.
pub(super) fn listen(sources: Sources) -> mpsc::Receiver<PathMtu> {
    let (sender, receiver) = mpsc::channel(A_SECOND as usize);
    for version in [4, 6] {
        match open(version) {
            Ok(socket) => {
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Err(error) = hear(socket, version, sources, sender).await {
                        tracing::warn!("path MTU: IPv{version}: no longer heard of: {error}");
                    }
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => tracing::info!(
                "path MTU: IPv{version}: nothing is learnt of it without CAP_NET_RAW"
            ),
            Err(error) => tracing::warn!(
                "path MTU: IPv{version}: routers that say a tunnel packet is too large are not heard: {error}"
            ),
        }
    }
    receiver
}

/// A socket that has the errors and little else.
///
/// To tokio it is a datagram socket, as which it behaves: one packet a read.
fn open(version: u8) -> io::Result<UdpSocket> {
    let (domain, protocol) = match version {
        4 => (Domain::IPV4, Protocol::ICMPV4),
        _ => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(protocol))?;
    socket.attach_filter(&filter(version))?;
    // What came before the filter was there.
    while (&socket).read(&mut [0; LENGTH]).is_ok() {}
    UdpSocket::from_std(std::net::UdpSocket::from(OwnedFd::from(socket)))
}

/// Takes "fragmentation needed" or "packet too big", so that a flood of pings wakes nobody (bpf(4)).
fn filter(version: u8) -> Vec<SockFilter> {
    // include/uapi/linux/bpf_common.h
    const LOAD_BYTE: u16 = 0x30; // BPF_LD | BPF_B | BPF_ABS
    const LOAD_HALF_AT: u16 = 0x48; // BPF_LD | BPF_H | BPF_IND
    const LOAD_HEADER: u16 = 0xb1; // BPF_LDX | BPF_B | BPF_MSH: the length of an IPv4 header
    const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    match version {
        4 => vec![
            SockFilter::new(LOAD_HEADER, 0, 0, 0),
            SockFilter::new(LOAD_HALF_AT, 0, 0, 0),
            SockFilter::new(IF_EQUAL, 0, 1, 0x0304),
            SockFilter::new(RETURN, 0, 0, LENGTH as u32),
            SockFilter::new(RETURN, 0, 0, 0),
        ],
        // A raw socket of IPv6 begins at the message.
        _ => vec![
            SockFilter::new(LOAD_BYTE, 0, 0, 0),
            SockFilter::new(IF_EQUAL, 0, 1, 2),
            SockFilter::new(RETURN, 0, 0, LENGTH as u32),
            SockFilter::new(RETURN, 0, 0, 0),
        ],
    }
}

/// Reads errors, [`A_SECOND`] at most, until nobody wants to hear of them.
async fn hear(
    socket: UdpSocket,
    version: u8,
    sources: Sources,
    sender: mpsc::Sender<PathMtu>,
) -> io::Result<()> {
    let (mut left, mut since) = (A_SECOND, Instant::now());
    loop {
        let mut packet = [0; LENGTH];
        let length = tokio::select! {
            read = socket.recv(&mut packet) => read?,
            () = sender.closed() => return Ok(()),
        };
        let told = match version {
            4 => quoted::v4(&packet[..length]),
            _ => quoted::v6(&packet[..length]),
        };
        if let Some(TooBig { destination: to, mtu, .. }) =
            told.filter(|told| is_ours(told, sources))
            && sender.send(PathMtu { to, mtu }).await.is_err()
        {
            return Ok(());
        }
        left -= 1;
        if left == 0 {
            sleep_until(since + Duration::from_secs(1)).await;
            (left, since) = (A_SECOND, Instant::now());
        }
    }
}

/// Whether a packet came from this host's end of its tunnels.
fn is_ours(told: &TooBig, sources: Sources) -> bool {
    let own = [sources.v4.map(IpAddr::V4), sources.v6.map(IpAddr::V6)];
    own.contains(&Some(told.source))
}
