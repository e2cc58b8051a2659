//! Next hops: where packets to each backend leave this host, kept true from netlink.
//!
//! The kernel is asked for the route of every wanted address, and for the MAC of the route's neighbour. Its events
//! (`events`) and answers (`route`) go into `hops`, which does no I/O and says what changed and which neighbours to
//! request; [`NextHops`] does the I/O.
//!
//! - A neighbour's event changes its next hops at once. After any change of routes, rules, addresses or links all
//!   routes are looked up again; changes that arrive together cause one round.
//! - A neighbour without a MAC is requested again and again, with backoff. A stale one is requested before the
//!   kernel forgets it, because packets that XDP sends do not keep entries fresh.
//! - An address is reported once something is known of it, and again after each new set of addresses. The last next
//!   hop stays while a new neighbour is resolved, and while one whose entry was removed is resolved again. If the
//!   neighbour does not answer, the address becomes unresolved until it does, and its route is looked up again. If an interface goes down, that happens after the
//!   kernel was asked for another route: a connection survives a moment without a next hop, but not a move to
//!   another host.
//! - The source of the tunnels to an address is what the kernel would take for its route, but for the addresses of
//!   services (`sources`). It is part of the next hop, so it follows the addresses of this host.
//! - The ports of bonds are reported too, because a bond's packet program runs for them.
//! - If the kernel could not deliver events, everything is read again.
//!
//! All sockets belong to the network namespace of the thread that opens them.

mod addresses;
pub mod device;
mod error;
mod events;
mod forwarding;
mod hops;
mod link;
mod neighbour;
mod neighbour_probe;
mod neighbour_requests;
mod next_hops;
mod probe_link;
mod route;
mod sources;
pub mod survey;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

pub use addresses::{HostAddresses, HostChanges, LocalAddresses};
pub use error::{NetError, Unresolved};
pub use link::{Interface, LinkChanges, UnsupportedVlan, all_interfaces, interface_by_name};
pub use neighbour_probe::NeighbourProbe;
pub use next_hops::NextHops;
pub use probe_link::{
    LinkRoute, PROBE_LINK, ProbeLink, STRICT_FILTER, TunnelRoute, has_strict_filter,
};
pub use sources::SourceRules;

use lb_model::next_hop::NextHop;
use rtnetlink::Handle;
use tokio::task::JoinHandle;

/// A change in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetChange {
    /// Next hops that changed at once. While some backends behind a gateway have theirs again and others do not, connections of
    /// the others would move.
    NextHops(Vec<NextHopChange>),
    /// The interfaces that settings name have other indices. Next hops that follow from these are reported again.
    Interfaces(Arc<ConfiguredInterfaces>),
    /// Which interfaces are ports of bonds.
    Bonds(Bonds),
}

/// The interfaces that settings name, by their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredInterfaces {
    /// Those that have the packet program.
    pub attached: BTreeSet<u32>,
    /// VLAN ids for frames that leave by an interface.
    pub vlans: BTreeMap<u32, u16>,
}

/// Indices of bonds by those of their ports.
pub type Bonds = BTreeMap<u32, u32>;

/// The new next hop of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHopChange {
    /// The backend.
    pub address: IpAddr,
    /// Its next hop, or why there is none.
    pub hop: Result<NextHop, Unresolved>,
}

/// An Ethernet address.
type Mac = [u8; 6];

/// A netlink socket in this thread's network namespace, and the task that serves it. The task ends when all handles
/// are dropped, or when the socket fails.
fn connect() -> Result<(Handle, JoinHandle<()>), NetError> {
    let (connection, handle, _) = rtnetlink::new_connection().map_err(NetError::Socket)?;
    Ok((handle, tokio::spawn(connection)))
}
