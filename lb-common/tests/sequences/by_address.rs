//! Services whose hash leaves the client's port out.

use lb_common::abi::service::{SERVICE_BY_ADDRESS, SERVICE_TRACKED};

use lb_common_fake::{
    FakeTables,
    fixture::{Client, Fixture, NONE, client},
};

fn by_address() -> Fixture {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let fake = FakeTables::new(&[list(), list()], 4)
        .with_service("198.51.100.1", 80, 6, SERVICE_BY_ADDRESS)
        .with_service("198.51.100.1", 53, 17, SERVICE_BY_ADDRESS | SERVICE_TRACKED | 56 << 16);
    Fixture::with(fake)
}

#[test]
fn two_connections_of_one_client_are_two() {
    let mut fixture = by_address();
    fixture.room_at_home(1);
    // The same number on both ports: the second is not a repeated first.
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    assert_eq!(fixture.syn(client(2), 100), Ok(3));
    assert_eq!(fixture.counters(0), [2, 1, 0, 1, 0, 0]);
    assert_eq!(fixture.ack(client(1), 101), Ok(1), "nor is its cell the first one's");
    assert_eq!(fixture.ack(client(2), 101), Ok(3));
    assert_eq!(fixture.displaced(client(2)), Some(3));
    for sequence in [50_000, 1_000_000, 1_900_000] {
        assert_eq!(fixture.ack(client(1), sequence), Ok(1));
        assert_eq!(fixture.ack(client(2), sequence), Ok(3));
    }
}

#[test]
fn a_tracked_client_is_one_flow_whatever_its_port() {
    let mut fixture = by_address();
    fixture.room_at_home(1);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    assert_eq!(fixture.datagram(client(2)), Ok(1), "the client is known");
    assert_eq!(fixture.datagram(Client([192, 0, 2, 10], 1)), Ok(3), "another is not");
    assert_eq!(fixture.datagram(Client([192, 0, 2, 10], 2)), Ok(3));
    assert_eq!(fixture.tracked_count(), 2);
}
