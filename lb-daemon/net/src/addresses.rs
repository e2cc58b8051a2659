//! The addresses of this host that packets from a network may be for.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use futures::TryStreamExt;
use lb_model::unserved::LocalHost;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use rtnetlink::{Handle, MulticastGroup};
use tokio::{task::JoinHandle, time::sleep};

use super::{
    NetError, Unresolved, connect,
    events::{Events, OF_ADDRESSES, OF_HOST, OF_ROUTES},
    forwarding,
    route::route_to,
};

/// Time between two readings without an event: when an interface is removed, a kernel may send the events of its
/// addresses before it removes them from its list.
const REFRESH: Duration = Duration::from_secs(30);

/// Events that follow one by less cause one reading.
const TOGETHER: Duration = Duration::from_millis(50);

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
pub struct HostAddresses(Readings);

impl HostAddresses {
    /// Subscribes to changes in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn follow() -> Result<Self, NetError> {
        Readings::open(OF_ADDRESSES).map(Self)
    }

    /// The addresses: the first call returns at once, later ones after an event or after `REFRESH`, which covers
    /// lost events. Cancel-safe.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn next(&mut self) -> Result<BTreeSet<IpAddr>, NetError> {
        self.0.due().await?;
        self.0.addresses().await
    }
}

/// Follows what this host is to VIPs: its addresses, and whether it forwards packets.
pub struct HostChanges(Readings);

impl HostChanges {
    /// Subscribes to changes in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn follow() -> Result<Self, NetError> {
        Readings::open(OF_HOST).map(Self)
    }

    /// What it is, when [`HostAddresses::next`] would return or after a change of forwarding. Cancel-safe.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn next(&mut self) -> Result<LocalHost, NetError> {
        self.0.due().await?;
        let [forwards_v4, forwards_v6] = forwarding::read().await;
        let addresses = self.0.addresses().await?;
        Ok(LocalHost { addresses, forwards_v4, forwards_v6 })
    }
}

/// Follows which of some addresses the kernel takes packets for. They need not be on an interface: a local route may have
/// a whole prefix.
pub struct LocalAddresses {
    readings: Readings,
    of: BTreeSet<IpAddr>,
}

impl LocalAddresses {
    /// Subscribes to changes in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn follow(of: BTreeSet<IpAddr>) -> Result<Self, NetError> {
        Ok(Self { readings: Readings::open(OF_ROUTES)?, of })
    }

    /// Those that are local, when [`HostAddresses::next`] would return. Cancel-safe.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn next(&mut self) -> Result<BTreeSet<IpAddr>, NetError> {
        self.readings.due().await?;
        let mut local = BTreeSet::new();
        for address in &self.of {
            let answer = route_to(self.readings.handle.clone(), *address).await;
            if let Err(Unresolved::Own(_)) = answer.map_err(NetError::request("look up a route"))? {
                local.insert(*address);
            }
        }
        self.readings.is_due = false;
        Ok(local)
    }
}

/// When something of the host is to be read again.
struct Readings {
    events: Events,
    handle: Handle,
    connection: JoinHandle<()>,
    is_due: bool,
}

impl Readings {
    fn open(groups: &[MulticastGroup]) -> Result<Self, NetError> {
        // Subscribe before the first reading, so that no change is missed.
        let events = Events::open(groups)?;
        let (handle, connection) = connect()?;
        Ok(Self { events, handle, connection, is_due: true })
    }

    /// Reads the addresses, after which nothing is due.
    async fn addresses(&mut self) -> Result<BTreeSet<IpAddr>, NetError> {
        let list = self.handle.address().get().execute();
        let messages: Vec<_> =
            list.try_collect().await.map_err(NetError::request("list addresses"))?;
        self.is_due = false;
        Ok(messages.iter().filter_map(own).collect())
    }

    /// Returns after an event or after [`REFRESH`]; at once if the last reading was not completed.
    async fn due(&mut self) -> Result<(), NetError> {
        if !self.is_due {
            tokio::select! {
                events = self.events.next() => drop(events?),
                _ = &mut self.connection => return Err(NetError::Closed),
                () = sleep(REFRESH) => {}
            }
            self.is_due = true;
            // A routing daemon may change thousands of routes.
            sleep(TOGETHER).await;
        }
        Ok(())
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
