//! The displaced check: while it is off nothing is looked up; it is on before the first packet leaves for elsewhere.

use lb_common::{abi::limits::HANDSHAKE_LINES, flow_hash::FlowHash};

use lb_common_fake::fixture::{Client, Fixture, client};

#[test]
fn closed_and_opened_again_in_between() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    let away = |fixture: &Fixture| fixture.fake.pools[0].get().last_displaced;
    assert_eq!(fixture.open(client(1), 100), 1);
    assert!(!fixture.has_displaced());
    assert_eq!(away(&fixture), 0);
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    assert_eq!(away(&fixture), fixture.coarse().0, "before the SYN has left");
    assert!(fixture.has_displaced());
    assert_eq!(fixture.ack(client(2), 501), Ok(3));

    // Too early to clear; then the entry is in use; then it is idle for ten minutes.
    fixture.sleep(60);
    fixture.daemon();
    assert!(fixture.has_displaced());
    for _ in 0..3 {
        fixture.sleep(580);
        assert_eq!(fixture.ack(client(2), 40_000), Ok(3));
        fixture.daemon();
        assert!(fixture.has_displaced());
    }
    fixture.sleep(610);
    fixture.daemon();
    assert!(!fixture.has_displaced());

    // While it is shut, the port is used again and its connection is at home.
    assert_eq!(fixture.open(client(2), 3_000_000_000), 1);
    assert_eq!(fixture.syn(client(3), 0), Ok(3));
    assert!(fixture.has_displaced(), "on again, for client 3");
    assert_eq!(fixture.ack(client(1), 9_000), Ok(1));
    assert_eq!(fixture.ack(client(2), 3_000_009_000), Ok(1));
    assert_eq!(fixture.ack(client(2), 40_001), Ok(1), "of the connection before: long forgotten");
    assert_eq!(fixture.ack(client(3), 1), Ok(3));
    assert_eq!(fixture.displaced_count(), 1);
}

#[test]
fn without_limits_and_with_everybody_up_nothing_is_written() {
    let fixture = Fixture::two_regions();
    for port in 1..200 {
        assert_eq!(fixture.open(client(port), 7), 1);
    }
    assert_eq!(fixture.fake.handshakes.borrow().len(), 0);
    assert!(!fixture.has_displaced());
    assert_eq!(fixture.fake.events.borrow().len(), 0, "no displaced entry was even looked for");
    assert_eq!(fixture.counters(0), [199, 199, 0, 0, 0, 0]);
}

#[test]
fn a_daemon_that_is_dead_the_whole_time_moves_nobody() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    // Every two minutes: home has room for one, the next goes elsewhere, and last time's ports change
    // sides. The check is never turned off.
    for round in 0..100_u32 {
        let (first, second) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        let number = round * 40_000_000;
        assert_eq!(fixture.open(client(first), number), 1, "round {round}");
        assert_eq!(fixture.open(client(second), number), 3, "round {round}");
        for sequence in [number + 2_000, number + 20_000_000] {
            assert_eq!(fixture.ack(client(first), sequence), Ok(1), "round {round}");
            assert_eq!(fixture.ack(client(second), sequence), Ok(3), "round {round}");
        }
        fixture.sleep(120);
    }
    assert_eq!(fixture.displaced_count(), 2);
}

#[test]
fn a_repeated_syn_keeps_the_check_on_for_its_handshake() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    fixture.sleep(60);
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    fixture.sleep(6);
    fixture.daemon();
    assert!(fixture.has_displaced(), "66 s after the first SYN, 6 s after the second");
    assert_eq!(fixture.ack(client(2), 501), Ok(3));
    assert_eq!(fixture.ack(client(2), 900_000), Ok(3));
}

/// Clients whose handshake entries lie in one line.
fn of_one_line(fixture: &Fixture, count: usize) -> Vec<Client> {
    let hash = |client| FlowHash::new(&fixture.flow(client), &fixture.fake.descriptors[1].hash_key);
    let line = |client| hash(client).0 % u64::from(HANDSHAKE_LINES);
    let wanted = line(Client([192, 0, 2, 0], 0));
    let all =
        (0..200_u8).flat_map(|host| (0..=u16::MAX).map(move |p| Client([192, 0, 2, host], p)));
    all.filter(|&client| line(client) == wanted).take(count).collect()
}

