//! A port that is used again is another connection, and the old one's memory does not catch it.

use lb_common::abi::{
    counter::Event,
    limiter::LimitWord,
    member::Accepts::{All, OpenOnly},
};

use lb_common_fake::fixture::{ACK, FIN, Fixture, RST, client};

/// Client 2's connection is displaced, and home has room again.
fn spilled() -> Fixture {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3);
    assert_eq!(fixture.ack(client(2), 900), Ok(3));
    fixture.sleep(61);
    fixture.events();
    fixture
}

/// As a client does that opens a connection after the other: Linux opens the next one 65,536 beyond the end of the last one,
/// out of TIME_WAIT. Each leaves a cell for two minutes, and two buckets have eight.
#[test]
fn a_port_that_is_used_a_hundred_times_a_minute() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    let mut number = 7_000_u32;
    for round in 0..100 {
        // Of each few one is at home.
        let at = if round % 5 == 4 { 1 } else { 3 };
        fixture.set(0, 0, if at == 1 { All } else { OpenOnly });
        fixture.set(0, 1, if at == 1 { All } else { OpenOnly });
        fixture.set_limit(0, LimitWord::UNLIMITED);
        assert_eq!(fixture.syn(client(2), number), Ok(at), "{round}");
        for beyond in [1, 1, 19, 1_000, 90_000] {
            assert_eq!(fixture.ack(client(2), number + beyond), Ok(at), "{round}: {beyond}");
        }
        assert_eq!(fixture.send(client(2), ACK | FIN, number + 90_000), Ok(at), "{round}");
        assert_eq!(fixture.ack(client(2), number + 90_001), Ok(at), "{round}");
        number += 90_001 + 65_537;
        fixture.sleep_ns(600_000_000);
    }
    assert_eq!(fixture.counted(Event::FlowNoRoom), 0);
}

/// The port's next connection goes home, and whatever is left of the old one where it was.
fn next_connection_is_at_home(fixture: &mut Fixture) {
    assert_eq!(fixture.syn(client(2), 4_000_000), Ok(1));
    assert_eq!(fixture.ack(client(2), 930_000), Ok(3), "a late packet of the old connection");
    assert_eq!(fixture.ack(client(2), 4_000_001), Ok(1));
    assert_eq!(fixture.events(), [(Event::FlowTaken, 1)]);
    for sequence in [4_001_000, 4_500_000, 900_000_000] {
        assert_eq!(fixture.ack(client(2), sequence), Ok(1));
    }
    // Once the old one's cell is over, that of one at home is erased by its next packet.
    fixture.sleep(660);
    assert_eq!(fixture.ack(client(2), 4_501_000), Ok(1));
    fixture.sleep(70);
    assert_eq!(fixture.ack(client(2), 4_502_000), Ok(1));
    assert_eq!(fixture.displaced_count(), 0);
    fixture.daemon();
    assert!(!fixture.has_displaced());
    assert_eq!(fixture.ack(client(2), 900_001_000), Ok(1));
}

#[test]
fn after_a_fin() {
    let mut fixture = spilled();
    assert_eq!(fixture.send(client(2), FIN, 901), Ok(3));
    assert_eq!(fixture.displaced(client(2)), Some(3), "no host may have got the FIN");
    next_connection_is_at_home(&mut fixture);
}

#[test]
fn after_a_reset() {
    let mut fixture = spilled();
    assert_eq!(fixture.send(client(2), RST, 901), Ok(3));
    assert_eq!(fixture.displaced(client(2)), Some(3), "a RST may be forged");
    next_connection_is_at_home(&mut fixture);
}

#[test]
fn after_silence() {
    let fixture = spilled();
    fixture.sleep(3_600);
    assert_eq!(
        fixture.displaced(client(2)),
        None,
        "the daemon was away, and it is over all the same"
    );
    assert_eq!(fixture.open(client(2), 4_000_000), 1);
}

