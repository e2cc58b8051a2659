//! The source addresses of tunnels: what the kernel would take for the route to a backend, but never a service's address.
//!
//! A service's address is on this host where its operator has put it there, on an interface or as the `src` of a route,
//! and then the kernel may prefer it. Receivers refuse tunnels that come from it, and what comes back for a tunnel would
//! go to whichever balancer has it. In its place stands the address that the kernel would take if it were not there.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    sync::Arc,
};

use futures::TryStreamExt;
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use rtnetlink::{Error, Handle};
use tokio::sync::watch;

use super::{
    NetError,
    addresses::own,
    connect,
    neighbour::NeighbourKey,
    route::{Route, route_to},
};
use lb_model::next_hop::GivenSources;

/// What sources tunnels may have. Clones share the addresses of the services.
#[derive(Clone, Debug)]
pub struct SourceRules {
    given: GivenSources,
    services: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
}

impl Default for SourceRules {
    /// Nothing is given, and there is no service.
    fn default() -> Self {
        Self::new(GivenSources::default(), watch::Sender::default().subscribe())
    }
}

impl SourceRules {
    /// The settings' addresses come before the kernel's; `services` are the addresses of all services.
    pub fn new(given: GivenSources, services: watch::Receiver<Arc<BTreeSet<IpAddr>>>) -> Self {
        Self { given, services }
    }

    /// Waits until services have other addresses; for ever once there are no more changes.
    pub(super) async fn changed(&mut self) {
        changed(&mut self.services).await;
    }

    /// The source of a tunnel to a backend by a route; `None`: none of `addresses` is one. They decide only where neither
    /// the settings nor the route have a source.
    pub(super) fn choose(
        &self,
        to: IpAddr,
        route: &Route,
        addresses: &[LocalAddress],
    ) -> Option<IpAddr> {
        let preferred = || route.source.filter(|source| self.allows(*source, to));
        self.given.outer(to).or_else(preferred).or_else(|| self.select(to, route, addresses))
    }

    /// The source of this host's own packets to a VIP in the tunnel to a backend, which answers them directly.
    pub(super) fn choose_inner(
        &self,
        (vip, backend): (IpAddr, IpAddr),
        route: &Route,
        addresses: &[LocalAddress],
    ) -> Option<IpAddr> {
        let is_alike = vip.is_ipv4() == backend.is_ipv4();
        let preferred = || route.source.filter(|it| is_alike && self.allows(*it, backend));
        let towards = if is_alike { backend } else { vip };
        let given = self.given.own(vip.is_ipv4());
        given.or_else(preferred).or_else(|| self.select(towards, route, addresses))
    }

    /// The source that this host's own packets to an address are to have; `None`: what the kernel takes. That is asked
    /// of a socket, which costs a few microseconds; of netlink only where it is a service's address: answers would not
    /// come back from a host that has the address too.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn of_own_packets(&self, to: IpAddr) -> Result<Option<IpAddr>, NetError> {
        let kernels = kernels_choice(to).ok();
        if !kernels.is_some_and(|source| self.services.borrow().contains(&source)) {
            return Ok(None);
        }
        let (handle, _) = connect()?;
        let answer = route_to(handle.clone(), to).await;
        let Ok(route) = answer.map_err(NetError::request("look up a route"))? else {
            return Ok(None);
        };
        let addresses = LocalAddress::list(&handle).await;
        let addresses = addresses.map_err(NetError::request("list addresses"))?;
        Ok(self.choose_inner((to, to), &route, &addresses))
    }

    /// What the kernel would take of the addresses that are allowed.
    fn select(&self, to: IpAddr, route: &Route, addresses: &[LocalAddress]) -> Option<IpAddr> {
        let usable = addresses.iter().filter(|known| self.allows(known.address, to));
        let usable: Vec<_> = usable.copied().collect();
        let selected = match to {
            IpAddr::V4(_) => select_v4(to, &route.neighbour, &usable),
            IpAddr::V6(_) => select_v6(to, route.neighbour.interface, &usable),
        };
        selected.map(|it| it.address)
    }

    /// Whether packets to an address may have a source.
    fn allows(&self, source: IpAddr, to: IpAddr) -> bool {
        let is_routable = match source {
            IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_loopback(),
            IpAddr::V6(v6) => {
                !v6.is_unspecified() && !v6.is_loopback() && !v6.is_unicast_link_local()
            }
        };
        is_routable
            && source.is_ipv4() == to.is_ipv4()
            && source != to
            && !self.services.borrow().contains(&source)
    }
}

