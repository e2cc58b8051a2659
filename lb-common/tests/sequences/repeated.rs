//! A SYN that is repeated is one connection.

use lb_common::abi::{counter::Event, member::Accepts, next_hop::AWAITED, verdict::Verdict};

use lb_common_fake::fixture::{ACK, Fixture, client};

#[test]
fn a_late_answer_is_answered_by_the_host_that_gave_it() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(client(1), 100), Ok(1), "the one connection that home has room for");
    assert_eq!(fixture.syn(client(2), 500), Ok(3), "home is full");
    let spent = (fixture.arrival(0), fixture.arrival(1));
    fixture.sleep(61); // Home has room again, of which the repeated SYN takes nothing.
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    assert_eq!((fixture.arrival(0), fixture.arrival(1)), spent, "no second token anywhere");
    assert_eq!(fixture.counters(0), [2, 1, 0, 1, 0, 0], "counted once, at the first SYN");
    assert_eq!(fixture.counters(1), [1, 1, 1, 0, 0, 0]);
    assert_eq!(fixture.events(), [(Event::SynRepeated, 1), (Event::FlowTaken, 2)]);
    // The first SYN-ACK arrives at last, two minutes after the first SYN.
    fixture.sleep(59);
    assert_eq!(fixture.ack(client(2), 501), Ok(3), "a repeated SYN makes its cell young again");
    assert_eq!(fixture.events(), []);
    assert_eq!(fixture.syn(client(3), 900), Ok(1), "the token is still there");
}

#[test]
fn a_copy_of_a_syn_that_comes_late_leaves_the_open_connection_alone() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(client(1), 100), Ok(1), "the one connection that home has room for");
    assert_eq!(fixture.open(client(2), 500), 3);
    fixture.sleep(61); // Home has room again.
    assert_eq!(fixture.ack(client(2), 501), Ok(3));
    let counters = (fixture.counters(0), fixture.counters(1));
    assert_eq!(fixture.syn(client(2), 500), Ok(3), "it is the same connection's");
    assert_eq!((fixture.counters(0), fixture.counters(1)), counters);
    assert_eq!(fixture.displaced(client(2)), Some(3), "still open");
    assert_eq!(fixture.ack(client(2), 600), Ok(3));
    fixture.sleep(70);
    assert_eq!(fixture.ack(client(2), 700), Ok(3));
}

#[test]
fn a_repeat_at_home_takes_no_token_either() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    for _ in 0..5 {
        assert_eq!(fixture.syn(client(1), 100), Ok(1));
        fixture.sleep(1);
    }
    assert_eq!(fixture.ack(client(1), 101), Ok(1));
    assert_eq!(fixture.counters(0), [1, 1, 0, 0, 0, 0]);
    assert!(!fixture.has_displaced(), "none was displaced");
}

#[test]
fn a_repeat_leaves_a_host_that_takes_no_new_connections() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    fixture.open(client(1), 100);
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    fixture.set(1, 0, Accepts::OpenOnly);
    assert_eq!(fixture.syn(client(2), 500), Ok(4), "the other one may never answer");
    // The same second and the same number: only one of the two decisions holds.
    assert_eq!(fixture.ack(client(2), 501), Ok(4));
    assert_eq!(fixture.displaced(client(2)), Some(4));
}

#[test]
fn a_repeat_leaves_a_home_that_hangs() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    fixture.set(0, 0, Accepts::OpenOnly);
    assert_eq!(fixture.syn(client(1), 100), Ok(3), "its region has no room for a second one");
    assert_eq!(fixture.ack(client(1), 101), Ok(3));
    fixture.set(0, 0, Accepts::All);
    assert_eq!(fixture.ack(client(1), 900_000), Ok(3));
    assert_eq!(fixture.displaced_count(), 1, "one cell, which is no longer of home");
}

