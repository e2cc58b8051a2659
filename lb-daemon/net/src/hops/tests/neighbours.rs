//! Neighbours that answer, or do not.

use super::*;

#[tokio::test]
async fn nothing_is_told_before_the_neighbour_answers_or_fails_to() {
    let mut network = Network::new(&["198.51.100.1"]);
    assert_eq!(network.settle(), []);
    assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
    network.see(ETH0, GATEWAY, Incomplete, None);
    assert_eq!(network.settle(), []);
    network.see(ETH0, GATEWAY, Failed, None);
    assert_eq!(
        network.settle(),
        [failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")]
    );
    network.see(ETH0, GATEWAY, Incomplete, None);
    assert_eq!(network.settle(), [], "asking again is no news");
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    network.now += Duration::from_secs(3600);
    assert_eq!(network.requests(), [], "it is known");
}

#[tokio::test]
async fn a_thousand_backends_behind_a_gateway_are_one_neighbour() {
    let addresses: Vec<_> = (0..1000).map(|n| format!("198.51.{}.{}", n / 250, n % 250)).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let mut network = Network::new(&addresses);
    assert_eq!(network.settle(), []);
    assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
    for mac in [A, B] {
        network.see(ETH0, GATEWAY, Reachable, Some(mac));
        let reported = network.settle();
        assert_eq!(reported.len(), 1000);
        assert!(reported.iter().all(|(_, got)| *got == Ok(hop(ETH0, GATEWAY, mac))));
    }
}

#[tokio::test]
async fn a_stale_neighbour_is_asked_for_at_once_and_stays() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    network.settle();
    assert_eq!(network.requests(), []);
    network.see(ETH0, GATEWAY, Stale, Some(A));
    assert_eq!(network.settle(), []);
    assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
    network.see(ETH0, GATEWAY, Probe, Some(A));
    network.see(ETH0, GATEWAY, Failed, None);
    assert_eq!(network.settle(), [], "it may be a deletion");
    assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
    assert_eq!(
        network.settle_later(),
        [failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")]
    );
}

#[tokio::test]
async fn a_silent_neighbour_that_sends_something_is_probed_at_once() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.see(ETH0, GATEWAY, Failed, None);
    assert_eq!(network.settle().len(), 1, "it is silent");
    assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
    assert_eq!(network.hops.take_cut_off().into_iter().collect::<Vec<_>>(), [ip("198.51.100.1")]);
    for _ in 0..3 {
        // Its own ARP request, for example.
        network.see(ETH0, GATEWAY, Stale, Some(A));
        assert_eq!(network.settle(), []);
        let requests = network.hops.take_requests(network.now);
        assert_eq!(requests, [Request::Probe(neighbour(ETH0, GATEWAY))]);
        network.see(ETH0, GATEWAY, Probe, Some(A));
        assert_eq!(network.settle(), []);
        assert_eq!(network.hops.take_cut_off(), BTreeSet::new());
        network.see(ETH0, GATEWAY, Failed, None);
        assert_eq!(network.settle(), [], "still silent");
        assert_eq!(network.hops.take_cut_off().len(), 1, "another way may be open meanwhile");
        let requests = network.hops.take_requests(network.now);
        assert_eq!(requests, [Request::Resolve(neighbour(ETH0, GATEWAY))]);
    }
    network.see(ETH0, GATEWAY, Stale, Some(A));
    network.see(ETH0, GATEWAY, Probe, Some(A));
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
    assert_eq!(network.requests(), []);
}

#[tokio::test]
async fn a_removed_neighbour_keeps_its_mac_until_asking_shows_otherwise() {
    for (answer, expected) in [
        ((Reachable, Some(A)), vec![]),
        ((Reachable, Some(B)), vec![reported("198.51.100.1", hop(ETH0, GATEWAY, B))]),
        (
            (Failed, None),
            vec![failed("198.51.100.1", "neighbour 192.0.2.1 on eth0 does not answer")],
        ),
    ] {
        let mut network = Network::new(&["198.51.100.1"]);
        network.see(ETH0, GATEWAY, Reachable, Some(A));
        network.settle();
        network.delete(ETH0, GATEWAY);
        assert_eq!(network.settle(), []);
        assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
        // While it is asked for somebody deletes it once more.
        network.see(ETH0, GATEWAY, Incomplete, None);
        network.delete(ETH0, GATEWAY);
        assert_eq!(network.settle_later(), []);
        assert_eq!(network.requests(), [neighbour(ETH0, GATEWAY)]);
        let (state, mac) = answer;
        network.see(ETH0, GATEWAY, state, mac);
        assert_eq!(network.settle_later(), expected);
    }
}

#[tokio::test]
async fn a_neighbour_that_the_kernel_will_not_ask_for_says_why() {
    let mut network = Network::new(&["198.51.100.1"]);
    network.settle();
    network.requests();
    network
        .hops
        .set_refused(neighbour(ETH0, GATEWAY), Some("no buffer space available".to_owned()));
    let why = "the kernel cannot resolve neighbour 192.0.2.1 on eth0: no buffer space available";
    assert_eq!(network.settle(), [failed("198.51.100.1", why)]);
    network.hops.set_refused(neighbour(ETH0, GATEWAY), None);
    assert_eq!(network.settle(), []);
    network.see(ETH0, GATEWAY, Reachable, Some(A));
    assert_eq!(network.settle(), [reported("198.51.100.1", hop(ETH0, GATEWAY, A))]);
}
