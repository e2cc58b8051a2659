use std::time::Duration;

use netlink_packet_route::neighbour::NeighbourState::{
    self, Failed, Incomplete, Permanent, Probe, Reachable, Stale,
};
use proptest::prelude::*;

use super::{super::Mac, *};

const ETH0: u32 = 2;
const ETH1: u32 = 3;
const GATEWAY: &str = "192.0.2.1";
const A: Mac = [2, 0, 0, 0, 0, 0xa];
const B: Mac = [2, 0, 0, 0, 0, 0xb];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn interface(index: u32) -> Interface {
    Interface {
        index,
        name: format!("eth{}", index - ETH0),
        mac: Some([2, 0, 0, 0, 1, index as u8]),
        mtu: 1500,
        up: true,
        carrier: true,
        noarp: false,
    }
}

fn neighbour(interface: u32, address: &str) -> NeighbourKey {
    NeighbourKey { interface, address: ip(address) }
}

fn route(interface: u32, gateway: &str) -> Result<Route, Unresolved> {
    Ok(Route { neighbour: neighbour(interface, gateway), mtu: None, advmss: None })
}

fn hop(interface: u32, gateway: &str, mac: Mac) -> NextHop {
    NextHop {
        gateway: ip(gateway),
        mac,
        interface,
        interface_mac: [2, 0, 0, 0, 1, interface as u8],
        mtu: 1500,
        link_mtu: 1500,
        path_mtu: None,
    }
}

/// The book, a clock that stands still, and shorthand.
struct Book {
    hops: Hops,
    now: Instant,
}

impl Book {
    /// Two interfaces, and these addresses behind the gateway on the first.
    fn new(addresses: &[&str]) -> Self {
        let mut book = Self { hops: Hops::default(), now: Instant::now() };
        book.hops.replace(vec![interface(ETH0), interface(ETH1)], Vec::new());
        book.want(addresses);
        for address in addresses {
            book.hops.routed(ip(address), route(ETH0, GATEWAY));
        }
        book
    }

    fn want(&mut self, addresses: &[&str]) -> Vec<IpAddr> {
        self.hops.want(&addresses.iter().map(|a| ip(a)).collect()).into_iter().collect()
    }

    fn see(&mut self, interface: u32, address: &str, state: NeighbourState, mac: Option<Mac>) {
        let key = neighbour(interface, address);
        self.hops.observe(Event::Neighbour(Sighting { key, state, mac }), self.now);
    }

    fn gone(&mut self, interface: u32, address: &str) {
        let key = neighbour(interface, address);
        let state = Failed;
        self.hops.observe(Event::NeighbourGone(Sighting { key, state, mac: None }), self.now);
    }

    /// What `ip neigh del` makes the kernel say.
    fn delete(&mut self, interface: u32, address: &str) {
        self.see(interface, address, Failed, None);
        self.gone(interface, address);
    }

    fn observe(&mut self, event: Event) {
        self.hops.observe(event, self.now);
    }

    fn settle(&mut self) -> Vec<(IpAddr, Result<NextHop, String>)> {
        let text = |change: NextHopChange| (change.address, change.hop.map_err(|e| e.to_string()));
        self.hops.settle(self.now).into_iter().map(text).collect()
    }

    /// [`Book::settle`], when those that failed have had their last chance.
    fn settle_later(&mut self) -> Vec<(IpAddr, Result<NextHop, String>)> {
        self.now += LAST_CHANCE;
        self.settle()
    }

    fn asks(&mut self) -> Vec<NeighbourKey> {
        self.hops.take_asks(self.now)
    }
}

fn told(address: &str, hop: NextHop) -> (IpAddr, Result<NextHop, String>) {
    (ip(address), Ok(hop))
}

fn failed(address: &str, why: &str) -> (IpAddr, Result<NextHop, String>) {
    (ip(address), Err(why.to_owned()))
}