#[test]
fn a_late_copy_of_a_syn_leaves_an_open_connection_where_it_is_also_if_that_takes_no_new_ones() {
    for (state, next_hop, due) in
        [(Accepts::OpenOnly, 1, Ok(3)), (Accepts::All, AWAITED, Err(Verdict::NextHopUnresolved))]
    {
        let mut fixture = Fixture::two_regions();
        fixture.room_at_home(1);
        fixture.open(client(1), 100);
        assert_eq!(fixture.open(client(2), 500), 3);
        fixture.set(1, 0, state);
        fixture.fake.set_next_hop(1, 0, next_hop);
        assert_eq!(fixture.syn(client(2), 500), due);
        fixture.fake.set_next_hop(1, 0, 1);
        assert_eq!(fixture.ack(client(2), 900), Ok(3));
    }
}

#[test]
fn a_repeat_decided_anew_in_the_same_second_is_not_the_first_decision() {
    // Home dies between SYN and repeat, and its alternate is unfit: the SYN goes to the other region,
    // where a packet without memory would not.
    let mut fixture = Fixture::two_regions();
    fixture.limit(0, 10, 10);
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    fixture.set(0, 0, Accepts::Nothing);
    fixture.set(0, 1, Accepts::OpenOnly);
    assert_eq!(fixture.syn(client(1), 100), Ok(3));
    assert_eq!(fixture.ack(client(1), 101), Ok(3));
    assert_eq!(fixture.ack(client(1), 900_000), Ok(3));
}

#[test]
fn another_number_is_another_connection() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(2);
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    assert_eq!(fixture.syn(client(1), 101), Ok(1));
    assert_eq!(fixture.syn(client(1), 102), Ok(3), "the third is over the limit");
    assert_eq!(fixture.counters(0), [3, 2, 0, 1, 0, 0]);
}

#[test]
fn the_cell_of_a_syn_lasts_as_long_as_its_handshake() {
    // A displaced connection is long idle; its port is used again while home has room, and the
    // server answers only the SYN that is repeated after 63 s.
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    fixture.open(client(1), 100);
    assert_eq!(fixture.open(client(2), 500), 3);
    fixture.sleep(61);
    assert_eq!(fixture.syn(client(2), 900_000), Ok(1));
    assert_eq!(fixture.displaced(client(2)), Some(3));
    for pause in [1, 2, 4, 8, 16, 32] {
        fixture.sleep(pause);
        assert_eq!(fixture.syn(client(2), 900_000), Ok(1));
    }
    fixture.sleep(5);
    assert_eq!(fixture.send(client(2), ACK, 900_001), Ok(1), "68 s after the first SYN");
    assert_eq!(fixture.displaced(client(2)), Some(1));
}

#[test]
fn a_keep_alive_with_the_number_of_its_own_syn_says_nothing() {
    // RFC 9293, 3.8.4: SEG.SEQ = SND.NXT - 1, which is the SYN's number while nothing was sent.
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    fixture.open(client(1), 100);
    assert_eq!(fixture.open(client(2), 500), 3);
    fixture.events();
    assert_eq!(fixture.ack(client(2), 500), Ok(3), "by its cell");
    // At home, seen with the displaced check on.
    assert_eq!(fixture.ack(client(1), 100), Ok(1));
    assert_eq!(fixture.ack(client(1), 101), Ok(1));
    assert_eq!(fixture.events(), [], "no cell went and none came");
}

#[test]
fn a_keep_alive_does_not_drop_the_cell_that_its_connection_lives_by() {
    // Nothing but the SYN's cell says where the connection is. A packet at the SYN's own number says nothing of it, and
    // goes home; it is no stream that nears the number.
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    fixture.open(client(1), 100);
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    assert_eq!(fixture.ack(client(2), 500), Ok(1));
    assert_eq!(fixture.ack(client(2), 501), Ok(3));
    assert_eq!(fixture.ack(client(2), 500), Ok(3), "it is open");
}
