//! Neighbours that answer, or do not.

use super::*;

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
