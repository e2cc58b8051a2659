//! The addresses of this host that packets from a network may be for.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use futures::TryStreamExt;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use rtnetlink::Handle;
use tokio::{task::JoinHandle, time::sleep};

use super::{
    NetError, connect,
    events::{Events, OF_ADDRESSES},
};

/// Time between two readings without an event: when an interface is removed, a kernel may send the events of its
/// addresses before it removes them from its list.
const REFRESH: Duration = Duration::from_secs(30);

/// The local address in a message: on a point-to-point interface ADDRESS is the peer's.
pub(super) fn local(message: &AddressMessage) -> Option<IpAddr> {
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let address = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    });
    local.or(address)
}

/// Follows the addresses of this host that packets from a network may have as destination: all but loopback
/// addresses, and IPv6 link-local ones, which cannot be a backend's.
pub struct HostAddresses {
    events: Events,
    handle: Handle,
    connection: JoinHandle<()>,
    is_stale: bool,
}

impl HostAddresses {
    /// Subscribes to changes in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn follow() -> Result<Self, NetError> {
        // Subscribe before the first reading, so that no change is missed.
        let events = Events::open(OF_ADDRESSES)?;
        let (handle, connection) = connect()?;
        Ok(Self { events, handle, connection, is_stale: true })
    }

    /// The addresses: the first call returns at once, later ones after an event or after `REFRESH`, which covers
    /// lost events. Cancel-safe.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn next(&mut self) -> Result<BTreeSet<IpAddr>, NetError> {
        if !self.is_stale {
            tokio::select! {
                events = self.events.next() => drop(events?),
                _ = &mut self.connection => return Err(NetError::Closed),
                () = sleep(REFRESH) => {}
            }
            self.is_stale = true;
        }
        let list = self.handle.address().get().execute();
        let messages: Vec<_> =
            list.try_collect().await.map_err(NetError::request("list addresses"))?;
        self.is_stale = false;
        Ok(messages.iter().filter_map(own).collect())
    }
}

/// The address of a message, if the kernel accepts packets for it.
pub(super) fn own(message: &AddressMessage) -> Option<IpAddr> {
    let flags = message.header.flags;
    // A tentative address is not usable before duplicate detection ends (RFC 4862, 5.4), unless it is optimistic.
    let is_unproven = flags.contains(AddressHeaderFlags::Tentative)
        && !flags.contains(AddressHeaderFlags::Optimistic);
    if is_unproven || flags.contains(AddressHeaderFlags::Dadfailed) {
        return None;
    }
    local(message).filter(|address| match address {
        IpAddr::V4(v4) => !v4.is_loopback(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    })
}
