//! Fragments of services that take them: those without ports go by the client's address alone.

use lb_common::abi::{
    pool::PoolWord,
    service::{SERVICE_BY_ADDRESS, SERVICE_FRAGMENTS, SERVICE_TRACKED},
    verdict::Verdict,
};

use lb_common_fake::{
    FakeTables,
    fixture::{Client, Fixture, NONE, client},
};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SERVED: u32 = SERVICE_BY_ADDRESS | SERVICE_FRAGMENTS;

fn served(tcp: u32, udp: u32) -> Fixture {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let fake = FakeTables::new(&[list(), list()], 4)
        .with_service("198.51.100.1", 80, TCP, tcp)
        .with_service("198.51.100.1", 53, UDP, udp);
    Fixture::with(fake)
}

/// Whichever comes first is admitted, and the rest of the client's follows it.
#[test]
fn a_tracked_client_is_one_flow_with_its_fragments() {
    let mut fixture = served(0, SERVED | SERVICE_TRACKED | 56 << 16);
    fixture.room_at_home(1);
    assert_eq!(fixture.fragment(client(1), UDP, true), Ok(1));
    assert_eq!(fixture.fragment(client(1), UDP, false), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(1));
    // Of another the last fragment overtakes the first: it is the one that spills.
    let other = Client([192, 0, 2, 10], 1);
    assert_eq!(fixture.fragment(other, UDP, false), Ok(3));
    assert_eq!(fixture.fragment(other, UDP, true), Ok(3));
    assert_eq!(fixture.datagram(other), Ok(3));
    assert_eq!(fixture.tracked_count(), 2);
    assert_eq!(fixture.counters(0), [2, 1, 0, 1, 0, 0]);
}

#[test]
fn without_the_flag_the_first_is_dropped_and_the_rest_the_hosts() {
    let fixture = served(SERVICE_BY_ADDRESS, SERVICE_BY_ADDRESS);
    for protocol in [TCP, UDP] {
        assert_eq!(fixture.fragment(client(1), protocol, true), Err(Verdict::Fragment));
        assert_eq!(fixture.fragment(client(1), protocol, false), Err(Verdict::LaterFragment));
    }
}

/// They have no number and no ports: nothing says which of the client's connections they are of.
#[test]
fn later_fragments_of_tcp_go_home_and_change_nothing() {
    let mut fixture = served(SERVED, 0);
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3, "it spilled");
    let remembered =
        |fixture: &Fixture| (fixture.fake.cells().collect::<Vec<_>>(), fixture.counters(0));
    let before = remembered(&fixture);
    assert_eq!(fixture.fragment(client(2), TCP, true), Ok(3), "the first bears its ports");
    assert_eq!(fixture.fragment(client(2), TCP, false), Ok(1));
    assert_eq!(fixture.fragment(client(1), TCP, false), Ok(1));
    assert_eq!(remembered(&fixture), before);
}

/// During a remap they go where the client's open connections go. They have no number, so no cell is taken for them.
#[test]
fn later_fragments_of_tcp_go_home_as_open_connections_do() {
    let mut fixture = served(SERVED, 0);
    assert_eq!(fixture.open(client(1), 100), 1);
    let turned = fixture.fake.add_version(&[1, 0], &[]);
    fixture.publish(PoolWord::new(1, turned));
    assert_eq!(fixture.fragment(client(1), TCP, false), Ok(1));
    assert_eq!(fixture.displaced_count(), 0, "a fragment has a cell");
    fixture.publish(PoolWord::new(turned, 0));
    assert_eq!(fixture.fragment(client(1), TCP, false), Ok(3));
}
