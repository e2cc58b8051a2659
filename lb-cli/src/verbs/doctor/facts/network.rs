use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use futures::{StreamExt, stream};
use lb_daemon::{
    causes,
    dataplane::{Occupant, occupant},
    net::{
        Presence,
        device::{XdpFeatures, offloads, xdp_features},
        survey::{Address, Device, Survey, Way, survey},
    },
};

use super::Installed;
use crate::{daemon::converse, exit::Exit, failure::Failure};

/// Two addresses of the internet, in place of clients: only their routes are looked up.
pub(super) const CLIENTS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(1, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1))];

/// Neighbours that are asked at most, and at once: the kernel takes three seconds for each that is silent.
const ASKED: usize = 1_024;
const AT_ONCE: usize = 256;

/// Interfaces, addresses, routes and neighbours of this network namespace.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Network {
    pub(in super::super) survey: Survey,
    /// What is known of the devices with a program, and of the ports of those that are bonds, by index.
    pub(in super::super) cards: BTreeMap<u32, Card>,
    /// Whether neighbours that the kernel was no more sure of answered for their addresses; those that were not
    /// asked are missing.
    pub(in super::super) answered: BTreeMap<IpAddr, bool>,
}

/// A device with a program of ours, or a port of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Card {
    /// Names of its offloads that are on; `None`: the kernel does not say.
    pub(in super::super) offloads: Option<BTreeSet<String>>,
    /// What its driver can do; `None`: the kernel does not say.
    pub(in super::super) xdp: Option<XdpFeatures>,
    /// Its driver, or the kind of a device of software.
    pub(in super::super) driver: Option<String>,
    /// The packet program that it has, whoever put it there.
    pub(in super::super) occupant: Option<Occupant>,
}

impl Network {
    /// Looks at it all, and at the routes `to` these; asks the next hops of `backends` whether they are there.
    ///
    /// # Errors
    /// Netlink fails.
    pub(super) fn look(
        to: Vec<IpAddr>,
        backends: &BTreeSet<IpAddr>,
        roles: &[Installed],
    ) -> Result<Self, Failure> {
        let to: BTreeSet<_> = to.into_iter().collect();
        let failed = |error| Failure::new(Exit::Failure, causes::of(&error));
        let (survey, answered) = converse(async {
            let answered = match backends.is_empty() {
                true => BTreeMap::new(),
                false => ask(in_doubt(&survey(backends.clone()).await.map_err(failed)?)).await,
            };
            // What the kernel has of them comes after they were asked.
            Ok::<_, Failure>((survey(to).await.map_err(failed)?, answered))
        })?;
        let indices = roles.iter().flat_map(|role| &role.links).filter_map(|link| link.index);
        let mut network = Self { survey, cards: BTreeMap::new(), answered };
        for index in indices {
            let ports = network.ports(index).map(|port| port.interface.index);
            let all: Vec<_> = std::iter::once(index).chain(ports).collect();
            let survey = &network.survey;
            network.cards.extend(all.into_iter().map(|index| (index, card(survey, index))));
        }
        Ok(network)
    }

    /// The ports of a bond, by its index.
    pub(in super::super) fn ports(&self, bond: u32) -> impl Iterator<Item = &Device> {
        self.devices().filter(move |device| device.interface.bond == Some(bond))
    }

