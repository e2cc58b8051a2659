//! Remaps: open connections stay where they are at home until it is over, and those that are used meanwhile for longer.

use lb_common::abi::{
    counter::Event,
    limiter::LimitWord,
    member::Accepts::{All, Nothing, OpenOnly},
    pool::PoolWord,
    service::SERVICE_REJECTS,
    verdict::Verdict,
};

use lb_common_fake::{
    FakeTables,
    fixture::{Fixture, NONE, client},
};

/// Version 2 asks the regions the other way round: home is backend 3, then 4.
fn turned() -> Fixture {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    fixture
}

#[test]
fn open_connections_stay_at_their_previous_home() {
    let mut fixture = turned();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.ack(client(1), 80_000), Ok(1));
    assert_eq!(fixture.displaced(client(1)), Some(1), "at once");
    // A new one is where it will be at home, and is not yet.
    assert_eq!(fixture.open(client(2), 100), 3);
    assert!(fixture.has_displaced());
    assert_eq!(fixture.displaced(client(2)), Some(3));
    assert_eq!(fixture.ack(client(2), 80_000), Ok(3));
    // The home that is left dies: to whoever stands in. It returns: its connections are there again.
    fixture.set(0, 0, Nothing);
    assert_eq!(fixture.ack(client(1), 81_000), Ok(2));
    assert_eq!(fixture.ack(client(2), 81_000), Ok(3));
    fixture.set(0, 0, All);
    assert_eq!(fixture.ack(client(2), 82_000), Ok(3));
}

#[test]
fn what_is_used_during_a_remap_outlives_it() {
    let mut fixture = turned();
    for port in [1, 2] {
        assert_eq!(fixture.open(client(port), 100), 1);
    }
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.open(client(3), 100), 3);
    fixture.events();
    assert_eq!(fixture.ack(client(1), 80_000), Ok(1));
    assert_eq!(fixture.events(), [(Event::RemapTaken, 1)]);
    assert_eq!(fixture.displaced(client(1)), Some(1));
    assert_eq!(fixture.ack(client(1), 81_000), Ok(1));
    assert_eq!(fixture.events(), [], "once");
    fixture.publish(PoolWord::new(2, 0));
    assert_eq!(fixture.ack(client(1), 82_000), Ok(1));
    assert_eq!(fixture.ack(client(3), 82_000), Ok(3));
    assert_eq!(fixture.ack(client(2), 82_000), Ok(3), "idle all the while: this is documented");
}

#[test]
fn datagrams_of_flows_that_are_not_tracked_move_at_once() {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let fake = FakeTables::new(&[list(), list()], 4);
    let mut fixture = Fixture::with(fake.with_service("198.51.100.1", 53, 17, 0));
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.datagram(client(1)), Ok(3));
    fixture.set(1, 0, Nothing);
    assert_eq!(fixture.datagram(client(1)), Ok(4), "the next of the list that is asked next");
    assert!(!fixture.has_displaced() && fixture.tracked_count() == 0);
}

#[test]
fn a_handshake_across_a_change_of_home_stays_where_it_began() {
    let mut fixture = turned();
    fixture.room_at_home(2);
    assert_eq!(fixture.syn(client(1), 100), Ok(1), "at home");
    assert_eq!(fixture.syn(client(2), 100), Ok(1));
    assert_eq!(fixture.syn(client(3), 100), Ok(3), "spilled");
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.syn(client(2), 100), Ok(1), "repeated");
    assert_eq!(fixture.syn(client(3), 100), Ok(3));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(fixture.ack(client(port), 101), Ok(at));
        assert_eq!(fixture.ack(client(port), 900_000), Ok(at));
    }
    // A connection of before, and one that is at home by both meanings or by the current alone.
    fixture.publish(PoolWord::new(1, 2));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(fixture.ack(client(port), 901_000), Ok(at));
    }
    fixture.publish(PoolWord::new(2, 0));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(fixture.ack(client(port), 902_000), Ok(at));
    }
}

#[test]
fn a_late_packet_that_takes_a_cell_leaves_the_next_connection_alone() {
    let fixture = turned();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.syn(client(1), 4_000_000), Ok(3), "the port's next connection");
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.ack(client(1), 80_000), Ok(1), "the last of the one before");
    assert_eq!(fixture.displaced(client(1)), Some(1));
    assert_eq!(fixture.ack(client(1), 4_000_001), Ok(3));
    assert_eq!(fixture.ack(client(1), 4_900_000), Ok(3));
}

