//! Interfaces, addresses, routes and neighbours.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use futures::{StreamExt, stream};
use lb_maps::{Occupant, occupant};
use lb_net::{
    NeighbourProbe, NetError, Unresolved,
    device::{XdpFeatures, offloads, xdp_features},
    survey::{Address, Device, RouteInfo, Survey, survey},
};

use super::installed::InstalledComponent;

/// Two internet addresses that stand for clients: only their routes are looked up.
pub(super) const CLIENTS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(1, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1))];

/// Most neighbours to probe.
const MAX_PROBED: usize = 1_024;
/// Most probes at a time: the kernel waits three seconds for each neighbour that does not answer.
const MAX_CONCURRENT: usize = 256;

/// Interfaces, addresses, routes and neighbours of this network namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) survey: Survey,
    /// Devices with a program or that programs send out of, those that lack the program, and the ports of bonds with a
    /// program, by index.
    pub(crate) cards: BTreeMap<u32, NetworkCard>,
    /// Whether neighbours answered that the kernel had not confirmed lately; others are missing.
    pub(crate) answered: BTreeMap<IpAddr, bool>,
}

/// A device that a program of ours uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetworkCard {
    /// Names of the offloads that are on; `None`: unknown.
    pub(crate) offloads: Option<BTreeSet<String>>,
    /// What its driver supports; `None`: unknown.
    pub(crate) xdp: Option<XdpFeatures>,
    /// Its driver, or the kind of a virtual device.
    pub(crate) driver: Option<String>,
    /// The XDP program on it, of whatever owner.
    pub(crate) occupant: Option<Occupant>,
}

impl Network {
    /// Reads everything, with the routes `to` these addresses and the cards of `others` beside those with a program, and
    /// probes the next hops of `backends`.
    ///
    /// # Errors
    /// Netlink fails.
    pub(super) async fn read<'a>(
        to: Vec<IpAddr>,
        backends: &BTreeSet<IpAddr>,
        components: &[InstalledComponent],
        others: impl Iterator<Item = &'a str>,
    ) -> Result<Self, NetError> {
        let to: BTreeSet<_> = to.into_iter().collect();
        let answered = match backends.is_empty() {
            true => BTreeMap::new(),
            false => probe_neighbours(unconfirmed_hops(&survey(backends.clone()).await?)).await,
        };
        // Read after the probes, which update the neighbour table.
        let survey = survey(to).await?;
        let indices =
            components.iter().flat_map(|component| &component.links).filter_map(|link| link.index);
        let mut network = Self { survey, cards: BTreeMap::new(), answered };
        let others = others.filter_map(|name| network.find(name)).collect::<Vec<_>>();
        for index in indices.chain(others) {
            let ports = network.ports(index).map(|port| port.interface.index);
            let all: Vec<_> = std::iter::once(index).chain(ports).collect();
            let survey = &network.survey;
            network.cards.extend(all.into_iter().map(|index| (index, read_card(survey, index))));
        }
        Ok(network)
    }

    /// The ports of a bond, by its index.
    pub(crate) fn ports(&self, bond: u32) -> impl Iterator<Item = &Device> {
        self.devices().filter(move |device| device.interface.bond == Some(bond))
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.survey.devices.iter()
    }

    pub(crate) fn device(&self, index: u32) -> Option<&Device> {
        self.devices().find(|device| device.interface.index == index)
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.devices().map(|it| &it.interface).find(|it| it.name == name).map(|it| it.index)
    }

    /// The card of an interface by name.
    pub(crate) fn card(&self, name: &str) -> Option<&NetworkCard> {
        self.cards.get(&self.find(name)?)
    }

    /// The name of an interface, or else its number.
    pub(crate) fn name(&self, index: u32) -> String {
        match self.device(index) {
            Some(device) => device.interface.name.clone(),
            None => format!("interface {index}"),
        }
    }

    /// The entries of an address on this host.
    pub(crate) fn own(&self, address: IpAddr) -> Vec<&Address> {
        self.survey.addresses.iter().filter(|own| own.address == address).collect()
    }

    /// Whether this host takes packets for an address: it has it, or a local route to a prefix of it.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        let is_routed = matches!(self.survey.routes.get(&address), Some(Err(Unresolved::Own(_))));
        is_routed || !self.own(address).is_empty()
    }

    /// `None`: there is no route.
    pub(crate) fn route(&self, to: IpAddr) -> Option<&RouteInfo> {
        self.survey.routes.get(&to).and_then(|way| way.as_ref().ok())
    }

    /// The route back to clients of an IP version.
    pub(crate) fn route_to_clients(&self, v4: bool) -> Option<&RouteInfo> {
        self.route(CLIENTS[usize::from(!v4)])
    }

    pub(crate) fn is_on_link(&self, index: u32, address: IpAddr) -> bool {
        let mut own = self.survey.addresses.iter().filter(|own| own.interface == index);
        own.any(|own| own.address != address && same_subnet(own.address, address, own.prefix))
    }
}