#[tokio::test]
async fn nothing_is_told_before_the_neighbour_answers_or_fails_to() {
    let mut book = Book::new(&["198.51.100.1"]);
    assert_eq!(book.settle(), []);
    assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
    book.see(ETH0, GATEWAY, Incomplete, None);
    assert_eq!(book.settle(), []);
    book.see(ETH0, GATEWAY, Failed, None);
    assert_eq!(
        book.settle(),
        [failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")]
    );
    book.see(ETH0, GATEWAY, Incomplete, None);
    assert_eq!(book.settle(), [], "asking again is no news");
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    book.now += Duration::from_secs(3600);
    assert_eq!(book.asks(), [], "it is known");
}

#[tokio::test]
async fn a_thousand_backends_behind_a_gateway_are_one_neighbour() {
    let addresses: Vec<_> = (0..1000).map(|n| format!("198.51.{}.{}", n / 250, n % 250)).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let mut book = Book::new(&addresses);
    assert_eq!(book.settle(), []);
    assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
    for mac in [A, B] {
        book.see(ETH0, GATEWAY, Reachable, Some(mac));
        let told = book.settle();
        assert_eq!(told.len(), 1000);
        assert!(told.iter().all(|(_, got)| *got == Ok(hop(ETH0, GATEWAY, mac))));
    }
}

#[tokio::test]
async fn a_change_that_is_none_is_not_told() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(book.settle().len(), 1);
    for state in [Stale, Probe, Reachable, Permanent] {
        book.see(ETH0, GATEWAY, state, Some(A));
        book.see(ETH0, "192.0.2.77", state, Some(B));
        book.see(ETH1, GATEWAY, state, Some(B));
        book.hops.routed(ip("198.51.100.1"), route(ETH0, GATEWAY));
        book.observe(Event::Link(interface(ETH0)));
        assert_eq!(book.settle(), [], "{state}");
    }
}

#[tokio::test]
async fn a_stale_neighbour_is_asked_for_at_once_and_stays() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    book.settle();
    assert_eq!(book.asks(), []);
    book.see(ETH0, GATEWAY, Stale, Some(A));
    assert_eq!(book.settle(), []);
    assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
    book.see(ETH0, GATEWAY, Probe, Some(A));
    book.see(ETH0, GATEWAY, Failed, None);
    assert_eq!(book.settle(), [], "it may be a deletion");
    assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
    assert_eq!(
        book.settle_later(),
        [failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")]
    );
}

#[tokio::test]
async fn a_removed_neighbour_keeps_its_mac_until_asking_shows_otherwise() {
    for (answer, expected) in [
        ((Reachable, Some(A)), vec![]),
        ((Reachable, Some(B)), vec![told("198.51.100.1", hop(ETH0, GATEWAY, B))]),
        (
            (Failed, None),
            vec![failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")],
        ),
    ] {
        let mut book = Book::new(&["198.51.100.1"]);
        book.see(ETH0, GATEWAY, Reachable, Some(A));
        book.settle();
        book.delete(ETH0, GATEWAY);
        assert_eq!(book.settle(), []);
        assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
        // While it is asked for somebody deletes it once more.
        book.see(ETH0, GATEWAY, Incomplete, None);
        book.delete(ETH0, GATEWAY);
        assert_eq!(book.settle_later(), []);
        assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
        let (state, mac) = answer;
        book.see(ETH0, GATEWAY, state, mac);
        assert_eq!(book.settle_later(), expected);
    }
}

#[tokio::test]
async fn an_interface_that_goes_down_takes_its_next_hops_and_neighbours_with_it() {
    let down = Interface { up: false, carrier: false, ..interface(ETH0) };
    let loose = Interface { carrier: false, ..interface(ETH0) };
    for (event, why) in [
        (Event::Link(down), "interface eth0 is down"),
        (Event::Link(loose), "interface eth0 has no carrier"),
        (Event::LinkGone(ETH0), "interface 2 is gone"),
    ] {
        let mut book = Book::new(&["198.51.100.1"]);
        book.see(ETH0, GATEWAY, Stale, Some(A));
        book.settle();
        book.observe(event);
        assert_eq!(book.settle(), [failed("198.51.100.1", why)]);
        assert_eq!(book.asks(), []);
        book.observe(Event::Link(interface(ETH0)));
        assert_eq!(book.settle(), [], "whoever is there now has not been heard");
        assert_eq!(book.asks(), [neighbour(ETH0, GATEWAY)]);
        book.see(ETH0, GATEWAY, Reachable, Some(A));
        assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    }
}

#[tokio::test]
async fn a_permanent_neighbour_outlives_a_lost_carrier() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.see(ETH0, GATEWAY, Permanent, Some(A));
    book.settle();
    book.observe(Event::Link(Interface { carrier: false, ..interface(ETH0) }));
    assert_eq!(book.settle(), [failed("198.51.100.1", "interface eth0 has no carrier")]);
    book.observe(Event::Link(interface(ETH0)));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, A))]);
}

