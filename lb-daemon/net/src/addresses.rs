//! The addresses of this host: those that outer headers may carry as source, and those that they may be for.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use futures::TryStreamExt;
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};

use rtnetlink::Handle;
use tokio::{task::JoinHandle, time::sleep};

use super::{
    NetError, connect,
    events::{Events, OF_ADDRESSES},
};
use lb_model::plan::Sources;

/// Time between looks that nothing asks for: as an interface goes, kernels may tell of its addresses before they
/// take them off the list.
const REFRESH: Duration = Duration::from_secs(30);

/// The first global address of each kind that the interface with that index has. Secondary,
/// temporary, deprecated and duplicate ones do not count.
///
/// # Errors
/// Netlink fails; an interface without addresses, or none at all, has no sources.
pub async fn source_addresses(interface: u32) -> Result<Sources, NetError> {
    let (handle, _) = connect()?;
    let list = handle.address().get().set_link_index_filter(interface).execute();
    let messages: Vec<_> = list.try_collect().await.map_err(NetError::request("list addresses"))?;
    let mut sources = Sources::default();
    for message in messages {
        match usable_address(message) {
            Some(IpAddr::V4(v4)) => sources.v4 = sources.v4.or(Some(v4)),
            Some(IpAddr::V6(v6)) => sources.v6 = sources.v6.or(Some(v6)),
            None => {}
        }
    }
    Ok(sources)
}

fn usable_address(message: AddressMessage) -> Option<IpAddr> {
    let unusable = AddressHeaderFlags::Secondary // of IPv6: temporary, RFC 8981
        | AddressHeaderFlags::Dadfailed
        | AddressHeaderFlags::Deprecated;
    let header = &message.header;
    if header.scope != AddressScope::Universe || header.flags.intersects(unusable) {
        return None;
    }
    local(&message)
}

/// The address that a message is about; on a point-to-point interface ADDRESS is the other end's.
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

/// The addresses that packets for this host have, followed: all but loopback's, which no packet on a wire has,
/// and IPv6's link-local ones, which are one interface's and no balancer's backend has.
pub struct HostAddresses {
    events: Events,
    handle: Handle,
    connection: JoinHandle<()>,
    /// They are to be read.
    is_stale: bool,
}

impl HostAddresses {
    /// Follows them in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn follow() -> Result<Self, NetError> {
        // Heard from before anything is read: nothing falls between.
        let events = Events::open(OF_ADDRESSES)?;
        let (handle, connection) = connect()?;
        Ok(Self { events, handle, connection, is_stale: true })
    }

    /// What they are: at the first call at once, then when one may have come or gone, whatever events were lost,
    /// and now and then besides. A call that is dropped loses nothing.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn next(&mut self) -> Result<BTreeSet<IpAddr>, NetError> {
        if !self.is_stale {
            tokio::select! {
                heard = self.events.next() => drop(heard?),
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

/// An address that the kernel takes packets for.
pub(super) fn own(message: &AddressMessage) -> Option<IpAddr> {
    let flags = message.header.flags;
    // Until it is known to be nobody else's it is not this host's (RFC 4862, 5.4), unless it is optimistic.
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