#[test]
fn after_silence_and_a_daemon_that_forgets() {
    let fixture = spilled();
    fixture.sleep(600);
    fixture.daemon();
    assert_eq!(fixture.displaced_count(), 1, "used within ten minutes");
    fixture.sleep(130);
    fixture.daemon();
    assert_eq!(fixture.displaced_count(), 0);
    assert!(!fixture.has_displaced());
    assert_eq!(fixture.open(client(2), 4_000_000), 1);
}

#[test]
fn from_home_to_elsewhere() {
    let fixture = spilled();
    assert_eq!(fixture.send(client(1), FIN, 101), Ok(1));
    assert_eq!(fixture.open(client(3), 0), 1, "takes the minute's token");
    assert_eq!(fixture.syn(client(1), 7_000_000), Ok(3));
    assert_eq!(fixture.ack(client(1), 102), Ok(1), "the last of the old one");
    assert_eq!(fixture.ack(client(1), 7_000_001), Ok(3));
    assert_eq!(fixture.ack(client(1), 8_000_000), Ok(3));
}

#[test]
fn out_of_time_wait() {
    let fixture = spilled();
    assert_eq!(fixture.send(client(1), FIN, 101), Ok(1));
    assert_eq!(fixture.open(client(3), 0), 1, "takes the minute's token");
    // What Linux adds to the end of the connection in TIME_WAIT (tcp_twsk_unique): 65,535 + 2.
    let (end, number) = (102, 102 + 65_537);
    assert_eq!(fixture.syn(client(1), number), Ok(3));
    assert_eq!(fixture.ack(client(1), end), Ok(1), "an ACK of the old one, delayed");
    assert_eq!(fixture.ack(client(1), number + 1), Ok(3));
    assert_eq!(fixture.ack(client(1), number + 100_000), Ok(3));
}

#[test]
fn a_late_packet_that_fits_the_old_record_leaves_the_entry_contested() {
    // All within the life of the first half-open cell: away, closed, used again while home has room.
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.sleep(50);
    assert_eq!(fixture.open(client(2), 500), 3);
    assert_eq!(fixture.send(client(2), FIN, 900), Ok(3));
    fixture.sleep(11);
    assert_eq!(fixture.syn(client(2), 4_000_000), Ok(1));
    assert_eq!(fixture.send(client(2), FIN, 900), Ok(3), "the FIN again, after the next SYN");
    assert_eq!(fixture.displaced(client(2)), Some(3));
    assert_eq!(fixture.ack(client(2), 4_000_001), Ok(1));
    assert_eq!(fixture.ack(client(2), 4_800_000), Ok(1));
}

#[test]
fn a_reset_opens_nothing() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    // A client that resets what it did not ask for.
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    assert_eq!(fixture.send(client(2), RST, 501), Ok(3), "it goes where the SYN went");
    fixture.sleep(66);
    assert_eq!(fixture.displaced(client(2)), None, "the connection was never open");
    // Two connections of the port: a RST of either goes where that is, and ends neither.
    assert_eq!(fixture.open(client(3), 0), 1, "takes the minute's token");
    assert_eq!(fixture.open(client(2), 70_000), 3);
    fixture.sleep(61);
    assert_eq!(fixture.syn(client(2), 4_000_000), Ok(1));
    assert_eq!(fixture.send(client(2), RST, 4_000_001), Ok(1), "of the new one");
    assert_eq!(fixture.send(client(2), RST, 70_001), Ok(3), "of the old one");
    assert_eq!(fixture.ack(client(2), 70_002), Ok(3));
    assert_eq!(fixture.ack(client(2), 4_000_001), Ok(1));
}