#[test]
fn connections_in_one_line_of_records_do_not_mix() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    let clients = of_one_line(&fixture, 6);
    // The same number for all: only the flow tells them apart.
    assert_eq!(fixture.syn(clients[0], 77), Ok(1));
    for &client in &clients[1..4] {
        assert_eq!(fixture.syn(client, 77), Ok(3));
    }
    assert_eq!(fixture.fake.handshakes.borrow().len(), 4, "the line is full");
    assert_eq!(fixture.syn(clients[4], 77), Ok(3));
    for &client in &clients[1..5] {
        assert_eq!(
            fixture.ack(client, 78),
            Ok(3),
            "the entry that says home must be replaced first"
        );
    }
    assert_eq!(fixture.ack(clients[0], 78), Ok(1), "and did not need to stay");
    assert_eq!(fixture.displaced_count(), 4);
    // With nothing that says home the oldest goes: its connection has its displaced entry by now.
    fixture.sleep(3);
    assert_eq!(fixture.syn(clients[5], 77), Ok(3));
    assert_eq!(fixture.ack(clients[5], 78), Ok(3));
    for &client in &clients[1..5] {
        assert_eq!(fixture.ack(client, 900_000), Ok(3));
    }
    assert_eq!(fixture.fake.handshakes.borrow().len(), 4);
}

/// Clients of one line of handshake entries, whose connections go to the other region.
fn of_one_line_when_home_is_full(number: usize) -> (Fixture, Vec<Client>) {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(client(1), 77), Ok(1), "in another line");
    let clients = of_one_line(&fixture, number);
    (fixture, clients)
}

#[test]
fn connections_that_two_cpus_enter_in_one_cell_at_once_both_stay() {
    let (fixture, clients) = of_one_line_when_home_is_full(2);
    let before = fixture.fake.handshakes.borrow().clone();
    assert_eq!(fixture.syn(clients[0], 77), Ok(3));
    // As if this CPU had read the line before that.
    let after = fixture.fake.handshakes.replace(before.clone());
    let entry = after.iter().find(|(cell, _)| !before.contains_key(cell)).map(|(_, it)| *it);
    fixture.fake.written_meanwhile.set(entry);
    assert_eq!(fixture.syn(clients[1], 77), Ok(3));
    for client in clients {
        assert_eq!(fixture.ack(client, 78), Ok(3));
    }
    assert_eq!(fixture.displaced_count(), 2);
}

#[test]
fn a_cell_that_another_cpu_writes_at_this_moment_is_left_to_it() {
    let (fixture, clients) = of_one_line_when_home_is_full(5);
    for &client in &clients[..4] {
        assert_eq!(fixture.syn(client, 77), Ok(3));
    }
    // The first cell has the second word of another connection at home, but not yet its first one.
    let mut handshakes = fixture.fake.handshakes.borrow_mut();
    let (_, half) =
        handshakes.iter_mut().find(|((_, cell), it)| *cell == 0 && !it.is_home()).unwrap();
    half.decision ^= 1 << 60 | 1 << 23;
    let half = *half;
    drop(handshakes);
    assert!(half.is_home() && !half.is_whole());
    assert_eq!(fixture.syn(clients[4], 77), Ok(3));
    assert_eq!(fixture.fake.handshakes.borrow().values().filter(|it| **it == half).count(), 1);
    assert_eq!(fixture.ack(clients[4], 78), Ok(3));
}

#[test]
fn of_a_full_line_the_record_of_an_open_connection_goes_before_that_of_a_handshake() {
    let (fixture, clients) = of_one_line_when_home_is_full(5);
    for &client in &clients[..4] {
        assert_eq!(fixture.syn(client, 77), Ok(3));
    }
    // All within a second, so that none is older: the first one's ACK is still on its way.
    for &client in &clients[1..4] {
        assert_eq!(fixture.ack(client, 78), Ok(3));
    }
    assert_eq!(fixture.syn(clients[4], 77), Ok(3));
    for &client in &clients {
        assert_eq!(fixture.ack(client, 78), Ok(3));
    }
    assert_eq!(fixture.displaced_count(), 5);
}

#[test]
fn of_a_full_line_the_record_that_says_home_goes_before_older_ones() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    let clients = of_one_line(&fixture, 6);
    assert_eq!(fixture.syn(client(1), 77), Ok(1), "in another line");
    for &client in &clients[..2] {
        assert_eq!(fixture.syn(client, 77), Ok(3));
    }
    fixture.sleep(10);
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(clients[2], 77), Ok(1));
    for &client in &clients[3..5] {
        assert_eq!(fixture.syn(client, 77), Ok(3));
    }
    for client in [&clients[..2], &clients[3..5]].concat() {
        assert_eq!(fixture.ack(client, 78), Ok(3));
    }
    assert_eq!(fixture.ack(clients[2], 78), Ok(1));
}
