//! Changes of home: the former meaning holds until the old connections are gone or remembered.

use lb_common::abi::{
    event::Event,
    member::MemberState::{Dead, Unfit, Up},
    meter::{ADOPTIONS_V4, LimitWord},
    pool::PoolWord,
    service::SERVICE_REJECTS,
    verdict::Verdict,
};

use crate::world::{World, client};

/// Version 2 asks the regions the other way round: home is backend 3, then 4.
fn turned() -> World {
    let mut world = World::two_regions();
    assert_eq!(world.twin.add_version(&[1, 0], &[]), 2);
    world
}

#[test]
fn open_connections_stay_at_their_former_home() {
    let mut world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    world.publish(PoolWord::new(2, 1));
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
    world.publish(PoolWord::new(2, 1));
    assert_eq!(world.open(client(3), 100), 3);
    world.events();
    world.publish(PoolWord::new(2, 1).adopting());
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    assert_eq!(world.events(), [(Event::Adopted, 1)]);
    assert_eq!(world.exception(client(1)), Some((1, false)));
    assert_eq!(world.ack(client(1), 81_000), Ok(1));
    assert_eq!(world.events(), [], "once");
    world.publish(PoolWord::new(2, 0));
    assert_eq!(world.ack(client(1), 82_000), Ok(1));
    assert_eq!(world.ack(client(3), 82_000), Ok(3));
    assert_eq!(world.ack(client(2), 82_000), Ok(3), "idle all the while: this is documented");
}

#[test]
fn adoption_has_a_budget_of_its_own() {
    let mut world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    world.publish(PoolWord::new(2, 1).adopting());
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
    world.publish(PoolWord::new(2, 1));
    assert_eq!(world.syn(client(2), 100), Ok(1), "repeated");
    assert_eq!(world.syn(client(3), 100), Ok(3));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(world.ack(client(port), 101), Ok(at));
        assert_eq!(world.ack(client(port), 900_000), Ok(at));
    }
    // A connection of before, and one that is at home by both meanings or by the current alone.
    world.publish(PoolWord::new(2, 1).adopting());
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(world.ack(client(port), 901_000), Ok(at));
    }
    world.publish(PoolWord::new(2, 0));
    for (port, at) in [(1, 1), (2, 1), (3, 3)] {
        assert_eq!(world.ack(client(port), 902_000), Ok(at));
    }
}

#[test]
fn a_late_packet_that_is_adopted_leaves_the_next_connection_alone() {
    let world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    world.publish(PoolWord::new(2, 1));
    assert_eq!(world.syn(client(1), 4_000_000), Ok(3), "the port's next connection");
    world.publish(PoolWord::new(2, 1).adopting());
    assert_eq!(world.ack(client(1), 80_000), Ok(1), "the last of the one before");
    assert_eq!(world.exception(client(1)), Some((1, true)));
    assert_eq!(world.ack(client(1), 4_000_001), Ok(3));
    assert_eq!(world.ack(client(1), 4_900_000), Ok(3));
}

#[test]
fn adoption_opens_the_gate_that_its_exceptions_are_behind() {
    let world = turned();
    assert_eq!(world.open(client(1), 100), 1);
    world.publish(PoolWord::new(2, 1));
    world.publish(PoolWord::new(2, 1).adopting());
    assert!(world.is_gate_closed(), "nothing was placed anywhere yet");
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    assert!(!world.is_gate_closed());
    world.publish(PoolWord::new(2, 0));
    world.sleep(70);
    world.daemon();
    assert_eq!(world.ack(client(1), 81_000), Ok(1));
}

/// Version 2 is without the owner, backend 1, in home.
fn without_owner() -> World {
    let mut world = World::two_regions();
    assert_eq!(world.twin.add_version(&[0, 1], &[(0, 0)]), 2);
    world
}

#[test]
fn home_of_an_owner_that_is_out_is_the_next_of_its_list() {
    let mut world = without_owner();
    world.set(0, 0, Dead);
    world.publish(PoolWord::new(2, 0));
    assert_eq!(world.open(client(1), 100), 2);
    assert_eq!(world.ack(client(1), 900_000), Ok(2));
    assert!(world.is_gate_closed(), "it is at home there, and nothing is remembered");
    assert_eq!(world.events(), []);
    assert_eq!(world.counters(0), [1, 1, 0, 0, 0, 0]);
    // The stand-in's own fate is that of any home.
    world.set(0, 1, Unfit);
    assert_eq!(world.ack(client(1), 900_001), Ok(2));
    assert_eq!(world.open(client(2), 100), 3, "no new ones");
    assert_eq!(world.exception(client(2)), Some((3, false)));
    world.set(0, 1, Dead);
    assert_eq!(world.ack(client(1), 900_002), Ok(3));
}

#[test]
fn where_the_whole_list_is_out_home_is_the_owner() {
    let mut world = World::two_regions();
    assert_eq!(world.twin.add_version(&[0, 1], &[(0, 0), (0, 1)]), 2);
    world.publish(PoolWord::new(2, 0));
    assert_eq!(world.open(client(1), 100), 1);
    assert_eq!(world.ack(client(1), 900_000), Ok(1));
    assert!(world.is_gate_closed());
    world.set(0, 0, Dead);
    assert_eq!(world.ack(client(1), 900_000), Ok(2));
}