    /// All interfaces.
    pub(in super::super) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.survey.devices.iter()
    }

    /// An interface.
    pub(in super::super) fn device(&self, index: u32) -> Option<&Device> {
        self.devices().find(|device| device.interface.index == index)
    }

    /// Name of an interface, or its number.
    pub(in super::super) fn name(&self, index: u32) -> String {
        match self.device(index) {
            Some(device) => device.interface.name.clone(),
            None => format!("interface {index}"),
        }
    }

    /// Where this host has an address.
    pub(in super::super) fn own(&self, address: IpAddr) -> Vec<&Address> {
        self.survey.addresses.iter().filter(|own| own.address == address).collect()
    }

    /// The way to an address, where there is one.
    pub(in super::super) fn way(&self, to: IpAddr) -> Option<&Way> {
        self.survey.ways.get(&to).and_then(|way| way.as_ref().ok())
    }

    /// The way back to clients of a family.
    pub(in super::super) fn way_to_clients(&self, v4: bool) -> Option<&Way> {
        self.way(CLIENTS[usize::from(!v4)])
    }

    /// Whether an address is in a subnet of an interface.
    pub(in super::super) fn is_on_link(&self, index: u32, address: IpAddr) -> bool {
        let mut own = self.survey.addresses.iter().filter(|own| own.interface == index);
        own.any(|own| own.address != address && same_subnet(own.address, address, own.prefix))
    }
}

/// The next hops that the kernel has not heard of lately. It asks them itself with the next packet that it
/// sends there; those that it is sure of are left alone.
fn in_doubt(survey: &Survey) -> BTreeSet<IpAddr> {
    let hops: BTreeSet<_> =
        survey.ways.values().flatten().map(|way| (way.interface, way.gateway)).collect();
    let known = survey.neighbours.iter().filter(|known| !known.confirmed);
    let known = known.map(|known| (known.interface, known.address));
    known.filter(|known| hops.contains(known)).map(|(_, address)| address).collect()
}

/// Has the kernel ask neighbours for their addresses; those that cannot be asked are missing.
async fn ask(neighbours: BTreeSet<IpAddr>) -> BTreeMap<IpAddr, bool> {
    let Ok(presence) = Presence::open() else { return BTreeMap::new() };
    let asks = neighbours.into_iter().take(ASKED).map(|neighbour| {
        let presence = &presence;
        async move { Some((neighbour, presence.asked(neighbour).await.ok()??)) }
    });
    stream::iter(asks).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

/// Whether two addresses have their first bits in common.
fn same_subnet(a: IpAddr, b: IpAddr, prefix: u8) -> bool {
    let (a, b, width) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let rest = u32::from(width - prefix.min(width));
    (a ^ b).checked_shr(rest).unwrap_or(0) == 0
}

fn card(survey: &Survey, index: u32) -> Card {
    let device = survey.devices.iter().find(|device| device.interface.index == index);
    let name = device.map(|device| device.interface.name.as_str()).unwrap_or_default();
    let kind = device.and_then(|device| device.kind.clone());
    Card {
        offloads: offloads(index).ok(),
        xdp: xdp_features(index).ok(),
        driver: kind.or_else(|| driver(name, index)),
        occupant: occupant(index).ok().flatten(),
    }
}

/// The driver of a card. `/sys` may be another network namespace's, whose interface of this name is
/// another one.
fn driver(name: &str, index: u32) -> Option<String> {
    let place = format!("/sys/class/net/{name}");
    let there: u32 = fs::read_to_string(format!("{place}/ifindex")).ok()?.trim().parse().ok()?;
    let driver = fs::read_link(format!("{place}/device/driver")).ok().filter(|_| there == index)?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use lb_daemon::net::survey::Neighbour;

    use super::*;

    #[test]
    fn next_hops_that_the_kernel_is_sure_of_are_not_asked() {
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let way = |gateway| Ok(Way { interface: 2, gateway, mtu: None, advmss: None });
        let neighbour = |interface, address, confirmed| Neighbour {
            interface,
            address,
            mac: Some([2, 0, 0, 0, 0, 1]),
            failed: false,
            confirmed,
        };
        let survey = Survey {
            ways: [(address(11), way(address(1))), (address(12), way(address(2)))].into(),
            neighbours: vec![
                neighbour(2, address(1), true),
                neighbour(2, address(2), false),
                // No next hop, and one of another interface.
                neighbour(2, address(3), false),
                neighbour(3, address(1), false),
            ],
            ..Survey::default()
        };
        assert_eq!(in_doubt(&survey), [address(2)].into());
    }

    #[test]
    fn a_subnet_is_the_bits_of_its_prefix() {
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
