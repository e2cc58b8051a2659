//! Services whose hash leaves the client's port out.

use lb_common::abi::service::{SERVICE_BY_ADDRESS, SERVICE_TRACKED};

use crate::{
    twin::Twin,
    world::{Client, NONE, World, client},
};

fn by_address() -> World {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let twin = Twin::new(&[list(), list()], 4)
        .with_service("198.51.100.1", 80, 6, SERVICE_BY_ADDRESS)
        .with_service("198.51.100.1", 53, 17, SERVICE_BY_ADDRESS | SERVICE_TRACKED | 56 << 16);
    World::of(twin)
}

#[test]
fn two_connections_of_one_client_are_two() {
    let mut world = by_address();
    world.room_at_home(1);
    // The same number on both ports: the second is not a repeated first.
    assert_eq!(world.syn(client(1), 100), Ok(1));
    assert_eq!(world.syn(client(2), 100), Ok(3));
    assert_eq!(world.counters(0), [2, 1, 0, 1, 0, 0]);
    assert_eq!(world.ack(client(1), 101), Ok(1), "nor is its record the first one's");
    assert_eq!(world.ack(client(2), 101), Ok(3));
    assert_eq!(world.exception(client(1)), None);
    assert_eq!(world.exception(client(2)), Some((3, false)));
    for sequence in [50_000, 1_000_000, 4_294_967_000] {
        assert_eq!(world.ack(client(1), sequence), Ok(1));
        assert_eq!(world.ack(client(2), sequence), Ok(3));
    }
}

#[test]
fn a_tracked_client_is_one_flow_whatever_its_port() {
    let mut world = by_address();
    world.room_at_home(1);
    assert_eq!(world.datagram(client(1)), Ok(1));
    assert_eq!(world.datagram(client(2)), Ok(1), "the client is known");
    assert_eq!(world.datagram(Client([192, 0, 2, 10], 1)), Ok(3), "another is not");
    assert_eq!(world.datagram(Client([192, 0, 2, 10], 2)), Ok(3));
    assert_eq!(world.twin.tracked.borrow().len(), 2);
}
