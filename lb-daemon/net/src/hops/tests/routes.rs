//! Routes, their MTU, and the set of wanted addresses.

use super::*;

const TO: &str = "198.51.100.1";

#[tokio::test]
async fn a_new_route_takes_over_when_its_neighbour_answers() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    network.settle();
    network.hops.set_route(ip("198.51.100.1"), route(ETH1, "203.0.113.1"));
    assert_eq!(network.settle(), [], "the old way stands meanwhile");
    assert_eq!(network.requests(), [neighbour(ETH1, "203.0.113.1")]);
    network.see(ETH1, "203.0.113.1", Reachable, Some(B));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH1, "203.0.113.1", B))]);
    network.see(ETH0, GATEWAY, Failed, None);
    assert_eq!(
        (network.settle(), network.requests()),
        (vec![], vec![]),
        "the old neighbour is no concern"
    );
}

#[tokio::test]
async fn ways_that_are_none_say_why() {
    let own = ip("198.51.100.1");
    for (route, why) in [
        (Err(Unresolved::NoRoute), "no route"),
        (Err(Unresolved::Refused("blackhole")), "no route: blackhole"),
        (Err(Unresolved::Own(own)), "198.51.100.1 is an address of this host"),
        (route(9, GATEWAY), "interface 9 is gone"),
    ] {
        let mut network = Network::new(&["198.51.100.1"]);
        network.hops.set_route(own, route);
        assert_eq!(network.settle(), [failed("198.51.100.1", why)]);
        assert_eq!(network.requests(), []);
    }
}

#[tokio::test]
async fn addresses_come_and_go() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Stale, Some(A));
    network.settle();
    assert_eq!(network.want(&["198.51.100.1", "198.51.100.2"]), [ip("198.51.100.2")]);
    network.hops.set_route(ip("198.51.100.2"), route(ETH0, GATEWAY));
    let both = ["198.51.100.1", "198.51.100.2"].map(|a| reported(a, hop(ETH0, GATEWAY, A)));
    assert_eq!(network.settle(), both, "known at once");
    // Between these two they were not wanted, but nobody looked.
    assert_eq!(network.want(&["198.51.100.1", "198.51.100.2"]), [] as [IpAddr; 0]);
    assert_eq!(network.settle(), both, "reported again");
    assert_eq!(network.settle(), []);
    assert_eq!(network.want(&[]), [] as [IpAddr; 0]);
    network.see(ETH0, GATEWAY, Reachable, Some(B));
    network.hops.set_route(ip("198.51.100.2"), route(ETH1, GATEWAY));
    assert_eq!((network.settle(), network.requests()), (vec![], vec![]));
    assert_eq!(network.want(&["198.51.100.1"]), [ip("198.51.100.1")]);
    network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
    assert_eq!(
        network.settle(),
        [reported("198.51.100.1", hop(ETH0, GATEWAY, B))],
        "reported anew"
    );
}

#[tokio::test]
async fn the_mtu_of_a_route_counts_where_it_is_smaller() {
    let mut network = Network::new(&[TO]);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    let expected = |mtu: u16| [(ip(TO), Ok(NextHop { mtu, ..hop(ETH0, GATEWAY, A) }))];
    assert_eq!(network.settle(), expected(1500));
    network.hops.set_route(ip(TO), Ok(Route { mtu: Some(1350), ..route(ETH0, GATEWAY).unwrap() }));
    assert_eq!(network.settle(), expected(1350));
    network.hops.set_route(ip(TO), Ok(Route { mtu: Some(9000), ..route(ETH0, GATEWAY).unwrap() }));
    assert_eq!(network.settle(), expected(1500));
}
