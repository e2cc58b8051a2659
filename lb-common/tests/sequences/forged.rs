//! A forged SYN moves no connection.

use lb_common::{
    abi::counter::Event,
    flow_table::{Owner, Place, State},
};

use crate::flow_table::stranger;
use lb_common_fake::fixture::{Fixture, client};

#[test]
fn a_forged_syn_does_not_move_a_connection_at_home() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.ack(client(1), 1_000_000), Ok(1));
    for number in [0, 900_000, 2_000_000_000, 3_000_000_000] {
        assert_eq!(
            fixture.syn(client(1), number),
            Ok(3),
            "home is full, so it is placed elsewhere"
        );
    }
    for sequence in [1_000_001, 1_016_384, 1_100_000] {
        assert_eq!(fixture.ack(client(1), sequence), Ok(1));
    }
}

#[test]
fn a_forged_syn_close_ahead_of_a_stream_goes_as_the_stream_comes() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.ack(client(1), 1_000_000), Ok(1));
    assert_eq!(fixture.syn(client(1), 1_060_000), Ok(3));
    // 1,060,000 - 65,536 = 994,464: the stream is close already.
    assert_eq!(fixture.ack(client(1), 1_001_460), Ok(1));
    assert_eq!(fixture.events(), [(Event::FlowTaken, 2), (Event::SynDropped, 1)]);
    for sequence in (1_050_000..1_090_000).step_by(1_460) {
        assert_eq!(fixture.ack(client(1), sequence), Ok(1));
    }
    assert_eq!(fixture.displaced_count(), 0);
}

#[test]
fn a_forged_syn_does_not_move_a_connection_with_a_displaced_entry() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3);
    fixture.sleep(61);
    fixture.events();
    assert_eq!(fixture.syn(client(2), 7_000_000), Ok(1), "home has room for it");
    assert_eq!(fixture.displaced(client(2)), Some(3));
    for sequence in [20_000, 600_000, 4_200_000_000] {
        assert_eq!(fixture.ack(client(2), sequence), Ok(3), "it does not fit the SYN");
    }
    assert_eq!(fixture.displaced(client(2)), Some(3));
    fixture.sleep(66);
    // The forger's number is passed by when the SYN's cell is gone.
    assert_eq!(fixture.ack(client(2), 7_000_001), Ok(3));
    assert_eq!(fixture.displaced(client(2)), Some(3));
    assert_eq!(fixture.events(), [(Event::FlowTaken, 1)]);
}

#[test]
fn two_hundred_thousand_random_syns_move_none_of_five_hundred_spilled_connections() {
    let mut fixture = Fixture::two_regions();
    fixture.limit(0, 10, 10);
    let number = |n: u16| u32::from(n) * 8_000_000;
    let spilled: Vec<u16> =
        (1..=510).filter(|&n| fixture.open(client(n), number(n)) == 3).collect();
    assert_eq!(spilled, (11..=510).collect::<Vec<_>>(), "the first ten fit the burst");
    assert_eq!(fixture.displaced_count(), 500);
    let mut state = 0x2545_f491_4f6c_dd1d;
    for n in 0..200_000_u64 {
        let from = stranger(&mut state);
        assert!(fixture.syn(from, (state >> 11) as u32).is_ok());
        fixture.sleep_ns(5_000); // 200,000 a second.
        if n % 400 == 399 {
            let at = spilled[n as usize / 400];
            assert_eq!(fixture.ack(client(at), number(at) + n as u32), Ok(3), "after {n} SYNs");
        }
    }
    let open = |(owner, _): &(Owner, Place)| owner.state() == Some(State::Open) && owner.0 != 0;
    assert_eq!(fixture.fake.cells().filter(open).count(), 500, "SYNs have taken no open cell");
}

#[test]
fn a_flood_from_the_address_of_a_connection_does_not_move_it_either() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.open(client(2), 500), 3);
    // Numbers that are away from both streams: 2^32 / 1000 apart.
    for n in 1..1_000_u32 {
        for port in [1, 2] {
            fixture.syn(client(port), n * 4_294_967).unwrap();
        }
    }
    assert_eq!(fixture.ack(client(1), 40_000), Ok(1));
    assert_eq!(fixture.ack(client(2), 40_000), Ok(3));
}
