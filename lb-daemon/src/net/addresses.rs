//! The addresses that outer headers may carry as source.

use std::net::IpAddr;

use futures::TryStreamExt;
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};

use super::{NetError, lookup};
use crate::plan::Sources;

/// The first global address of each kind that the interface with that index has. Secondary,
/// temporary, deprecated and duplicate ones do not count.
///
/// # Errors
/// Netlink fails; an interface without addresses, or none at all, has no sources.
pub async fn source_addresses(interface: u32) -> Result<Sources, NetError> {
    let (handle, _) = lookup::connect()?;
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
    // On a point-to-point interface ADDRESS is the other end's.
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