#[test]
fn the_host_of_the_next_syn_gets_the_answer_that_ends_its_time_wait() {
    // The first connection was at home and left no trace, the second elsewhere. Home has the first one in TIME_WAIT and
    // nothing that listens, so it answers the third one's SYN by the last ACK of the first, and the client that by a
    // RST: until home has it, it answers no repeated SYN otherwise.
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.send(client(1), FIN, 900), Ok(1));
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.open(client(1), 40_000_000), 2);
    assert_eq!(fixture.send(client(1), FIN, 40_000_900), Ok(2));
    fixture.set(0, 0, All);
    fixture.sleep(4);
    assert_eq!(fixture.syn(client(1), 80_000_000), Ok(1));
    assert_eq!(fixture.displaced(client(1)), Some(2));
    assert_eq!(fixture.send(client(1), RST, 901), Ok(1));
    assert_eq!(fixture.displaced(client(1)), Some(2), "a RST may be forged");
    assert_eq!(fixture.send(client(1), RST | ACK, 901), Ok(2), "it answers nothing");
    assert_eq!(fixture.send(client(1), RST, 40_000_901), Ok(2), "of the second one");
    // What comes later may be of any connection of the port.
    fixture.sleep(3);
    assert_eq!(fixture.send(client(1), RST, 901), Ok(2));
    assert_eq!(fixture.syn(client(1), 80_000_000), Ok(1));
    assert_eq!(
        fixture.send(client(1), RST, 901),
        Ok(1),
        "the SYN was repeated, and so is the answer"
    );
    assert_eq!(fixture.ack(client(1), 80_000_001), Ok(1));
    assert_eq!(fixture.displaced(client(1)), Some(1));
}

#[test]
fn the_end_of_an_old_stream_close_below_does_not_drop_the_new_record() {
    // Linux begins the next connection of a recycled port 65,537 beyond the old one's end
    // (tcp_v4_connect), and answers a FIN of the old one that is still under way with a RST at its end.
    for last in [RST, FIN] {
        let mut fixture = Fixture::two_regions();
        fixture.room_at_home(1);
        assert_eq!(fixture.open(client(1), 100), 1);
        assert_eq!(fixture.ack(client(1), 20_000), Ok(1));
        assert_eq!(fixture.syn(client(1), 85_537), Ok(3));
        assert_eq!(fixture.send(client(1), last, 20_000), Ok(1));
        assert_eq!(fixture.ack(client(1), 85_538), Ok(3));
        assert_eq!(fixture.ack(client(1), 990_000), Ok(3));
    }
}

#[test]
fn of_two_numbers_close_together_the_later_connection_is_meant() {
    // Used again within the same second, 1,000 further on.
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(client(1), 5_000), Ok(1));
    assert_eq!(fixture.send(client(1), RST, 5_001), Ok(1));
    assert_eq!(fixture.syn(client(1), 6_000), Ok(3));
    assert_eq!(fixture.ack(client(1), 6_001), Ok(3));
    assert_eq!(fixture.ack(client(1), 6_000_000), Ok(3));
}

#[test]
fn the_end_of_the_first_of_two_connections_goes_where_that_was() {
    for pause in [0, 2] {
        let mut fixture = Fixture::two_regions();
        fixture.room_at_home(1);
        assert_eq!(fixture.syn(client(1), 500), Ok(1));
        assert_eq!(fixture.send(client(1), RST, 501), Ok(1));
        fixture.sleep(pause);
        assert_eq!(fixture.open(client(1), 4_000_000), 3);
        assert_eq!(fixture.displaced(client(1)), Some(3));
        assert_eq!(fixture.send(client(1), FIN, 501), Ok(1));
        assert_eq!(fixture.ack(client(1), 4_800_000), Ok(3));
    }
}

#[test]
fn of_three_connections_the_last_is_meant() {
    // The second one's ACK comes when the third has sent its SYN.
    let mut fixture = Fixture::two_regions();
    fixture.set_limit(0, LimitWord::CLOSED);
    assert_eq!(fixture.open(client(1), 100), 3);
    fixture.set_limit(0, LimitWord::UNLIMITED);
    assert_eq!(fixture.syn(client(1), 40_000_000), Ok(1));
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.syn(client(1), 80_000_000), Ok(2));
    assert_eq!(fixture.ack(client(1), 40_000_001), Ok(1));
    assert_eq!(fixture.ack(client(1), 80_000_001), Ok(2));
    assert_eq!(fixture.ack(client(1), 90_000_000), Ok(2));
}
