//! The displaced check: while it is off nothing is looked up; it is on before the first packet leaves for elsewhere.

use lb_common_fake::{
    POOL,
    fixture::{Fixture, client},
};

#[test]
fn closed_and_opened_again_in_between() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    let away = |fixture: &Fixture| fixture.fake.pools[POOL as usize].get().last_displaced;
    assert_eq!(fixture.open(client(1), 100), 1);
    assert!(!fixture.has_displaced());
    assert_eq!(away(&fixture), 0);
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    assert_eq!(away(&fixture), fixture.coarse().0, "before the SYN has left");
    assert!(fixture.has_displaced());
    assert_eq!(fixture.ack(client(2), 501), Ok(3));

    // Too early to clear; then the cell is in use; then it is idle for twelve minutes.
    fixture.sleep(60);
    fixture.daemon();
    assert!(fixture.has_displaced());
    for _ in 0..3 {
        fixture.sleep(580);
        assert_eq!(fixture.ack(client(2), 40_000), Ok(3));
        fixture.daemon();
        assert!(fixture.has_displaced());
    }
    fixture.sleep(730);
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
    assert_eq!(fixture.fake.cells().filter(|(owner, _)| owner.0 != 0).count(), 0);
    assert!(!fixture.has_displaced());
    assert_eq!(fixture.fake.events.borrow().len(), 0, "no cell was even looked for");
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
        for sequence in [number + 2_000, number + 10_000_000] {
            assert_eq!(fixture.ack(client(first), sequence), Ok(1), "round {round}");
            assert_eq!(fixture.ack(client(second), sequence), Ok(3), "round {round}");
        }
        fixture.sleep(120);
    }
    // Two of each round of the last twelve minutes.
    assert_eq!(fixture.displaced_count(), 12);
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