#[tokio::test]
async fn mtu_and_own_mac_follow_the_interface_and_the_route() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    let key = neighbour(ETH0, GATEWAY);
    for (route_mtu, interface_mtu, mtu) in [
        (Some(1400), 1500, 1400),
        (Some(9000), 1500, 1500),
        (None, 9000, 9000),
        (None, 65536, 65535),
    ] {
        book.hops
            .routed(ip("198.51.100.1"), Ok(Route { neighbour: key, mtu: route_mtu, advmss: None }));
        book.observe(Event::Link(Interface { mtu: interface_mtu, ..interface(ETH0) }));
        let link_mtu = interface_mtu.min(65_535) as u16;
        let expected = NextHop { mtu, link_mtu, ..hop(ETH0, GATEWAY, A) };
        assert_eq!(
            book.settle(),
            [told("198.51.100.1", expected)],
            "{route_mtu:?} {interface_mtu}"
        );
    }
    book.observe(Event::Link(Interface { mac: Some(B), mtu: 65536, ..interface(ETH0) }));
    let most = NextHop { mtu: 65535, link_mtu: 65535, ..hop(ETH0, GATEWAY, A) };
    let expected = NextHop { interface_mac: B, ..most };
    assert_eq!(book.settle(), [told("198.51.100.1", expected)]);
}

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
async fn interfaces_that_ask_for_nobody() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.observe(Event::Link(Interface { mac: None, ..interface(ETH0) }));
    assert_eq!(
        book.settle(),
        [failed("198.51.100.1", "interface eth0 carries no Ethernet frames")]
    );
    book.observe(Event::Link(Interface { noarp: true, ..interface(ETH0) }));
    let why = "neighbour 192.0.2.1 on eth0 is not known, and eth0 asks for none (noarp)";
    assert_eq!(book.settle(), [failed("198.51.100.1", why)]);
    assert_eq!(book.asks(), []);
    book.see(ETH0, GATEWAY, Permanent, Some(B));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, B))]);
}

