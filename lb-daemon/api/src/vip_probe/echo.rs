//! Echo requests through a tunnel, of a given size.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::SockRef;
use tokio::{
    net::UdpSocket,
    time::{Instant, timeout_at},
};

use lb_health::{
    connect::SocketOptions,
    host::{echo_request, open_echo_socket},
};

/// One packet may be lost by chance, three in a row rarely are.
const TRIES: usize = 3;
/// Tries for each size of a path MTU search, which needs many requests.
const SEARCH_TRIES: usize = 2;
/// Time for an answer, longer than a round trip around the earth. A late answer to an earlier request counts too.
const WAIT: Duration = Duration::from_millis(350);
/// Length of an IPv4 or IPv6 header, bytes.
const fn ip_header(address: IpAddr) -> usize {
    if address.is_ipv4() { 20 } else { 40 }
}
/// Length of the header of an echo request, bytes.
const HEADER: usize = 8;
/// Bytes of the sequence number.
const SEQUENCE: std::ops::Range<usize> = 6..8;
/// Size of a small packet, as `ping` sends, bytes.
pub(super) const SMALL: u16 = 84;

/// A socket for echo requests to a VIP.
#[derive(Debug)]
pub(super) struct Echo {
    socket: UdpSocket,
    vip: IpAddr,
    /// The sequence number of the next request.
    next: u16,
}

impl Echo {
    /// A socket whose packets go through a tunnel.
    ///
    /// # Errors
    /// This process may not have one (`net.ipv4.ping_group_range`), or no mark; or the source is no address of
    /// this host.
    pub(super) async fn open(vip: IpAddr, options: SocketOptions) -> io::Result<Self> {
        let socket = open_echo_socket(vip)?;
        if let Some(mark) = options.mark {
            SockRef::from(&socket).set_mark(mark)?;
        }
        // Nobody is to make two of one, and whether one fits this host's next link is to be found out too.
        match vip {
            IpAddr::V4(_) => set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?,
            IpAddr::V6(_) => set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?,
        }
        if let Some(source) = options.source {
            SockRef::from(&socket).bind(&SocketAddr::new(source, 0).into())?;
        }
        socket.connect(SocketAddr::new(vip, 0)).await?;
        Ok(Self { socket, vip, next: 0 })
    }

    /// Sends IP packets of `size` bytes until one is answered, and returns its round-trip time; `None`: no answer.
    ///
    /// # Errors
    /// No packet could be sent.
    pub(super) async fn send(&mut self, size: u16) -> io::Result<Option<Duration>> {
        self.send_tries(size, TRIES).await
    }

    /// Whether the source address can be answered through the tunnel: link-local ones cannot.
    pub(super) fn can_be_answered(&self) -> bool {
        match self.socket.local_addr().map(|address| address.ip()) {
            Ok(IpAddr::V6(address)) => !address.is_unicast_link_local() && !address.is_loopback(),
            Ok(IpAddr::V4(address)) => !address.is_link_local() && !address.is_loopback(),
            Err(_) => false,
        }
    }

    /// The largest size that is answered, given that `least` is and `most` is not.
    pub(super) async fn largest(&mut self, mut least: u16, mut most: u16) -> io::Result<u16> {
        while most - least > 1 {
            let middle = least.midpoint(most);
            match self.send_tries(middle, SEARCH_TRIES).await? {
                Some(_) => least = middle,
                None => most = middle,
            }
        }
        Ok(least)
    }

    async fn send_tries(&mut self, size: u16, tries: usize) -> io::Result<Option<Duration>> {
        let length = usize::from(size).saturating_sub(ip_header(self.vip)).max(HEADER);
        let mut request = vec![0; length];
        request[..HEADER].copy_from_slice(&echo_request(self.vip));
        let first = self.next;
        let mut sent = Vec::new();
        let mut failed = None;
        for (number, at) in (first..).zip(0..tries) {
            self.next = number + 1;
            request[SEQUENCE].copy_from_slice(&number.to_be_bytes());
            let begun = Instant::now();
            sent.push(begun);
            match self.socket.send(&request).await {
                Ok(_) => failed = Some(Ok(())),
                Err(error) => failed = failed.or(Some(Err(error))),
            }
            let answered = self.answer(first, at, length, begun + WAIT).await;
            if let Some((index, when)) = answered {
                return Ok(Some(when.duration_since(sent[index])));
            }
        }
        failed.transpose().map(|_| None)
    }

    /// Waits until `end` for an answer to one of the requests from `first` to the `last` after it.
    async fn answer(
        &self,
        first: u16,
        last: usize,
        length: usize,
        end: Instant,
    ) -> Option<(usize, Instant)> {
        // The kernel delivers only answers to this socket's requests, from any sender.
        let mut answer = vec![0; length + 1];
        loop {
            match timeout_at(end, self.socket.recv(&mut answer)).await {
                Ok(Ok(received)) if received == length => {
                    let number =
                        u16::from_be_bytes([answer[SEQUENCE.start], answer[SEQUENCE.start + 1]]);
                    let index = usize::from(number.wrapping_sub(first));
                    if index <= last {
                        return Some((index, Instant::now()));
                    }
                }
                // An answer to an earlier size, or an ICMP error about a request: ignored.
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