/// As `inet_select_addr` of the kernel.
fn select_v4(
    to: IpAddr,
    next_hop: &NeighbourKey,
    addresses: &[LocalAddress],
) -> Option<LocalAddress> {
    let is_on_link = next_hop.address == to;
    let route_scope = if is_on_link { AddressScope::Link } else { AddressScope::Universe };
    let candidates = addresses.iter().enumerate().filter(|(place, it)| {
        // Deleting a primary address promotes the next one of its subnet.
        let is_secondary = addresses[..*place].iter().any(|earlier| it.is_secondary_to(earlier));
        let is_of_route = it.interface == next_hop.interface;
        !is_secondary
            && u8::from(it.scope) <= u8::from(route_scope)
            && (is_of_route || it.scope != AddressScope::Link)
    });
    let rank = |(_, it): &(usize, &LocalAddress)| {
        let is_of_route = it.interface == next_hop.interface;
        (!is_of_route, is_of_route && !it.has_in_subnet(next_hop.address))
    };
    candidates.min_by_key(rank).map(|(_, it)| *it)
}

/// As `ipv6_dev_get_saddr` of the kernel: RFC 6724, section 5. Unlike with the sysctl `use_tempaddr` = 2, a temporary
/// address is not preferred (rule 7): receivers could not allow it.
fn select_v6(to: IpAddr, interface: u32, addresses: &[LocalAddress]) -> Option<LocalAddress> {
    let rank = |it: &&LocalAddress| {
        let (scope, needed) = (scope_v6(it.address), scope_v6(to));
        let is_orchid = |address| common_bits(address, ORCHID.into()) >= 28;
        // Rules 2, 3, 5, 6, 7 and 8, and one of Linux before the last.
        Reverse((
            if scope >= needed { (true, -scope) } else { (false, scope) },
            !it.is_deprecated,
            it.interface == interface,
            label(it.address) == label(to),
            !it.is_temporary,
            is_orchid(it.address) == is_orchid(to),
            common_bits(it.address, to).min(it.prefix),
        ))
    };
    addresses.iter().min_by_key(rank).copied()
}

/// Waits for another value; for ever once there are no more changes.
pub(super) async fn changed<T>(of: &mut watch::Receiver<T>) {
    if of.changed().await.is_err() {
        std::future::pending().await
    }
}

/// An address of this host that packets may have as their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalAddress {
    address: IpAddr,
    /// An address of its subnet: its own, or the peer's of a point-to-point interface.
    subnet: IpAddr,
    /// Length of the subnet's prefix.
    prefix: u8,
    interface: u32,
    /// Of an IPv4 address; those of IPv6 have their scope by themselves.
    scope: AddressScope,
    is_deprecated: bool,
    /// RFC 8981.
    is_temporary: bool,
}

impl LocalAddress {
    /// Lists those of all interfaces, in the order in which the kernel looks at them, because it takes the first of
    /// several that serve alike: by interface, of which Linux before 6.9 lists the addresses in another order.
    ///
    /// # Errors
    /// Netlink fails.
    pub(super) async fn list(handle: &Handle) -> Result<Vec<Self>, Error> {
        let messages: Vec<_> = handle.address().get().execute().try_collect().await?;
        let mut addresses: Vec<_> = messages.iter().filter_map(Self::parse).collect();
        addresses.sort_by_key(|it| it.interface);
        Ok(addresses)
    }

