//! The gate: shut, nothing is remembered; it opens before the first packet leaves for elsewhere.

use lb_common::{abi::limits::RECORD_LINES, flow_hash::FlowHash};

use crate::world::{Client, World, client};

#[test]
fn closed_and_opened_again_in_between() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    let away = |world: &World| world.twin.pools[0].get().last_away;
    assert_eq!(world.open(client(1), 100), 1);
    assert!(world.is_gate_closed());
    assert_eq!(away(&world), 0);
    assert_eq!(world.syn(client(2), 500), Ok(3));
    assert_eq!(away(&world), world.coarse().0, "before the SYN has left");
    assert!(!world.is_gate_closed());
    assert_eq!(world.ack(client(2), 501), Ok(3));

    // Too early to clear; then the entry is in use; then it is idle for ten minutes.
    world.sleep(60);
    world.daemon();
    assert!(!world.is_gate_closed());
    for _ in 0..3 {
        world.sleep(580);
        assert_eq!(world.ack(client(2), 40_000), Ok(3));
        world.daemon();
        assert!(!world.is_gate_closed());
    }
    world.sleep(610);
    world.daemon();
    assert!(world.is_gate_closed());

    // While it is shut, the port is used again and its connection is at home.
    assert_eq!(world.open(client(2), 3_000_000_000), 1);
    assert_eq!(world.syn(client(3), 0), Ok(3));
    assert!(!world.is_gate_closed(), "open again, for client 3");
    assert_eq!(world.ack(client(1), 9_000), Ok(1));
    assert_eq!(world.ack(client(2), 3_000_009_000), Ok(1));
    assert_eq!(world.ack(client(2), 40_001), Ok(1), "of the connection before: long forgotten");
    assert_eq!(world.ack(client(3), 1), Ok(3));
    assert_eq!(world.exceptions(), 1);
}

#[test]
fn without_limits_and_with_everybody_up_nothing_is_written() {
    let world = World::two_regions();
    for port in 1..200 {
        assert_eq!(world.open(client(port), 7), 1);
    }
    assert_eq!(world.twin.records.borrow().len(), 0);
    assert!(world.is_gate_closed());
    assert_eq!(world.twin.events.borrow().len(), 0, "no exception was even looked for");
    assert_eq!(world.counters(0), [199, 199, 0, 0, 0, 0]);
}

#[test]
fn a_daemon_that_is_dead_the_whole_time_moves_nobody() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    // Every two minutes: home has room for one, the next goes elsewhere, and last time's ports change
    // sides. Nobody ever clears the gate.
    for round in 0..100_u32 {
        let (first, second) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        let number = round * 40_000_000;
        assert_eq!(world.open(client(first), number), 1, "round {round}");
        assert_eq!(world.open(client(second), number), 3, "round {round}");
        for sequence in [number + 2_000, number + 20_000_000] {
            assert_eq!(world.ack(client(first), sequence), Ok(1), "round {round}");
            assert_eq!(world.ack(client(second), sequence), Ok(3), "round {round}");
        }
        world.sleep(120);
    }
    assert_eq!(world.exceptions(), 2);
}

#[test]
fn a_repeated_syn_holds_the_gate_open_for_its_handshake() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    assert_eq!(world.open(client(1), 100), 1);
    assert_eq!(world.syn(client(2), 500), Ok(3));
    world.sleep(60);
    assert_eq!(world.syn(client(2), 500), Ok(3));
    world.sleep(6);
    world.daemon();
    assert!(!world.is_gate_closed(), "66 s after the first SYN, 6 s after the second");
    assert_eq!(world.ack(client(2), 501), Ok(3));
    assert_eq!(world.ack(client(2), 900_000), Ok(3));
}

/// Clients whose records lie in one line.
fn of_one_line(world: &World, count: usize) -> Vec<Client> {
    let hash = |client| FlowHash::of(&world.flow(client), &world.twin.descriptors[1].hash_key);
    let line = |client| hash(client).0 % u64::from(RECORD_LINES);
    let wanted = line(Client([192, 0, 2, 0], 0));
    let all =
        (0..200_u8).flat_map(|host| (0..=u16::MAX).map(move |p| Client([192, 0, 2, host], p)));
    all.filter(|&client| line(client) == wanted).take(count).collect()
}

#[test]
fn connections_in_one_line_of_records_do_not_mix() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    let clients = of_one_line(&world, 6);
    // The same number for all: only the flow tells them apart.
    assert_eq!(world.syn(clients[0], 77), Ok(1));
    for &client in &clients[1..4] {
        assert_eq!(world.syn(client, 77), Ok(3));
    }
    assert_eq!(world.twin.records.borrow().len(), 4, "the line is full");
    assert_eq!(world.syn(clients[4], 77), Ok(3));
    for &client in &clients[1..5] {
        assert_eq!(world.ack(client, 78), Ok(3), "what said home had to go first");
    }
    assert_eq!(world.ack(clients[0], 78), Ok(1), "and did not need to stay");
    assert_eq!(world.exceptions(), 4);
    // With nothing that says home the oldest goes: its connection has its exception by now.
    world.sleep(3);
    assert_eq!(world.syn(clients[5], 77), Ok(3));
    assert_eq!(world.ack(clients[5], 78), Ok(3));
    for &client in &clients[1..5] {
        assert_eq!(world.ack(client, 900_000), Ok(3));
    }
    assert_eq!(world.twin.records.borrow().len(), 4);
}

#[test]
fn of_a_full_line_the_record_that_says_home_goes_before_older_ones() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    let clients = of_one_line(&world, 6);
    assert_eq!(world.syn(client(1), 77), Ok(1), "in another line");
    for &client in &clients[..2] {
        assert_eq!(world.syn(client, 77), Ok(3));
    }
    world.sleep(10);
    world.room_at_home(1);
    assert_eq!(world.syn(clients[2], 77), Ok(1));
    for &client in &clients[3..5] {
        assert_eq!(world.syn(client, 77), Ok(3));
    }
    for client in [&clients[..2], &clients[3..5]].concat() {
        assert_eq!(world.ack(client, 78), Ok(3));
    }
    assert_eq!(world.ack(clients[2], 78), Ok(1));
}
