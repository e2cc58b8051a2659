//! Why the kernel could not be asked, and why an address has no next hop.

use std::{io, net::IpAddr};

use super::ForeignVlan;

/// Why the kernel could not be asked, or listened to.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No netlink socket.
    #[error("netlink socket")]
    Socket(#[source] io::Error),
    /// The socket that questions go through failed.
    #[error("netlink socket: closed")]
    Closed,
    /// A question was not answered.
    #[error("netlink: {question}")]
    Request {
        /// What was asked.
        question: &'static str,
        /// Why there is no answer.
        source: rtnetlink::Error,
    },
    /// There is no such interface here.
    #[error("interface {0}: there is none of that name")]
    NoInterface(String),
}

impl NetError {
    /// A question that failed.
    pub(super) fn request(question: &'static str) -> impl FnOnce(rtnetlink::Error) -> Self {
        move |source| Self::Request { question, source }
    }
}

/// Why packets to a backend cannot leave this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// No route leads there.
    #[error("no route")]
    NoRoute,
    /// A route says that there is no way.
    #[error("no route: {0}")]
    Refused(&'static str),
    /// It is this host itself, where nothing can be sent to.
    #[error("{0} is an address of this host")]
    Own(IpAddr),
    /// It is no single host's address.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// The route adds a header of its own.
    #[error("the route encapsulates: not supported")]
    Encapsulated,
    /// The interface is gone, and the routes have not been looked up since.
    #[error("interface {0} is gone")]
    Gone(u32),
    /// The interface is set down.
    #[error("interface {0} is down")]
    Down(String),
    /// The interface has no carrier.
    #[error("interface {0} has no carrier")]
    NoCarrier(String),
    /// A tunnel, the loopback or the like.
    #[error("interface {0} carries no Ethernet frames")]
    NotEthernet(String),
    /// The interface is a VLAN whose tag only the kernel puts on, and has no packet program of ours itself.
    #[error("frames for {interface} get the tag of one VLAN (802.1Q) at most, and {cause}")]
    Untaggable {
        /// Name of the interface.
        interface: String,
        /// What it is.
        #[source]
        cause: ForeignVlan,
    },
    /// The interface asks for no neighbours, and nobody has entered this one.
    #[error(
        "neighbour {gateway} on {interface} is not known, and {interface} asks for none (noarp)"
    )]
    NoArp {
        /// The route's gateway, or the backend itself.
        gateway: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The neighbour was asked for, several times.
    #[error("neighbour {gateway} on {interface} does not answer")]
    Silent {
        /// The route's gateway, or the backend itself.
        gateway: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The kernel would not ask for the neighbour: its table is full, for example.
    #[error("neighbour {gateway} on {interface} cannot be asked for: {cause}")]
    Unaskable {
        /// The route's gateway, or the backend itself.
        gateway: IpAddr,
        /// Name of the interface.
        interface: String,
        /// What the kernel said.
        cause: String,
    },
}