    fn parse(message: &AddressMessage) -> Option<Self> {
        let flags = message.header.flags;
        let address = own(message)?;
        let subnet = message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        });
        Some(Self {
            address,
            subnet: subnet.unwrap_or(address),
            prefix: message.header.prefix_len,
            interface: message.header.index,
            scope: message.header.scope,
            is_deprecated: flags.contains(AddressHeaderFlags::Deprecated),
            // IFA_F_TEMPORARY and IFA_F_SECONDARY are one bit.
            is_temporary: address.is_ipv6() && flags.contains(AddressHeaderFlags::Secondary),
        })
    }

    /// Whether it is of the same subnet as an earlier one of its interface.
    fn is_secondary_to(&self, earlier: &Self) -> bool {
        self.interface == earlier.interface
            && self.prefix == earlier.prefix
            && self.has_in_subnet(earlier.subnet)
    }

    fn has_in_subnet(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.subnet.is_ipv4()
            && common_bits(self.subnet, address) >= self.prefix
    }
}

/// The source that the kernel takes for packets to an address, if there is a route.
fn kernels_choice(to: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Nothing is sent; the port does not matter.
    socket.connect((to, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// Leading bits that two addresses of one IP version have in common; of two versions none.
fn common_bits(a: IpAddr, b: IpAddr) -> u8 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).leading_zeros() as u8,
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b)).leading_zeros() as u8,
        _ => 0,
    }
}

const SITE_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0);
/// RFC 4843.
const ORCHID: Ipv6Addr = Ipv6Addr::new(0x2001, 0x10, 0, 0, 0, 0, 0, 0);

/// The prefixes that have labels of their own, longest first: RFC 6724, section 2.1, with those that Linux adds.
const LABELS: [(Ipv6Addr, u8); 8] = [
    (Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 96),
    (Ipv6Addr::UNSPECIFIED, 96),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32),
    (ORCHID, 28),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
    (SITE_LOCAL, 10),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
];

/// What RFC 6724 keeps apart by its policy table; addresses of one kind have the same.
fn label(address: IpAddr) -> Option<usize> {
    LABELS.iter().position(|(prefix, bits)| common_bits(address, (*prefix).into()) >= *bits)
}