#[test]
fn limits_hold_for_the_stand_in_as_for_an_owner() {
    let mut world = without_owner();
    world.set(0, 0, Dead);
    world.publish(PoolWord::new(2, 0));
    world.room_at_home(2);
    for (port, at) in [(1, 2), (2, 2), (3, 3)] {
        assert_eq!(world.open(client(port), 100), at);
    }
    assert_eq!(world.counters(0), [3, 2, 0, 1, 0, 0]);
    assert_eq!(world.exceptions(), 1);
    for (port, at) in [(1, 2), (2, 2), (3, 3)] {
        assert_eq!(world.ack(client(port), 900_000), Ok(at));
    }
}

#[test]
fn a_member_that_is_drained_for_good_keeps_its_connections_over_both_changes() {
    let mut world = without_owner();
    assert_eq!(world.open(client(1), 100), 1);
    world.set(0, 0, Unfit);
    assert_eq!(world.open(client(2), 100), 2, "away, for the owner lives");
    // Out of home: those of before are at their former home, then remembered.
    world.publish(PoolWord::new(2, 1));
    assert_eq!(world.ack(client(1), 50_000), Ok(1));
    world.publish(PoolWord::new(2, 1).adopting());
    assert_eq!(world.ack(client(1), 60_000), Ok(1));
    world.publish(PoolWord::new(2, 0));
    assert_eq!(world.ack(client(1), 70_000), Ok(1));
    assert_eq!(world.ack(client(2), 70_000), Ok(2));
    world.sleep(70);
    world.daemon();
    assert_eq!(world.exception(client(1)), Some((1, false)), "not home any more");
    assert_eq!(world.exception(client(2)), None, "home now");
    assert_eq!(world.ack(client(2), 80_000), Ok(2));
    assert_eq!(world.open(client(3), 100), 2);
    assert_eq!(world.exception(client(3)), None);
    // And back.
    world.set(0, 0, Up);
    world.publish(PoolWord::new(1, 2));
    assert_eq!(world.open(client(4), 100), 1);
    for (port, at) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        assert_eq!(world.ack(client(port), 90_000), Ok(at));
    }
    world.publish(PoolWord::new(1, 2).adopting());
    for (port, at) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        assert_eq!(world.ack(client(port), 100_000), Ok(at));
    }
    world.publish(PoolWord::new(1, 0));
    for (port, at) in [(1, 1), (2, 2), (3, 2), (4, 1)] {
        assert_eq!(world.ack(client(port), 110_000), Ok(at));
    }
    world.sleep(70);
    world.daemon();
    assert_eq!(world.exceptions(), 2, "the two that are at the stand-in");
}

#[test]
fn without_budget_a_new_connection_stays_at_its_former_home() {
    let mut world = turned();
    world.publish(PoolWord::new(2, 1));
    world.budget(LimitWord::CLOSED);
    assert_eq!(world.open(client(1), 100), 1, "not home any more, but who goes there is not lost");
    assert_eq!(world.events(), [(Event::ExceptionRefused, 1), (Event::HeldAtHome, 1)]);
    assert_eq!((world.counters(0)[..2].to_vec(), world.counters(1)[0]), (vec![1, 1], 0));
    world.sleep(100);
    assert_eq!(world.ack(client(1), 80_000), Ok(1));
    // Whoever cannot stay goes where it belongs.
    world.set(0, 0, Unfit);
    assert_eq!(world.syn(client(2), 100), Ok(3));
    world.set(0, 0, Up);
    world.budget(LimitWord::UNLIMITED);
    assert_eq!(world.open(client(3), 100), 3);
    assert_eq!(world.exception(client(3)), Some((3, false)));
    world.publish(PoolWord::new(2, 1).adopting());
    assert_eq!(world.ack(client(1), 90_000), Ok(1));
    world.publish(PoolWord::new(2, 0));
    assert_eq!(world.ack(client(1), 100_000), Ok(1));
}

#[test]
fn who_stays_at_a_former_home_keeps_to_its_limits() {
    let mut world = turned();
    world.room_at_home(1);
    world.publish(PoolWord::new(2, 1));
    world.budget(LimitWord::CLOSED);
    assert_eq!(world.syn(client(1), 100), Ok(1));
    assert_eq!(world.counters(0), [1, 1, 0, 0, 0, 0]);
    assert_eq!(world.syn(client(2), 100), Ok(1), "served over the limit, as at any home");
    assert_eq!(world.counters(0), [2, 2, 0, 0, 0, 1]);
    assert_eq!(world.syn(client(2), 100), Ok(1), "repeated");
    assert_eq!(world.counters(0), [2, 2, 0, 0, 0, 1]);
    for service in world.twin.services.values_mut() {
        service.flags |= SERVICE_REJECTS;
    }
    assert_eq!(world.syn(client(3), 100), Err(Verdict::RegionsFull));
    assert_eq!(world.counters(0), [3, 2, 0, 0, 1, 1]);
    // A region that is drained holds nobody.
    world.set_limit(0, LimitWord::CLOSED);
    assert_eq!(world.syn(client(4), 100), Ok(3));
}

#[test]
fn without_budget_who_has_one_home_by_both_meanings_goes_there() {
    let mut world = without_owner();
    world.publish(PoolWord::new(1, 1));
    world.budget(LimitWord::CLOSED);
    world.room_at_home(1);
    assert_eq!(world.open(client(1), 100), 1);
    assert_eq!(world.events(), [], "it is at home");
    assert_eq!(world.exceptions(), 0);
}
