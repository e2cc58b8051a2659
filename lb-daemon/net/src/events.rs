//! Events of the kernel about links, neighbours, routes and addresses.

use std::io;

use futures::FutureExt;
use netlink_packet_core::{NetlinkBuffer, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{AsyncSocket, AsyncSocketExt, TokioSocket, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use rtnetlink::MulticastGroup;
use tracing::debug;

use super::{Interface, NetError, neighbour::NeighbourEntry};

/// Buffer for one datagram, bytes; the kernel sends at most 32 KiB.
const DATAGRAM: usize = 64 * 1024;

/// Receive buffer, bytes; the kernel's limits may make it smaller.
const BACKLOG: usize = 4 * 1024 * 1024;

/// Most datagrams read in one call.
const MOST_TOGETHER: usize = 256;

/// Message types of `linux/rtnetlink.h`.
mod kind {
    pub(super) const LINKS: [u16; 2] = [16, 17];
    pub(super) const ADDRESSES: [u16; 2] = [20, 21];
    pub(super) const NEIGHBOURS: [u16; 2] = [28, 29];
    /// NLMSG_NOOP, NLMSG_ERROR, NLMSG_DONE.
    pub(super) const IDLE: [u16; 3] = [1, 2, 3];
    pub(super) const OVERRUN: u16 = 4;
}

/// Something that changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Neighbour(NeighbourEntry),
    NeighbourGone(NeighbourEntry),
    Link(Interface),
    LinkGone(u32),
    /// An address of this host.
    Address,
    /// A route or a rule, or what else was subscribed to.
    Routing,
    /// Events were lost.
    Lost,
}

/// The socket that receives them.
pub(super) struct Events {
    socket: TokioSocket,
    datagram: Vec<u8>,
}

/// All groups that next hops depend on.
pub(super) const OF_NEXT_HOPS: &[MulticastGroup] = &[
    MulticastGroup::Link,
    MulticastGroup::Neigh,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
    MulticastGroup::Ipv4Rule,
    MulticastGroup::Ipv6Rule,
    MulticastGroup::Nexthop,
];

/// The addresses of this host.
pub(super) const OF_ADDRESSES: &[MulticastGroup] =
    &[MulticastGroup::Ipv4Ifaddr, MulticastGroup::Ipv6Ifaddr];

/// Addresses of this host, and settings of interfaces, of which forwarding is one (RTM_NEWNETCONF).
pub(super) const OF_HOST: &[MulticastGroup] = &[
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Netconf,
    MulticastGroup::Ipv6Netconf,
];

/// What the kernel takes packets for: routes and rules, and addresses, which have local routes.
pub(super) const OF_ROUTES: &[MulticastGroup] = &[
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
    MulticastGroup::Ipv4Rule,
    MulticastGroup::Ipv6Rule,
];

impl Events {
    /// Subscribes, in this thread's network namespace.
    pub(super) fn open(groups: &[MulticastGroup]) -> Result<Self, NetError> {
        let open = || {
            let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
            let inner = socket.socket_mut();
            inner.set_rx_buf_sz(BACKLOG as i32)?;
            inner.bind_auto()?;
            for group in groups {
                inner.add_membership(*group as u32)?;
            }
            Ok(Self { socket, datagram: Vec::with_capacity(DATAGRAM) })
        };
        open().map_err(NetError::Socket)
    }

    /// Waits for an event, and returns it with those that have arrived meanwhile. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Vec<Event>, NetError> {
        let mut events = Vec::new();
        let first = self.receive().await;
        self.take(first, &mut events)?;
        for _ in 1..MOST_TOGETHER {
            let Some(more) = self.receive().now_or_never() else { break };
            self.take(more, &mut events)?;
        }
        Ok(events)
    }

    async fn receive(&mut self) -> io::Result<()> {
        self.datagram.clear();
        self.socket.recv(&mut self.datagram).await
    }

    fn take(&self, received: io::Result<()>, events: &mut Vec<Event>) -> Result<(), NetError> {
        match received {
            Ok(()) => parse(&self.datagram, events),
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                events.push(Event::Lost);
            }
            Err(error) => return Err(NetError::Socket(error)),
        }
        Ok(())
    }
}

/// Reads the messages of a datagram. Of routes, rules and addresses only the type is read.
fn parse(mut datagram: &[u8], events: &mut Vec<Event>) {
    while !datagram.is_empty() {
        let Ok(message) = NetlinkBuffer::new_checked(datagram) else {
            events.push(Event::Lost);
            return;
        };
        let length = message.length() as usize;
        match message.message_type() {
            kind if kind::IDLE.contains(&kind) => {}
            kind::OVERRUN => events.push(Event::Lost),
            kind if kind::LINKS.contains(&kind) || kind::NEIGHBOURS.contains(&kind) => {
                events.extend(interpret(&datagram[..length]));
            }
            kind if kind::ADDRESSES.contains(&kind) => events.push(Event::Address),
            _ => events.push(Event::Routing),
        }
        // Messages are aligned to four bytes, netlink(7).
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn interpret(message: &[u8]) -> Option<Event> {
    let payload = match NetlinkMessage::deserialize(message) {
        Ok(message) => message.payload,
        Err(error) => {
            debug!("net: unreadable event: {error}");
            return Some(Event::Lost);
        }
    };
    let NetlinkPayload::InnerMessage(message) = payload else { return None };
    match message {
        RouteNetlinkMessage::NewNeighbour(m) => NeighbourEntry::parse(m).map(Event::Neighbour),
        RouteNetlinkMessage::DelNeighbour(m) => NeighbourEntry::parse(m).map(Event::NeighbourGone),
        RouteNetlinkMessage::NewLink(m) => Interface::parse(m).map(Event::Link),
        RouteNetlinkMessage::DelLink(m) => Interface::parse(m).map(|i| Event::LinkGone(i.index)),
        _ => None,
    }
}