/// The next hops that the kernel has not confirmed lately. It would probe them with the next packet anyway.
fn unconfirmed_hops(survey: &Survey) -> BTreeSet<IpAddr> {
    let hops: BTreeSet<_> =
        survey.routes.values().flatten().map(|way| (way.interface, way.gateway)).collect();
    let known = survey.neighbours.iter().filter(|known| !known.confirmed);
    let known = known.map(|known| (known.interface, known.address));
    known.filter(|known| hops.contains(known)).map(|(_, address)| address).collect()
}

/// Has the kernel probe neighbours; those that cannot be probed are missing.
async fn probe_neighbours(neighbours: BTreeSet<IpAddr>) -> BTreeMap<IpAddr, bool> {
    let Ok(prober) = NeighbourProbe::open() else { return BTreeMap::new() };
    let probes = neighbours.into_iter().take(MAX_PROBED).map(|neighbour| {
        let prober = &prober;
        async move { Some((neighbour, prober.probe(neighbour).await.ok()??)) }
    });
    stream::iter(probes)
        .buffer_unordered(MAX_CONCURRENT)
        .filter_map(std::future::ready)
        .collect()
        .await
}

fn same_subnet(a: IpAddr, b: IpAddr, prefix: u8) -> bool {
    let (a, b, width) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let rest = u32::from(width - prefix.min(width));
    (a ^ b).checked_shr(rest).unwrap_or(0) == 0
}

fn read_card(survey: &Survey, index: u32) -> NetworkCard {
    let device = survey.devices.iter().find(|device| device.interface.index == index);
    let name = device.map(|device| device.interface.name.as_str()).unwrap_or_default();
    let kind = device.and_then(|device| device.kind.clone());
    NetworkCard {
        offloads: offloads(index).ok(),
        xdp: xdp_features(index).ok(),
        driver: kind.or_else(|| driver(name, index)),
        occupant: occupant(index).ok().flatten(),
    }
}

/// The driver of a card. `/sys` may belong to another network namespace with another interface of this name.
fn driver(name: &str, index: u32) -> Option<String> {
    let place = format!("/sys/class/net/{name}");
    let there: u32 = fs::read_to_string(format!("{place}/ifindex")).ok()?.trim().parse().ok()?;
    let driver = fs::read_link(format!("{place}/device/driver")).ok().filter(|_| there == index)?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use lb_net::survey::Neighbour;

    use super::*;

    #[test]
    fn confirmed_next_hops_are_not_probed() {
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let way = |gateway| Ok(RouteInfo { interface: 2, gateway, mtu: None, advmss: None });
        let neighbour = |interface, address, confirmed| Neighbour {
            interface,
            address,
            mac: Some([2, 0, 0, 0, 0, 1]),
            failed: false,
            confirmed,
        };
        let survey = Survey {
            routes: [(address(11), way(address(1))), (address(12), way(address(2)))].into(),
            neighbours: vec![
                neighbour(2, address(1), true),
                neighbour(2, address(2), false),
                // Not a next hop, and a next hop on another interface.
                neighbour(2, address(3), false),
                neighbour(3, address(1), false),
            ],
            ..Survey::default()
        };
        assert_eq!(unconfirmed_hops(&survey), [address(2)].into());
    }

    #[test]
    fn a_prefix_decides_the_subnet() {
        let same =
            |a: &str, b: &str, prefix| same_subnet(a.parse().unwrap(), b.parse().unwrap(), prefix);
        assert!(same("10.0.0.2", "10.0.0.255", 24));
        assert!(!same("10.0.0.2", "10.0.1.2", 24));
        assert!(same("10.0.0.2", "192.0.2.1", 0));
        assert!(!same("10.0.0.2", "10.0.0.3", 32));
        assert!(same("fd00::1", "fd00::ffff", 64));
        assert!(!same("fd00::1", "fd00:0:0:1::1", 64));
        assert!(same("fd00::1", "2001:db8::1", 0));
        assert!(!same("10.0.0.2", "fd00::1", 0));
    }
}