#[tokio::test]
async fn a_neighbour_that_the_kernel_will_not_ask_for_says_why() {
    let mut book = Book::new(&["198.51.100.1"]);
    book.settle();
    book.asks();
    book.hops.asked(neighbour(ETH0, GATEWAY), Some("no buffer space available".to_owned()));
    let why = "neighbour 192.0.2.1 on eth0 cannot be asked for: no buffer space available";
    assert_eq!(book.settle(), [failed("198.51.100.1", why)]);
    book.hops.asked(neighbour(ETH0, GATEWAY), None);
    assert_eq!(book.settle(), []);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(book.settle(), [told("198.51.100.1", hop(ETH0, GATEWAY, A))]);
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
async fn reading_all_anew_makes_up_for_lost_events() {
    let seen = |state, mac| vec![Sighting { key: neighbour(ETH0, GATEWAY), state, mac }];
    let up = || vec![interface(ETH0), interface(ETH1)];
    for (interfaces, neighbours, expected) in [
        (up(), seen(Reachable, Some(A)), vec![]),
        (up(), seen(Reachable, Some(B)), vec![told("198.51.100.1", hop(ETH0, GATEWAY, B))]),
        (
            up(),
            seen(Failed, None),
            vec![failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")],
        ),
        (up(), vec![], vec![]),
        (vec![interface(ETH1)], vec![], vec![failed("198.51.100.1", "interface 2 is gone")]),
    ] {
        let mut book = Book::new(&["198.51.100.1"]);
        book.see(ETH0, GATEWAY, Reachable, Some(A));
        book.settle();
        book.hops.replace(interfaces, neighbours);
        assert_eq!(book.settle(), expected);
    }
}

/// One random thing that may happen.
fn happening() -> impl Strategy<Value = Event> {
    let states = prop::sample::select(vec![Incomplete, Reachable, Stale, Probe, Failed]);
    let seen =
        (ETH0..=ETH1, states, prop::sample::select(vec![A, B])).prop_map(|(i, state, mac)| {
            let known = !matches!(state, Incomplete | Failed);
            Sighting { key: neighbour(i, GATEWAY), state, mac: known.then_some(mac) }
        });
    let link = (ETH0..=ETH1, any::<bool>(), any::<bool>())
        .prop_map(|(index, up, carrier)| Interface { up, carrier, ..interface(index) });
    prop_oneof![
        4 => seen.clone().prop_map(Event::Neighbour),
        1 => seen.prop_map(Event::NeighbourGone),
        2 => link.prop_map(Event::Link),
        1 => (ETH0..=ETH1).prop_map(Event::LinkGone),
    ]
}

proptest! {
    /// Whatever happened: a neighbour that is confirmed on an interface that is up is the next hop,
    /// and one that has failed while being asked for is none; what was told last says so.
    #[test]
    fn what_is_told_follows_the_last_word(
        happenings in prop::collection::vec(happening(), 0..60),
        answers in any::<bool>(),
    ) {
        let now = Instant::from_std(std::time::Instant::now());
        let mut book = Book { hops: Hops::default(), now };
        book.want(&["198.51.100.1"]);
        book.hops.routed(ip("198.51.100.1"), route(ETH0, GATEWAY));
        let mut last = None;
        for event in happenings {
            book.observe(event);
            last = book.settle().pop().or(last);
        }
        book.observe(Event::Link(interface(ETH0)));
        let (state, mac) = if answers { (Reachable, Some(B)) } else { (Failed, None) };
        book.see(ETH0, GATEWAY, Probe, Some(A));
        book.see(ETH0, GATEWAY, state, mac);
        last = book.settle_later().pop().or(last);
        let expected = match answers {
            true => told("198.51.100.1", hop(ETH0, GATEWAY, B)),
            false => failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer"),
        };
        prop_assert_eq!(last, Some(expected));
        prop_assert_eq!(book.asks().contains(&neighbour(ETH0, GATEWAY)), !answers);
    }
}

#[tokio::test]
async fn what_a_router_says_of_a_way_counts_for_ten_minutes() {
    const TO: &str = "198.51.100.1";
    let mut book = Book::new(&[TO]);
    book.see(ETH0, GATEWAY, Reachable, Some(A));
    let news =
        |mtu: u16, path_mtu| [(ip(TO), Ok(NextHop { mtu, path_mtu, ..hop(ETH0, GATEWAY, A) }))];
    assert_eq!(book.settle(), news(1500, None));
    let begin = book.now;
    let told = |book: &mut Book, mtu| {
        book.hops.carries(PathMtu { to: ip(TO), mtu }, book.now);
        book.settle()
    };
    assert_eq!(told(&mut book, 1400), news(1400, Some(1400)));
    assert_eq!(told(&mut book, 1450), [], "another one knew better");
    book.now += Duration::from_secs(60);
    assert_eq!(told(&mut book, 1300), news(1300, Some(1300)));
    book.now += Duration::from_secs(60);
    assert_eq!(told(&mut book, 1300), [], "it is as it was, from now on");
    // Nobody wants to know of it, or it says no news.
    book.hops.carries(PathMtu { to: ip("198.51.100.9"), mtu: 1300 }, book.now);
    assert_eq!(book.settle(), []);
    book.now = begin + Duration::from_secs(719);
    assert_eq!(book.settle(), []);
    assert_eq!(book.hops.next_due(), Some(begin + Duration::from_secs(720)));
    book.now = begin + Duration::from_secs(720);
    assert_eq!(book.settle(), news(1500, None));
    assert_eq!(told(&mut book, 1500), [], "the interface carries no more anyway");
    // What the route says to be less counts.
    book.hops.routed(ip(TO), Ok(Route { mtu: Some(1350), ..route(ETH0, GATEWAY).unwrap() }));
    assert_eq!(book.settle(), news(1350, None));
    assert_eq!(told(&mut book, 1320), news(1320, Some(1320)));
    // Whoever goes takes it along.
    book.want(&[]);
    book.want(&[TO]);
    book.hops.routed(ip(TO), route(ETH0, GATEWAY));
    assert_eq!(book.settle(), news(1500, None));
}
