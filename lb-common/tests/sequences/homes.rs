//! Changes of home: the former meaning holds until the old connections are gone or remembered.

use lb_common::abi::{
    event::Event,
    member::MemberState::{Dead, Up},
    meter::{ADOPTIONS_V4, LimitWord},
    pool::{PoolLine, PoolWord},
};

use crate::world::{World, client};

/// Descriptor 2 asks the regions the other way round: home is backend 3, then 4.
fn turned() -> World {
    let mut world = World::two_regions();
    let mut other = world.twin.descriptors[1];
    other.groups.swap(0, 1);
    let first = world.twin.groups[other.groups[0] as usize];
    (other.home, other.home_meter) = (first.head, first.meter);
    world.twin.descriptors.push(other);
    world
}

fn publish(world: &World, word: PoolWord) {
    let line = &world.twin.pools[0];
    line.set(PoolLine { word: word.0, ..line.get() });
}

#[test]
fn open_connections_stay_at_their_former_home() {
    let mut world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    publish(&world, PoolWord::new(2, 1));
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    assert_eq!(world.exceptions(), 0, "by its former home alone");
    // A new one is at home by the current meaning, and away by the former: it is remembered.
    assert_eq!(world.open(client(2), 100), 3);
    assert!(!world.is_gate_closed());
    assert_eq!(world.exception(client(2)), Some((3, false)));
    assert_eq!(world.ack(client(2), 80_000), Ok(3));
    // The former home dies: to the current one. It returns: its connections are there again.
    world.set(0, 0, Dead);
    assert_eq!(world.ack(client(1), 81_000), Ok(3));
    assert_eq!(world.ack(client(2), 81_000), Ok(3));
    world.set(0, 0, Up);
    assert_eq!(world.ack(client(2), 82_000), Ok(3));
}

#[test]
fn what_is_used_while_adoption_lasts_outlives_the_former_home() {
    let mut world = turned();
    for port in [1, 2] {
        assert_eq!(world.open(client(port), 100), 1);
    }
    publish(&world, PoolWord::new(2, 1));
    assert_eq!(world.open(client(3), 100), 3);
    world.events();
    publish(&world, PoolWord::new(2, 1).adopting());
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    assert_eq!(world.events(), [(Event::Adopted, 1)]);
    assert_eq!(world.exception(client(1)), Some((1, false)));
    assert_eq!(world.ack(client(1), 81_000), Ok(1));
    assert_eq!(world.events(), [], "once");
    publish(&world, PoolWord::new(2, 0));
    assert_eq!(world.ack(client(1), 82_000), Ok(1));
    assert_eq!(world.ack(client(3), 82_000), Ok(3));
    assert_eq!(world.ack(client(2), 82_000), Ok(3), "idle all the while: this is documented");
}

#[test]
fn adoption_has_a_budget_of_its_own() {
    let mut world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    publish(&world, PoolWord::new(2, 1).adopting());
    world.twin.meters[ADOPTIONS_V4 as usize].0.set(LimitWord::CLOSED);
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    assert_eq!(world.events(), [(Event::AdoptionRefused, 1)]);
    assert_eq!(world.exceptions(), 0);
    world.twin.meters[ADOPTIONS_V4 as usize].0.set(LimitWord::UNLIMITED);
    assert_eq!(world.ack(client(1), 80_001), Ok(1));
    assert_eq!(world.events(), [(Event::Adopted, 1)]);
}

#[test]
fn a_handshake_across_a_change_of_home_stays_where_it_began() {
    let mut world = turned();
    world.room_at_home(2);
    assert_eq!(world.syn(client(1), 100), Ok(1), "at home");
    assert_eq!(world.syn(client(2), 100), Ok(1));
    assert_eq!(world.syn(client(3), 100), Ok(3), "spilled");
    publish(&world, PoolWord::new(2, 1));
    assert_eq!(world.syn(client(2), 100), Ok(1), "repeated");
    assert_eq!(world.syn(client(3), 100), Ok(3));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(world.ack(client(port), 101), Ok(at));
        assert_eq!(world.ack(client(port), 900_000), Ok(at));
    }
    // A connection of before, and one that is at home by both meanings or by the current alone.
    publish(&world, PoolWord::new(2, 1).adopting());
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(world.ack(client(port), 901_000), Ok(at));
    }
    publish(&world, PoolWord::new(2, 0));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(world.ack(client(port), 902_000), Ok(at));
    }
}

#[test]
fn a_late_packet_that_is_adopted_leaves_the_next_connection_alone() {
    let world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    publish(&world, PoolWord::new(2, 1));
    assert_eq!(world.syn(client(1), 4_000_000), Ok(3), "the port's next connection");
    publish(&world, PoolWord::new(2, 1).adopting());
    assert_eq!(world.ack(client(1), 80_000), Ok(1), "the last of the one before");
    assert_eq!(world.exception(client(1)), Some((1, true)));
    assert_eq!(world.ack(client(1), 4_000_001), Ok(3));
    assert_eq!(world.ack(client(1), 4_900_000), Ok(3));
}

#[test]
fn adoption_opens_the_gate_that_its_exceptions_are_behind() {
    let world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    publish(&world, PoolWord::new(2, 1));
    publish(&world, PoolWord::new(2, 1).adopting());
    assert!(world.is_gate_closed(), "nothing was placed anywhere yet");
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    assert!(!world.is_gate_closed());
    publish(&world, PoolWord::new(2, 0));
    world.sleep(70);
    world.daemon();
    assert_eq!(world.ack(client(1), 81_000), Ok(1));
}
