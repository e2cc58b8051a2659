//! SYNs without connections: sent in good time, taken down where they arrive, and judged by a plain
//! second idea of what a limit is.
//!
//! They come from addresses that nobody has ([`SOURCES`]), which backends drop answers to
//! ([`forget`]). So each is one packet from the client to a backend, and no other follows it.

mod arrivals;
mod decision;
mod demand;
mod flood;
mod limit;
mod load;
mod packet;
mod pairs;
mod pcap;
mod portions;
mod rates;
mod sender;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::Result;

pub use arrivals::{Arrival, Arrivals};
pub use decision::Decision;
pub use demand::{Demand, Schedule, SentBy};
pub use flood::{Flood, Forged};
pub use limit::{Judgement, Limit};
pub use load::Load;
pub use packet::{ack_packet, datagram, packet, sources, sources_in};
pub use pairs::{Pair, Paired, Pairs};
pub use portions::{FullestSecond, Portions};
pub use rates::{Connection, Rates, Second};
pub use sender::{Sent, send, send_until};

use crate::topology::{Backend, Node};

/// Where SYNs come from: addresses for measurements (RFC 2544, appendix C.2.2), and their prefix's
/// length.
pub const SOURCES: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// Has every backend drop what it would answer to [`SOURCES`].
///
/// # Errors
/// When a backend has such a route already.
pub fn forget(backends: &[Backend]) -> Result<()> {
    let (prefix, bits) = SOURCES;
    let route = format!("route add blackhole {prefix}/{bits}");
    backends.iter().try_for_each(|backend| backend.node.ip(&route))
}

/// Sends so many SYNs from a node to an address, each of another client, one after the other.
///
/// # Errors
/// As [`send`].
pub fn send_all(node: &Node, to: SocketAddrV4, seed: u64, number: usize) -> Result<()> {
    let packets: Vec<_> = sources(seed, number).iter().map(|from| packet(*from, to, 7)).collect();
    send(node, to, &packets, |_| Duration::ZERO).map(drop)
}