#[test]
fn a_remap_turns_on_the_displaced_check_that_its_cells_need() {
    let fixture = turned();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.publish(PoolWord::new(1, 2));
    assert!(!fixture.has_displaced(), "nothing was placed anywhere yet");
    assert_eq!(fixture.ack(client(1), 80_000), Ok(1));
    assert!(fixture.has_displaced());
    fixture.publish(PoolWord::new(2, 0));
    fixture.sleep(70);
    fixture.daemon();
    assert_eq!(fixture.ack(client(1), 81_000), Ok(1));
}

/// Version 2 is without the owner, backend 1, in home.
fn without_owner() -> Fixture {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[0, 1], &[(0, 0)]), 2);
    fixture
}

#[test]
fn home_of_an_owner_that_is_out_is_the_next_of_its_list() {
    let mut fixture = without_owner();
    fixture.set(0, 0, Nothing);
    fixture.publish(PoolWord::new(2, 0));
    assert_eq!(fixture.open(client(1), 100), 2);
    assert_eq!(fixture.ack(client(1), 900_000), Ok(2));
    assert!(!fixture.has_displaced(), "it is at home there, and nothing is remembered");
    assert_eq!(fixture.events(), []);
    assert_eq!(fixture.counters(0), [1, 1, 0, 0, 0, 0]);
    // The stand-in's own fate is that of any home.
    fixture.set(0, 1, OpenOnly);
    assert_eq!(fixture.ack(client(1), 900_001), Ok(2));
    assert_eq!(fixture.open(client(2), 100), 3, "no new ones");
    assert_eq!(fixture.displaced(client(2)), Some(3));
    fixture.set(0, 1, Nothing);
    assert_eq!(fixture.ack(client(1), 900_002), Ok(3));
}

#[test]
fn where_the_whole_list_is_out_home_is_the_owner() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[0, 1], &[(0, 0), (0, 1)]), 2);
    fixture.publish(PoolWord::new(2, 0));
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.ack(client(1), 900_000), Ok(1));
    assert!(!fixture.has_displaced());
    fixture.set(0, 0, Nothing);
    assert_eq!(fixture.ack(client(1), 900_000), Ok(2));
}

#[test]
fn limits_hold_for_the_stand_in_as_for_an_owner() {
    let mut fixture = without_owner();
    fixture.set(0, 0, Nothing);
    fixture.publish(PoolWord::new(2, 0));
    fixture.room_at_home(2);
    for (port, at) in [(1, 2), (2, 2), (3, 3)] {
        assert_eq!(fixture.open(client(port), 100), at);
    }
    assert_eq!(fixture.counters(0), [3, 2, 0, 1, 0, 0]);
    assert_eq!(fixture.displaced_count(), 1);
    for (port, at) in [(1, 2), (2, 2), (3, 3)] {
        assert_eq!(fixture.ack(client(port), 900_000), Ok(at));
    }
}

#[test]
fn a_member_that_is_drained_for_good_keeps_its_connections_over_both_changes() {
    let mut fixture = without_owner();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.open(client(2), 100), 2, "away, for the owner lives");
    // Out of home: those of before are at their previous home, then remembered.
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.ack(client(1), 50_000), Ok(1));
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.ack(client(1), 60_000), Ok(1));
    fixture.publish(PoolWord::new(2, 0));
    assert_eq!(fixture.ack(client(1), 70_000), Ok(1));
    assert_eq!(fixture.ack(client(2), 70_000), Ok(2));
    fixture.sleep(70);
    fixture.daemon();
    assert_eq!(fixture.displaced(client(1)), Some(1), "not home any more");
    assert_eq!(fixture.displaced(client(2)), None, "home now");
    assert_eq!(fixture.ack(client(2), 80_000), Ok(2));
    assert_eq!(fixture.open(client(3), 100), 2);
    assert_eq!(fixture.displaced(client(3)), None);
    // And back.
    fixture.set(0, 0, All);
    fixture.publish(PoolWord::new(2, 1));
    assert_eq!(fixture.open(client(4), 100), 1);
    for (port, at) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        assert_eq!(fixture.ack(client(port), 90_000), Ok(at));
    }
    fixture.publish(PoolWord::new(2, 1));
    for (port, at) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        assert_eq!(fixture.ack(client(port), 100_000), Ok(at));
    }
    fixture.publish(PoolWord::new(1, 0));
    for (port, at) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        assert_eq!(fixture.ack(client(port), 110_000), Ok(at));
    }
    fixture.sleep(70);
    fixture.daemon();
    assert_eq!(fixture.displaced_count(), 2, "the two that are at the stand-in");
}

