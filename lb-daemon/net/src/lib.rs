//! Next hops: where packets to each backend leave this host, kept true from netlink.
//!
//! For every wanted address the kernel is asked for its route, and for the MAC of the neighbour that
//! the route leads to. What comes in, comes one way: `events` (what the kernel tells) and `lookup`
//! (what it answers) go into `hops`, which does no work of its own and says what changed and whom to
//! ask for; [`NextHops`] carries it all out.
//!
//! - A neighbour's event changes its next hops at once. Routes are looked up again, all of them, after
//!   any change of routes, rules, addresses or links; changes that come together are taken together.
//! - A neighbour without a MAC is asked for again and again, more and more seldom; one that goes stale
//!   is asked for before the kernel forgets it: packets that XDP sends keep no entry fresh.
//! - Nothing is told of an address before something is known, and for each new set all of it again. A
//!   former answer stands while a new neighbour is being asked for, and while one that was merely
//!   removed from the kernel's table is asked for again; one that does not answer makes the address
//!   unresolved, and so does an interface that goes down, as soon as the kernel has been asked whether there
//!   is another way: a connection that is away for a moment goes on, one that another host gets is lost.
//! - Ports that join a bond or leave it are told, all of them: its packet program runs for them.
//! - Events that the kernel could not deliver make everything be read anew.
//!
//! All sockets belong to the network namespace of the thread that opens them.

mod addresses;
pub mod device;
mod error;
mod events;
mod hops;
mod link;
mod neighbour;
mod neighbour_requests;
mod next_hops;
mod presence;
mod probe_link;
mod route;
pub mod survey;

use std::{collections::BTreeMap, net::IpAddr};

pub use addresses::{HostAddresses, source_addresses};
pub use error::{NetError, Unresolved};
pub use link::{ForeignVlan, Interface, all_interfaces, interface_by_name};
pub use next_hops::NextHops;
pub use presence::Presence;
pub use probe_link::{PROBE_LINK, ProbeLink};

use lb_model::next_hop::NextHop;
use rtnetlink::Handle;
use tokio::task::JoinHandle;

/// What changed in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetChange {
    /// The way to an address.
    NextHop(NextHopChange),
    /// Which interfaces are ports of bonds.
    Bonds(Bonds),
}

/// Indices of bonds by those of their ports.
pub type Bonds = BTreeMap<u32, u32>;

/// What is known of the way to an address from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHopChange {
    /// The backend.
    pub address: IpAddr,
    /// Its next hop, or why there is none.
    pub hop: Result<NextHop, Unresolved>,
}

/// An Ethernet address.
type Mac = [u8; 6];

/// A netlink socket in this thread's network namespace, and the task that serves it. It ends when all
/// its handles are gone, or when the socket fails.
fn connect() -> Result<(Handle, JoinHandle<()>), NetError> {
    let (connection, handle, _) = rtnetlink::new_connection().map_err(NetError::Socket)?;
    Ok((handle, tokio::spawn(connection)))
}
