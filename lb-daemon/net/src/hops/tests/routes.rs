//! Routes, what they carry, and who wants them.

use super::*;

const TO: &str = "198.51.100.1";

#[tokio::test]
async fn a_new_route_takes_over_when_its_neighbour_answers() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    book.settle();
    book.hops.routed(ip("198.51.100.1"), route(ETH1, "203.0.113.1"));
    assert_eq!(book.settle(), [], "the old way stands meanwhile");
    assert_eq!(book.asks(), [neighbour(ETH1, "203.0.113.1")]);
    book.see(ETH1, "203.0.113.1", Reachable, Some(B));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH1, "203.0.113.1", B))]);
    book.see(ETH0, GATEWAY, Failed, None);
    assert_eq!((book.settle(), book.asks()), (vec![], vec![]), "the old neighbour is no concern");
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
        let mut book = Book::new(&["198.51.100.1"]);
        book.hops.routed(own, route);
        assert_eq!(book.settle(), [failed("198.51.100.1", why)]);
        assert_eq!(book.asks(), []);
    }
}

#[tokio::test]
async fn addresses_come_and_go() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.see(ETH0, GATEWAY, Stale, Some(A));
    book.settle();
    assert_eq!(book.want(&["198.51.100.1", "198.51.100.2"]), [ip("198.51.100.2")]);
    book.hops.routed(ip("198.51.100.2"), route(ETH0, GATEWAY));
    let both = ["198.51.100.1", "198.51.100.2"].map(|a| told(a, hop(ETH0, GATEWAY, A)));
    assert_eq!(book.settle(), both, "known at once");
    // Between these two they were not wanted, but nobody looked.
    assert_eq!(book.want(&["198.51.100.1", "198.51.100.2"]), [] as [IpAddr; 0]);
    assert_eq!(book.settle(), both, "told again");
    assert_eq!(book.settle(), []);
    assert_eq!(book.want(&[]), [] as [IpAddr; 0]);
    book.see(ETH0, GATEWAY, Reachable, Some(B));
    book.hops.routed(ip("198.51.100.2"), route(ETH1, GATEWAY));
    assert_eq!((book.settle(), book.asks()), (vec![], vec![]));
    assert_eq!(book.want(&["198.51.100.1"]), [ip("198.51.100.1")]);
    book.hops.routed(ip("198.51.100.1"), route(ETH0, GATEWAY));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, B))], "told anew");
}

#[tokio::test]
async fn the_mtu_of_a_route_counts_where_it_is_smaller() {
    let mut book = Book::new(&[TO]);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    let news = |mtu: u16| [(ip(TO), Ok(NextHop { mtu, ..hop(ETH0, GATEWAY, A) }))];
    assert_eq!(book.settle(), news(1500));
    book.hops.routed(ip(TO), Ok(Route { mtu: Some(1350), ..route(ETH0, GATEWAY).unwrap() }));
    assert_eq!(book.settle(), news(1350));
    book.hops.routed(ip(TO), Ok(Route { mtu: Some(9000), ..route(ETH0, GATEWAY).unwrap() }));
    assert_eq!(book.settle(), news(1500));
}