/// How far an address reaches, RFC 4291: site-local ones less than global ones. Link-local ones are no sources here.
fn scope_v6(address: IpAddr) -> i8 {
    if common_bits(address, SITE_LOCAL.into()) >= 10 { 0x5 } else { 0xe }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: u32 = 2;
    const OTHER: u32 = 3;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// `10.0.0.2/24 2`: address, prefix, interface, and `deprecated`, `temporary`, `link` or `host`.
    fn address(text: &str) -> LocalAddress {
        let (address, rest) = text.split_once('/').unwrap();
        let words: Vec<_> = rest.split(' ').collect();
        let scope = match words.get(2) {
            Some(&"link") => AddressScope::Link,
            Some(&"host") => AddressScope::Host,
            _ => AddressScope::Universe,
        };
        LocalAddress {
            address: ip(address),
            subnet: ip(address),
            prefix: words[0].parse().unwrap(),
            interface: words[1].parse().unwrap(),
            scope,
            is_deprecated: words.contains(&"deprecated"),
            is_temporary: words.contains(&"temporary"),
        }
    }

    fn route(gateway: &str, source: Option<&str>) -> Route {
        let neighbour = NeighbourKey { interface: CARD, address: ip(gateway) };
        Route { neighbour, mtu: None, advmss: None, source: source.map(ip) }
    }

    fn rules(given: GivenSources, services: &[&str]) -> SourceRules {
        let services = services.iter().map(|it| ip(it)).collect();
        SourceRules::new(given, watch::Sender::new(Arc::new(services)).subscribe())
    }

    fn chosen(to: &str, route: &Route, services: &[&str], addresses: &[&str]) -> Option<String> {
        let addresses: Vec<_> = addresses.iter().map(|it| address(it)).collect();
        let chosen = rules(GivenSources::default(), services).choose(ip(to), route, &addresses);
        chosen.map(|it| it.to_string())
    }

    #[test]
    fn the_kernels_choice_stands() {
        let route = route("10.0.0.1", Some("10.9.0.9"));
        let of = ["10.0.0.2/24 2"];
        assert_eq!(chosen("10.1.0.11", &route, &["198.51.100.1"], &of).unwrap(), "10.9.0.9");
    }

    #[test]
    fn given_addresses_come_first_even_where_they_are_a_services() {
        let given = GivenSources {
            v4: Some([192, 0, 2, 1].into()),
            v6: Some("2001:db8::1".parse().unwrap()),
            prefix_v4: None,
        };
        let rules = rules(given, &["192.0.2.1"]);
        let (v4, v6) = (route("10.0.0.1", Some("10.0.0.2")), route("fd00::9", Some("fd00::2")));
        assert_eq!(rules.choose(ip("10.1.0.11"), &v4, &[]), Some(ip("192.0.2.1")));
        assert_eq!(rules.choose(ip("fd00:1::11"), &v6, &[]), Some(ip("2001:db8::1")));
        assert_eq!(
            rules.choose_inner((ip("2001:db8:80::1"), ip("10.1.0.11")), &v4, &[]),
            Some(ip("2001:db8::1"))
        );
        let prefix_v4 = lb_model::Ipv4Prefix::new([10, 64, 0, 0].into(), 24);
        let rules = self::rules(GivenSources { prefix_v4, ..GivenSources::default() }, &[]);
        assert_eq!(rules.choose(ip("10.1.0.11"), &v4, &[]), Some(ip("10.64.0.0")));
        assert_eq!(rules.choose(ip("fd00:1::11"), &v6, &[]), Some(ip("fd00::2")));
        assert_eq!(
            rules.choose_inner((ip("198.51.100.1"), ip("10.1.0.11")), &v4, &[]),
            Some(ip("10.0.0.2"))
        );
    }

    /// By hand, from the rules of RFC 6724 and of `inet_select_addr`.
    #[test]
    fn without_the_services_address_the_kernels_next_choice_stands() {
        let v4 = route("10.0.0.1", Some("198.51.100.1"));
        let v6 = route("fd00::9", Some("2001:db8:80::1"));
        let vips = ["198.51.100.1", "2001:db8:80::1"];
        for (to, route, addresses, expected) in [
            // Of the subnet of the next hop, whatever comes first, else the first of the interface.
            (
                "10.1.0.11",
                &v4,
                &["198.51.100.1/32 2", "172.16.0.2/24 2", "10.0.0.2/24 2"][..],
                "10.0.0.2",
            ),
            ("10.1.0.11", &v4, &["192.0.2.50/32 2", "10.0.9.2/24 2"], "192.0.2.50"),
            ("10.1.0.11", &v4, &["192.0.2.7/32 1", "10.0.9.2/24 2"], "10.0.9.2"),
            ("10.1.0.11", &v4, &["192.0.2.7/32 1"], "192.0.2.7"),
            // Deprecation is of no account.
            ("10.1.0.11", &v4, &["10.0.0.3/24 2 deprecated", "10.0.1.9/24 2"], "10.0.0.3"),
            // A secondary address of a service's subnet is promoted, and comes in its place in the list.
            ("10.1.0.11", &v4, &["192.0.2.7/32 2", "10.0.0.3/24 2", "10.0.0.9/24 2"], "10.0.0.3"),
            // On the link likewise.
            (
                "10.0.0.11",
                &route("10.0.0.11", None),
                &["192.0.2.7/32 2", "10.0.0.3/24 2"],
                "10.0.0.3",
            ),
            // Of no narrower scope than the route; of link scope only on the interface itself.
            (
                "10.1.0.11",
                &v4,
                &["10.0.0.7/24 2 link", "10.5.5.5/32 2 host", "10.0.9.2/24 3"],
                "10.0.9.2",
            ),
            ("10.0.0.11", &route("10.0.0.11", None), &["169.254.7.7/16 2 link"], "169.254.7.7"),
            (
                "10.0.0.11",
                &route("10.0.0.11", None),
                &["169.254.7.7/16 1 link", "10.0.9.2/24 3"],
                "10.0.9.2",
            ),
            ("fd00:1::11", &v6, &["2001:db8:80::1/128 2", "fd00::2/64 2"], "fd00::2"),
            // Of enough scope (rule 2), and of no more than that.
            ("fd00:1::11", &v6, &["fec0::7/64 2", "2001:db8:1::7/64 3"], "2001:db8:1::7"),
            ("fec0:1::11", &v6, &["2001:db8:1::7/64 2", "fec0::7/64 3"], "fec0::7"),
            // Deprecated last (rule 3), then of the interface (rule 5).
            ("fd00:1::11", &v6, &["fd00:1::2/64 2 deprecated", "fd00:9::2/64 3"], "fd00:9::2"),
            ("fd00:1::11", &v6, &["fd00:1::2/64 3", "2001:db8::2/64 2"], "2001:db8::2"),
            ("fd00:1::11", &v6, &["fd00:1::2/64 2 deprecated"], "fd00:1::2"),
            // Of its kind (rule 6), not temporary (7), then the longest prefix in common, within its own (8).
            ("fd00:1::11", &v6, &["2001:db8::2/64 2", "fdff::2/64 2"], "fdff::2"),
            ("2001:db8:1::11", &v6, &["2001::2/64 2", "2600::2/64 2"], "2600::2"),
            ("2001:db8:1::11", &v6, &["2002:c000:201::2/64 2", "2600::2/64 2"], "2600::2"),
            ("fd00:1::11", &v6, &["fd00:1::2/64 2 temporary", "fdff::2/64 2"], "fdff::2"),
            ("fd00:1::11", &v6, &["fdff::2/64 2", "fd00:1:0:9::2/64 2"], "fd00:1:0:9::2"),
            ("fd00:1::11", &v6, &["fd00:1::ff/64 2", "fd00:1::10/64 2"], "fd00:1::ff"),
            ("fd00:1::11", &v6, &["fd00:1::ff/64 2", "fd00:1::10/128 2"], "fd00:1::10"),
        ] {
            let found = chosen(to, route, &vips, addresses);
            assert_eq!(found.as_deref(), Some(expected), "{to} of {addresses:?}");
        }
    }

    #[test]
    fn no_address_that_a_backend_cannot_answer_is_a_source() {
        let vips = ["198.51.100.1", "2001:db8:80::1"];
        for preferred in [None, Some("198.51.100.1"), Some("127.0.0.1"), Some("0.0.0.0")] {
            let route = route("10.0.0.1", preferred);
            let only = ["198.51.100.1/32 2", "10.5.5.5/32 2 host", "169.254.7.7/16 3 link"];
            assert_eq!(chosen("10.1.0.11", &route, &vips, &only), None);
        }
        for preferred in [None, Some("2001:db8:80::1"), Some("fe80::1"), Some("::1")] {
            let route = route("fd00::9", preferred);
            let only = ["2001:db8:80::1/128 2", "10.0.0.2/24 2"];
            assert_eq!(chosen("fd00:1::11", &route, &vips, &only), None);
        }
    }

    #[test]
    fn a_check_of_the_other_ip_version_comes_from_the_interface_of_the_route() {
        let addresses = ["fd00::2/64 2", "fd00:7::2/64 3", "10.0.0.2/24 2", "10.7.0.2/24 3"];
        let addresses = addresses.map(address);
        let rules = rules(GivenSources::default(), &[]);
        let v4 = route("10.0.0.1", Some("10.0.0.2"));
        let own = |vip| rules.choose_inner((ip(vip), ip("10.1.0.11")), &v4, &addresses);
        assert_eq!(own("198.51.100.1"), Some(ip("10.0.0.2")));
        assert_eq!(own("fd00:80::1"), Some(ip("fd00::2")));
        let elsewhere =
            Route { neighbour: NeighbourKey { interface: OTHER, ..v4.neighbour }, ..v4 };
        assert_eq!(
            rules.choose_inner((ip("fd00:80::1"), ip("10.1.0.11")), &elsewhere, &addresses),
            Some(ip("fd00:7::2"))
        );
    }
}
