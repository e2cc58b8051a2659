//! What is reported after whatever has happened.

use super::*;

#[tokio::test]
async fn a_change_that_is_none_is_not_told() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(network.settle().len(), 1);
    for state in [Stale, Probe, Reachable, Permanent] {
        network.see(ETH0, GATEWAY, state, Some(A));
        network.see(ETH0, "192.0.2.77", state, Some(B));
        network.see(ETH1, GATEWAY, state, Some(B));
        network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
        network.observe(Event::Link(interface(ETH0)));
        assert_eq!(network.settle(), [], "{state}");
    }
}

#[tokio::test]
async fn reading_all_anew_makes_up_for_lost_events() {
    let seen = |state, mac| {
        vec![NeighbourEntry { key: neighbour(ETH0, GATEWAY), state, mac, is_kernels: true }]
    };
    let up = || vec![interface(ETH0), interface(ETH1)];
    for (interfaces, neighbours, expected) in [
        (up(), seen(Reachable, Some(A)), vec![]),
        (up(), seen(Reachable, Some(B)), vec![reported("198.51.100.1", hop(ETH0, GATEWAY, B))]),
        (
            up(),
            seen(Failed, None),
            vec![failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")],
        ),
        (up(), vec![], vec![]),
        (vec![interface(ETH1)], vec![], vec![failed("198.51.100.1", "interface 2 is gone")]),
    ] {
        let mut network = Network::new(&["198.51.100.1"]);
        network.see(ETH0, GATEWAY, Reachable, Some(A));
        network.settle();
        network.hops.replace(interfaces, neighbours);
        network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
        assert_eq!(network.settle(), expected);
    }
}

/// One random thing that may happen.
fn happening() -> impl Strategy<Value = Event> {
    let states = prop::sample::select(vec![Incomplete, Reachable, Stale, Probe, Failed]);
    let seen =
        (ETH0..=ETH1, states, prop::sample::select(vec![A, B])).prop_map(|(i, state, mac)| {
            let known = !matches!(state, Incomplete | Failed);
            NeighbourEntry {
                key: neighbour(i, GATEWAY),
                state,
                mac: known.then_some(mac),
                is_kernels: true,
            }
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
    /// and one that has failed while being asked for is none; what was reported last says so.
    #[test]
    fn what_is_told_follows_the_last_word(
        happenings in prop::collection::vec(happening(), 0..60),
        answers in any::<bool>(),
    ) {
        let now = Instant::from_std(std::time::Instant::now());
        let mut network = Network { hops: Hops::default(), now };
        network.want(&["198.51.100.1"]);
        network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
        let mut last = None;
        for event in happenings {
            network.observe(event);
            last = network.settle().pop().or(last);
        }
        network.observe(Event::Link(interface(ETH0)));
        network.hops.set_route(ip("198.51.100.1"), route(ETH0, GATEWAY));
        let (state, mac) = if answers { (Reachable, Some(B)) } else { (Failed, None) };
        network.see(ETH0, GATEWAY, Probe, Some(A));
        network.see(ETH0, GATEWAY, state, mac);
        last = network.settle_later().pop().or(last);
        let expected = match answers {
            true => reported("198.51.100.1", hop(ETH0, GATEWAY, B)),
            false => failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer"),
        };
        prop_assert_eq!(last, Some(expected));
        prop_assert_eq!(network.requests().contains(&neighbour(ETH0, GATEWAY)), !answers);
    }
}
