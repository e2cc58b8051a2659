//! A snapshot of this host's network for the doctor. It sends nothing to neighbours.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use futures::TryStreamExt;
use netlink_packet_route::{
    address::{AddressHeaderFlags, AddressMessage},
    link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage},
    neighbour::NeighbourState,
};

use rtnetlink::Handle;

use super::{
    Interface, Mac, NetError, Unresolved, addresses, connect, neighbour, neighbour::NeighbourEntry,
    route,
};

/// The snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Interfaces.
    pub devices: Vec<Device>,
    /// Addresses of this host.
    pub addresses: Vec<Address>,
    /// The route to each requested address, except those that the kernel did not answer for.
    pub routes: BTreeMap<IpAddr, Result<RouteInfo, Unresolved>>,
    /// The neighbour table.
    pub neighbours: Vec<Neighbour>,
}

/// An interface with its kind and parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The interface.
    pub interface: Interface,
    /// Kind of a virtual device: `veth`, `vlan`, `bond`. `None`: hardware, or `lo`.
    pub kind: Option<String>,
    /// Index of the parent interface; of a veth, of its peer.
    pub lower: Option<u32>,
}

/// An address of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of the interface that has it.
    pub interface: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its subnet's prefix.
    pub prefix: u8,
    /// Whether new connections of this host avoid it as their source.
    pub deprecated: bool,
    /// Whether packets from a network may have it as destination, as in [`super::HostAddresses`].
    pub reachable: bool,
}

/// The kernel's route to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// Index of the interface.
    pub interface: u32,
    /// The gateway, or the address itself where it is on the link.
    pub gateway: IpAddr,
    /// The route's own MTU, bytes; `None`: the interface's applies.
    pub mtu: Option<u32>,
    /// The route's `advmss`, bytes; `None`: it follows from the MTU.
    pub advmss: Option<u32>,
}

/// An entry of the neighbour table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Index of the interface that it is on.
    pub interface: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC; `None`: not known.
    pub mac: Option<Mac>,
    /// Whether it did not answer.
    pub failed: bool,
    /// Whether the kernel has confirmed it within its time limit (half a minute).
    pub confirmed: bool,
}

/// Reads everything, and the routes to these addresses, in the network namespace of the calling thread.
///
/// # Errors
/// Netlink fails.
pub async fn survey(addresses: BTreeSet<IpAddr>) -> Result<Survey, NetError> {
    let (handle, _) = connect()?;
    let (devices, own) = list_own(&handle).await?;
    let neighbours = neighbour::neighbours(&handle).await?;
    let routes = route::routes(handle, addresses).await;
    Ok(Survey {
        devices,
        addresses: own,
        routes: routes.into_iter().filter_map(|(to, it)| Some((to, it?.map(Into::into)))).collect(),
        neighbours: neighbours.into_iter().map(Into::into).collect(),
    })
}

/// Reads the interfaces and addresses alone.
///
/// # Errors
/// Netlink fails.
pub async fn own_addresses() -> Result<(Vec<Device>, Vec<Address>), NetError> {
    let (handle, _) = connect()?;
    list_own(&handle).await
}

async fn list_own(handle: &Handle) -> Result<(Vec<Device>, Vec<Address>), NetError> {
    let links: Vec<_> = handle
        .link()
        .get()
        .execute()
        .try_collect()
        .await
        .map_err(NetError::request("list interfaces"))?;
    let addresses: Vec<_> = handle
        .address()
        .get()
        .execute()
        .try_collect()
        .await
        .map_err(NetError::request("list addresses"))?;
    let devices = links.into_iter().filter_map(device).collect();
    Ok((devices, addresses.into_iter().filter_map(address).collect()))
}

impl From<route::Route> for RouteInfo {
    fn from(route: route::Route) -> Self {
        let route::Route { neighbour, mtu, advmss, .. } = route;
        Self { interface: neighbour.interface, gateway: neighbour.address, mtu, advmss }
    }
}

impl From<NeighbourEntry> for Neighbour {
    fn from(NeighbourEntry { key, state, mac, .. }: NeighbourEntry) -> Self {
        use NeighbourState::{Failed, Incomplete, Noarp, Reachable};
        let (failed, confirmed) = (state == Failed, state == Reachable);
        // On an interface without ARP the kernel adds entries of its own.
        let known = mac.filter(|_| !matches!(state, Failed | Incomplete | Noarp));
        Self { interface: key.interface, address: key.address, mac: known, failed, confirmed }
    }
}

fn device(message: LinkMessage) -> Option<Device> {
    let (mut kind, mut lower) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Link(index) => lower = Some(*index),
            LinkAttribute::LinkInfo(infos) => {
                kind = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(InfoKind::Other(other)) => Some(other.clone()),
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    Some(Device { interface: Interface::parse(message)?, kind, lower })
}

fn address(message: AddressMessage) -> Option<Address> {
    let flags = message.header.flags;
    Some(Address {
        interface: message.header.index,
        address: addresses::local(&message)?,
        prefix: message.header.prefix_len,
        deprecated: flags.contains(AddressHeaderFlags::Deprecated),
        reachable: addresses::own(&message).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn loopback_has_its_address_and_no_route_for_packets() {
        let home = IpAddr::from(Ipv4Addr::LOCALHOST);
        let survey = survey(BTreeSet::from([home])).await.unwrap();
        let lo = survey.devices.iter().find(|d| d.interface.name == "lo").unwrap();
        let index = lo.interface.index;
        let own = survey.addresses.iter().find(|a| (a.address, a.prefix) == (home, 8)).unwrap();
        assert!(!own.reachable);
        assert_eq!(survey.routes[&home], Err(Unresolved::Own(home)));
        assert_eq!((lo.kind.as_deref(), index), (None, 1));
    }
}
