//! Why the kernel could not be asked, and why an address has no next hop.

use std::{io, net::IpAddr};

use super::UnsupportedVlan;

/// Why the kernel could not be asked, or listened to.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No netlink socket.
    #[error("netlink socket")]
    Socket(#[source] io::Error),
    /// The connection for requests failed.
    #[error("netlink socket: closed")]
    Closed,
    /// A request failed.
    #[error("netlink: {request}")]
    Request {
        /// What was requested.
        request: &'static str,
        /// Why it failed.
        source: rtnetlink::Error,
    },
    /// No interface has this name.
    #[error("interface {0}: not found")]
    NoInterface(String),
}

impl NetError {
    /// Wraps the error of a request.
    pub(super) fn request(request: &'static str) -> impl FnOnce(rtnetlink::Error) -> Self {
        move |source| Self::Request { request, source }
    }
}

/// Why packets to a backend cannot leave this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// No route.
    #[error("no route")]
    NoRoute,
    /// A route that refuses: `blackhole`, `prohibited`, `unreachable`.
    #[error("no route: {0}")]
    Refused(&'static str),
    /// The address is this host's own.
    #[error("{0} is an address of this host")]
    Own(IpAddr),
    /// A broadcast or multicast address.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// The route adds an encapsulation header.
    #[error("the route encapsulates packets, which is not supported")]
    Encapsulated,
    /// The interface was removed, and routes have not been looked up since.
    #[error("interface {0} is gone")]
    Gone(u32),
    /// The interface is set down.
    #[error("interface {0} is down")]
    Down(String),
    /// The interface has no carrier.
    #[error("interface {0} has no carrier")]
    NoCarrier(String),
    /// A tunnel or loopback.
    #[error("interface {0} is not an Ethernet interface")]
    NotEthernet(String),
    /// The interface is a VLAN whose tag only the kernel can add, and has no packet program itself.
    #[error("{interface} needs a VLAN tag that the packet program cannot add: {cause}")]
    Untaggable {
        /// Name of the interface.
        interface: String,
        /// Why the tag cannot be added.
        #[source]
        cause: UnsupportedVlan,
    },
    /// The interface has ARP off, and the neighbour table has no entry for the gateway.
    #[error(
        "no neighbour entry for {gateway} on {interface}, and {interface} resolves none (noarp)"
    )]
    NoArp {
        /// The route's gateway, or the backend itself.
        gateway: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The neighbour did not answer several requests.
    #[error("neighbour {gateway} on {interface} does not answer")]
    Silent {
        /// The route's gateway, or the backend itself.
        gateway: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The kernel refused to resolve the neighbour, for example because its table is full.
    #[error("the kernel cannot resolve neighbour {gateway} on {interface}: {cause}")]
    Unresolvable {
        /// The route's gateway, or the backend itself.
        gateway: IpAddr,
        /// Name of the interface.
        interface: String,
        /// The kernel's reason.
        cause: String,
    },
}

impl Unresolved {
    /// Whether it may pass by itself within moments: a neighbour or a link that comes back. What else there is follows from
    /// the host's configuration.
    pub fn is_momentary(&self) -> bool {
        matches!(
            self,
            Self::NoRoute
                | Self::Gone(_)
                | Self::Down(_)
                | Self::NoCarrier(_)
                | Self::Silent { .. }
                | Self::Unresolvable { .. }
        )
    }
}
