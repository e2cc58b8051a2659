//! Interfaces that come, go and change.

use super::*;

#[tokio::test]
async fn an_interface_that_goes_down_takes_its_next_hops_and_neighbours_with_it() {
    let down = Interface { up: false, carrier: false, ..interface(ETH0) };
    let loose = Interface { carrier: false, ..interface(ETH0) };
    for (event, why) in [
        (Event::Link(down), "interface eth0 is down"),
        (Event::Link(loose), "interface eth0 has no carrier"),
        (Event::LinkGone(ETH0), "interface 2 is gone"),
    ] {
        let mut network = Network::new(&["198.51.100.1"]);
        network.see(ETH0, GATEWAY, Stale, Some(A));
        network.settle();
        network.observe(event);
        assert_eq!(network.settle(), [], "there may be another way");
        network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
        assert_eq!(network.settle(), [failed("198.51.100.1", why)]);
        assert_eq!(network.requests(), []);
        network.observe(Event::Link(interface(ETH0)));
        assert_eq!(network.settle(), [], "whoever is there now has not been heard");
        assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
        network.see(ETH0, GATEWAY, Reachable, Some(A));
        assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    }
}

/// For a moment nobody knew of a way, and connections went to other hosts, which had never heard of them.
#[tokio::test]
async fn a_way_that_takes_over_from_one_that_went_down_leaves_no_gap() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    network.see(ETH1, GATEWAY, Reachable, Some(B));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    // The kernel forgets neighbours without traffic, so it has to be asked for as well.
    network.observe(Event::Link(Interface { up: false, carrier: false, ..interface(ETH0) }));
    assert_eq!(network.settle(), []);
    network.hops.set_route(ip("198.51.100.1"), route(ETH1, GATEWAY));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH1, GATEWAY, B))]);
    // What came up again before anybody looked is as it was.
    network.observe(Event::Link(interface(ETH0)));
    assert_eq!(network.settle(), []);
}

#[tokio::test]
async fn a_permanent_neighbour_outlives_a_lost_carrier() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Permanent, Some(A));
    network.settle();
    network.observe(Event::Link(Interface { carrier: false, ..interface(ETH0) }));
    network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
    assert_eq!(network.settle(), [failed("198.51.100.1", "interface eth0 has no carrier")]);
    network.observe(Event::Link(interface(ETH0)));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
}

#[tokio::test]
async fn mtu_and_own_mac_follow_the_interface_and_the_route() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    let key = neighbour(ETH0, GATEWAY);
    for (route_mtu, interface_mtu, mtu) in [
        (Some(1400), 1500, 1400),
        (Some(9000), 1500, 1500),
        (None, 9000, 9000),
        (None, 65536, 65535),
    ] {
        network.hops.set_route(
            ip("198.51.100.1"),
            Ok(Route { neighbour: key, mtu: route_mtu, advmss: None, source: SOURCE }),
        );
        network.observe(Event::Link(Interface { mtu: interface_mtu, ..interface(ETH0) }));
        let expected = NextHop { mtu, ..hop(ETH0, GATEWAY, A) };
        assert_eq!(
            network.settle(),
            [reported("198.51.100.1", expected)],
            "{route_mtu:?} {interface_mtu}"
        );
    }
    network.observe(Event::Link(Interface { mac: Some(B), mtu: 65536, ..interface(ETH0) }));
    let most = NextHop { mtu: 65535, ..hop(ETH0, GATEWAY, A) };
    let expected = NextHop { interface_mac: B, ..most };
    assert_eq!(network.settle(), [reported("198.51.100.1", expected)]);
}

/// Sent with a wrong tag, or with one too few, frames would be lost or come to strangers.
#[tokio::test]
async fn no_frame_goes_by_a_vlan_whose_tags_it_would_not_get() {
    let on = |beneath| Some(Vlan { beneath, id: 20 });
    let unsupported_vlan = Some(UnsupportedVlan::Provider);
    let cannot = "eth0 needs a VLAN tag that the packet program cannot add:";
    let network = |upper: Interface, lower: Interface, attached: &[u32]| {
        let mut network = Network::new(&["198.51.100.1"]);
        network.hops.attached = attached.iter().copied().collect();
        network.observe(Event::Link(lower));
        network.observe(Event::Link(upper));
        network.see(ETH0, GATEWAY, Reachable, Some(A));
        network.settle()
    };
    let plain = hop(ETH0, GATEWAY, A);
    let upper = Interface { vlan: on(ETH1), ..interface(ETH0) };
    let tagged = [reported("198.51.100.1", NextHop { vlan: on(ETH1), ..plain })];
    assert_eq!(network(upper.clone(), interface(ETH1), &[]), tagged);
    // A VLAN upon a VLAN of either kind.
    for lower in [
        Interface { vlan: on(9), ..interface(ETH1) },
        Interface { unsupported_vlan: unsupported_vlan.clone(), ..interface(ETH1) },
    ] {
        let why = format!("{cannot} its parent eth1 is a VLAN too");
        assert_eq!(network(upper.clone(), lower.clone(), &[ETH1]), [failed("198.51.100.1", &why)]);
        assert_eq!(network(upper.clone(), lower, &[ETH0]), tagged, "it has the program");
    }
    let upper = Interface { unsupported_vlan, ..interface(ETH0) };
    let why = format!("{cannot} it is an 802.1ad VLAN");
    assert_eq!(network(upper.clone(), interface(ETH1), &[]), [failed("198.51.100.1", &why)]);
    assert_eq!(network(upper, interface(ETH1), &[ETH0]), [reported("198.51.100.1", plain)]);
}

#[tokio::test]
async fn ports_of_bonds_are_told_when_they_come_and_go() {
    let port = |index, bond| Event::Link(Interface { bond, ..interface(index) });
    let mut network = Network::new(&[]);
    assert_eq!(
        network.hops.settle_bonds(),
        Some([].into()),
        "a former daemon may have known others"
    );
    assert_eq!(network.hops.settle_bonds(), None);
    network.observe(port(ETH0, Some(9)));
    network.observe(port(ETH1, Some(9)));
    assert_eq!(network.hops.settle_bonds(), Some([(ETH0, 9), (ETH1, 9)].into()));
    network.observe(Event::Link(Interface { up: false, bond: Some(9), ..interface(ETH1) }));
    assert_eq!(network.hops.settle_bonds(), None, "it is a port still");
    network.observe(port(ETH0, None));
    assert_eq!(network.hops.settle_bonds(), Some([(ETH1, 9)].into()));
    network.observe(Event::LinkGone(ETH1));
    assert_eq!(network.hops.settle_bonds(), Some([].into()));
    // What was not heard is read.
    network.hops.replace(vec![Interface { bond: Some(9), ..interface(ETH0) }], Vec::new());
    assert_eq!(network.hops.settle_bonds(), Some([(ETH0, 9)].into()));
}

#[tokio::test]
async fn interfaces_that_ask_for_nobody() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.observe(Event::Link(Interface { mac: None, ..interface(ETH0) }));
    assert_eq!(
        network.settle(),
        [failed("198.51.100.1", "interface eth0 is not an Ethernet interface")]
    );
    network.observe(Event::Link(Interface { noarp: true, ..interface(ETH0) }));
    let why = "no neighbour entry for 192.0.2.1 on eth0, and eth0 resolves none (noarp)";
    assert_eq!(network.settle(), [failed("198.51.100.1", why)]);
    assert_eq!(network.requests(), []);
    network.see(ETH0, GATEWAY, Permanent, Some(B));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, B))]);
}