#[test]
fn without_room_a_new_connection_stays_where_its_home_is_still() {
    let mut fixture = turned();
    fixture.publish(PoolWord::new(1, 2));
    fixture.fill();
    assert_eq!(
        fixture.open(client(1), 100),
        1,
        "no longer home, but connections there are not lost"
    );
    assert_eq!(
        fixture.events(),
        [(Event::HeldAtHome, 1), (Event::FlowNoRoom, 1), (Event::RemapNoRoom, 1)]
    );
    assert_eq!((fixture.counters(0)[..2].to_vec(), fixture.counters(1)[0]), (vec![1, 1], 0));
    fixture.sleep(100);
    assert_eq!(fixture.ack(client(1), 80_000), Ok(1));
    // Whoever cannot stay goes where it belongs.
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.syn(client(2), 100), Ok(3));
    fixture.set(0, 0, All);
    fixture.unfill();
    assert_eq!(fixture.open(client(3), 100), 3);
    assert_eq!(fixture.displaced(client(3)), Some(3));
    fixture.publish(PoolWord::new(1, 2));
    assert_eq!(fixture.ack(client(1), 90_000), Ok(1));
    fixture.publish(PoolWord::new(2, 0));
    assert_eq!(fixture.ack(client(1), 100_000), Ok(1));
}

#[test]
fn who_stays_at_a_previous_home_keeps_to_its_limits() {
    let mut fixture = turned();
    fixture.room_at_home(1);
    fixture.publish(PoolWord::new(1, 2));
    fixture.fill();
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    assert_eq!(fixture.counters(0), [1, 1, 0, 0, 0, 0]);
    assert_eq!(fixture.syn(client(2), 100), Ok(1), "served over the limit, as at any home");
    assert_eq!(fixture.counters(0), [2, 2, 0, 0, 0, 1]);
    for service in fixture.fake.services.values_mut() {
        service.flags |= SERVICE_REJECTS;
    }
    assert_eq!(fixture.syn(client(3), 100), Err(Verdict::RegionsFull));
    assert_eq!(fixture.counters(0), [3, 2, 0, 0, 1, 1]);
    // A drained region holds no connection.
    fixture.set_limit(0, LimitWord::CLOSED);
    assert_eq!(fixture.syn(client(4), 100), Ok(3));
}

/// As where there is no remap: only the member is full, and its region has room.
#[test]
fn who_stays_at_a_previous_home_whose_member_alone_is_full_is_not_refused() {
    let mut fixture = turned();
    for service in fixture.fake.services.values_mut() {
        service.flags |= SERVICE_REJECTS;
    }
    fixture.limit(0, 1_000, 100);
    let limiter = fixture.fake.limiters.len() as u32;
    let limit = LimitWord::new(LimitWord::MAX_INTERVAL, 1);
    fixture.fake.limiters.push((limit.into(), 0.into()));
    fixture.fake.member_limiters.insert(0, limiter);
    fixture.fake.members[0] = fixture.fake.members[0].with_limit(true);
    fixture.publish(PoolWord::new(1, 2));
    fixture.fill();
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    let spent = fixture.arrival(0);
    assert_eq!(fixture.syn(client(2), 100), Ok(1));
    assert!(fixture.arrival(0) > spent, "the region's limit is debited");
    assert_eq!(fixture.counters(0), [2, 2, 0, 0, 0, 1]);
}

#[test]
fn without_room_who_has_one_home_by_both_meanings_goes_there() {
    let mut fixture = without_owner();
    fixture.publish(PoolWord::new(1, 1));
    fixture.fill();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    assert_eq!(fixture.events(), [(Event::FlowNoRoom, 1)], "a repeat of it would be counted again");
    assert_eq!(fixture.displaced_count(), 0);
}
