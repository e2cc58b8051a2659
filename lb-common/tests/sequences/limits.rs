//! Limits: which connections are over capacity, where they go, and which counters they change.

use lb_common::{
    abi::{
        counter::Event,
        limiter::LimitWord,
        member::{
            Accepts::{All, Nothing, OpenOnly},
            MemberWord,
        },
        pool::{ISOLATED, PANIC},
        service::SERVICE_REJECTS,
        verdict::Verdict,
    },
    flow_hash::FlowHash,
};

use lb_common_fake::{
    FakeTables,
    fixture::{Fixture, SECOND, client},
};

fn rejecting(mut fixture: Fixture) -> Fixture {
    for service in fixture.fake.services.values_mut() {
        service.flags |= SERVICE_REJECTS;
    }
    fixture
}

fn flag(fixture: &mut Fixture, flag: u32) {
    for descriptor in &mut fixture.fake.descriptors {
        descriptor.flags |= flag;
    }
}

/// Gives a member a limit of its own: `burst`, then one a minute.
fn limit_member(fixture: &mut Fixture, region: usize, rank: u32, burst: u32) -> usize {
    let at = fixture.fake.groups[region].head.members + rank;
    let limiter = fixture.fake.limiters.len();
    let limit = LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, burst);
    fixture.fake.limiters.push((limit.into(), 0.into()));
    fixture.fake.member_limiters.insert(at, limiter as u32);
    let word = &mut fixture.fake.members[at as usize];
    *word = word.with_limit(true);
    limiter
}

fn last_resort(fixture: &mut Fixture, region: usize, rank: u32) {
    let at = (fixture.fake.groups[region].head.members + rank) as usize;
    fixture.fake.members[at] = fixture.fake.members[at].with_last_resort(true);
}

#[test]
fn the_first_one_over_is_the_first_to_leave() {
    let mut fixture = Fixture::two_regions();
    fixture.limit(0, 10, 10);
    fixture.limit(1, 10, 10);
    let to: Vec<_> = (0..23).map(|port| fixture.syn(client(port), 1).unwrap()).collect();
    assert_eq!(to, [vec![1; 10], vec![3; 10], vec![1; 3]].concat(), "full, full, nearest");
    assert_eq!(fixture.counters(0), [23, 13, 0, 10, 0, 3]);
    assert_eq!(fixture.counters(1), [10, 10, 10, 0, 0, 0]);
    // A tenth of a second makes room for one in each.
    fixture.sleep_ns(SECOND / 10);
    let to: Vec<_> = (30..33).map(|port| fixture.syn(client(port), 1).unwrap()).collect();
    assert_eq!(to, [1, 3, 1]);
}

#[test]
fn nobody_spends_a_token_where_nobody_is() {
    let mut fixture = Fixture::two_regions();
    fixture.limit(0, 10, 10);
    fixture.limit(1, 10, 10);
    let untouched = fixture.arrival(0);
    fixture.set(0, 0, OpenOnly);
    fixture.set(0, 1, Nothing);
    for port in 0..5 {
        assert_eq!(fixture.open(client(port), 1), 3);
    }
    assert_eq!(fixture.arrival(0), untouched, "its limit was not touched");
    fixture.set(0, 0, All);
    let to: Vec<_> = (10..21).map(|port| fixture.syn(client(port), 1).unwrap()).collect();
    assert_eq!(to, [vec![1; 10], vec![3]].concat(), "the whole burst is there");
}

#[test]
fn a_full_region_spends_no_members_token() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    let limiter = limit_member(&mut fixture, 0, 0, 5);
    assert_eq!(fixture.open(client(1), 1), 1);
    let spent = fixture.fake.limiters[limiter].1.get();
    assert_eq!(fixture.open(client(2), 1), 3);
    assert_eq!(fixture.fake.limiters[limiter].1.get(), spent);
}

#[test]
fn a_member_over_its_own_limit_is_passed_over() {
    let mut fixture = Fixture::two_regions();
    fixture.limit(0, 1_000, 100);
    limit_member(&mut fixture, 0, 0, 2);
    limit_member(&mut fixture, 0, 1, 1);
    let to: Vec<_> = (0..4).map(|port| fixture.open(client(port), 1)).collect();
    assert_eq!(to, [1, 1, 2, 3]);
    assert_eq!(fixture.counters(0), [4, 3, 0, 1, 0, 0]);
    for (port, at) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        assert_eq!(fixture.ack(client(port), 80_000), Ok(at), "for new connections only");
    }
    // 1000 a second, and three were taken.
    let interval = SECOND * LimitWord::PER_NANOSECOND / 1_000;
    let now = fixture.fake.now.get() * LimitWord::PER_NANOSECOND;
    assert_eq!(
        fixture.arrival(0),
        now + 3 * interval,
        "the region's token only where one is taken"
    );
}

#[test]
fn a_raised_limit_is_felt_at_once_and_a_lowered_one_moves_nobody() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 1), 1);
    assert_eq!(fixture.open(client(2), 1), 3);
    fixture.limit(0, 1_000, 100);
    assert_eq!(fixture.open(client(3), 1), 1);
    fixture.set_limit(0, LimitWord::CLOSED);
    assert_eq!(fixture.open(client(4), 1), 3);
    for (port, at) in [(1, 1), (2, 3), (3, 1), (4, 3)] {
        assert_eq!(fixture.ack(client(port), 80_000), Ok(at));
    }
}

#[test]
fn a_drained_region_gives_nothing_even_when_all_else_is_full() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.open(client(1), 1), 1);
    fixture.set_limit(0, LimitWord::CLOSED);
    fixture.limit(1, 1, 1);
    for port in 2..5 {
        assert_eq!(fixture.open(client(port), 1), 3);
    }
    assert_eq!(fixture.counters(1), [3, 3, 3, 0, 0, 2], "two of them over its limit");
    assert_eq!(fixture.ack(client(1), 70_000), Ok(1), "what is open stays");
    fixture.set_limit(1, LimitWord::CLOSED);
    assert_eq!(fixture.syn(client(5), 1), Err(Verdict::NoBackend));
    assert_eq!(fixture.ack(client(4), 70_000), Ok(3));
}

#[test]
fn where_all_is_full_a_rejecting_service_drops() {
    let mut fixture = rejecting(Fixture::two_regions());
    fixture.limit(0, 10, 2);
    fixture.limit(1, 10, 1);
    let went: Vec<_> = (0..5).map(|port| fixture.syn(client(port), 1)).collect();
    let full = Err(Verdict::RegionsFull);
    assert_eq!(went, [Ok(1), Ok(1), Ok(3), full, full]);
    assert_eq!(fixture.counters(0), [5, 2, 0, 1, 2, 0]);
    assert_eq!(fixture.counters(1), [1, 1, 1, 0, 0, 0]);
    assert_eq!(fixture.ack(client(2), 2), Ok(3));
}

#[test]
fn an_isolated_region_is_left_when_nobody_is_there_and_not_when_it_is_full() {
    let mut fixture = Fixture::two_regions();
    flag(&mut fixture, ISOLATED);
    fixture.limit(0, 10, 2);
    let to: Vec<_> = (0..4).map(|port| fixture.open(client(port), 1)).collect();
    assert_eq!(to, [1; 4]);
    assert_eq!(fixture.counters(0), [4, 4, 0, 0, 0, 2]);
    // Full, and its owner unfit: the alternate has it.
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.open(client(5), 1), 2);
    assert_eq!(fixture.counters(0), [5, 5, 0, 0, 0, 3]);
    fixture.set(0, 1, OpenOnly);
    fixture.sleep(1);
    assert_eq!(fixture.open(client(6), 1), 3);
    assert_eq!(fixture.counters(1), [1, 1, 1, 0, 0, 0]);

    let mut fixture = rejecting(Fixture::two_regions());
    flag(&mut fixture, ISOLATED);
    fixture.limit(0, 10, 2);
    let went: Vec<_> = (0..3).map(|port| fixture.syn(client(port), 1)).collect();
    assert_eq!(went, [Ok(1), Ok(1), Err(Verdict::RegionsFull)]);
    assert_eq!(fixture.counters(0), [3, 2, 0, 0, 1, 0]);
}

#[test]
fn without_room_in_the_flow_table_new_connections_stay_at_a_full_home() {
    for (rejects, over) in [(false, Ok(1)), (true, Err(Verdict::RegionsFull))] {
        let fixture = Fixture::two_regions();
        let mut fixture = if rejects { rejecting(fixture) } else { fixture };
        fixture.room_at_home(1);
        assert_eq!(fixture.open(client(1), 1), 1);
        // They have their cells from the SYN on, whenever the ACK comes.
        for port in [2, 3, 4] {
            assert_eq!(fixture.syn(client(port), 1), Ok(3));
        }
        assert_eq!(fixture.events(), [(Event::FlowTaken, 4)]);
        fixture.fill();
        for port in [2, 3, 4] {
            assert_eq!(fixture.ack(client(port), 2), Ok(3));
            assert_eq!(fixture.ack(client(port), 900_000), Ok(3));
        }
        assert_eq!(fixture.events(), []);
        // The three are open now: nothing is left that a new one could have.
        assert_eq!(fixture.syn(client(5), 1), over);
        let unremembered = if rejects { vec![] } else { vec![(Event::FlowNoRoom, 1)] };
        assert_eq!(fixture.events(), [vec![(Event::HeldAtHome, 1)], unremembered].concat());
        let [refused, over_capacity] = if rejects { [1, 0] } else { [0, 1] };
        assert_eq!(fixture.counters(0), [5, 1 + over_capacity, 0, 3, refused, over_capacity]);
        assert_eq!(fixture.counters(1), [3, 3, 3, 0, 0, 0]);
        fixture.unfill();
        assert_eq!(fixture.open(client(6), 1), 3);
        assert_eq!(fixture.displaced_count(), 4);
    }
}

/// Client 1's home gives away all new connections.
fn ramped() -> Fixture {
    let mut fixture = Fixture::two_regions();
    let home = fixture.fake.members[0];
    fixture.fake.members[0] = MemberWord::new(home.backend(), 5, All, 0, 1);
    fixture
}

#[test]
fn without_room_in_the_flow_table_a_ramped_home_keeps_new_connections() {
    let mut fixture = ramped();
    assert_eq!(fixture.open(client(1), 1), 2, "the ramp gives it away");
    assert_eq!(fixture.events(), [(Event::FlowTaken, 1)]);
    fixture.fill();
    assert_eq!(
        fixture.syn(client(2), 1),
        Ok(1),
        "elsewhere it would need a cell, for which there is no room"
    );
    assert_eq!(fixture.events(), [(Event::HeldAtHome, 1)]);
    assert_eq!(fixture.ack(client(2), 2), Ok(1));
    fixture.sleep(70);
    assert_eq!(fixture.ack(client(2), 900_000), Ok(1), "and there it stays");
    fixture.unfill();
    assert_eq!(fixture.open(client(3), 1), 2);
}

#[test]
fn without_room_connections_of_an_unhealthy_home_go_elsewhere_and_are_counted() {
    let mut fixture = ramped();
    fixture.fill();
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.syn(client(2), 1), Ok(2));
    assert_eq!(fixture.events(), [(Event::FlowNoRoom, 1), (Event::DisplacedWithoutCell, 1)]);
    for (region, rank) in [(0, 1), (1, 0), (1, 1)] {
        fixture.set(region, rank, OpenOnly);
    }
    assert_eq!(fixture.syn(client(3), 1), Err(Verdict::NoBackend));
    assert_eq!(fixture.events(), [], "it went nowhere");
    // A region that is drained has members that are up.
    let mut fixture = ramped();
    fixture.fill();
    fixture.set_limit(0, LimitWord::CLOSED);
    assert_eq!(fixture.syn(client(2), 1), Ok(3));
    assert_eq!(fixture.events(), [(Event::FlowNoRoom, 1), (Event::DisplacedWithoutCell, 1)]);
}

#[test]
fn last_resorts_come_when_no_region_has_anybody() {
    let mut fixture = Fixture::two_regions();
    flag(&mut fixture, PANIC);
    for rank in [0, 1] {
        fixture.set(0, rank, OpenOnly);
    }
    last_resort(&mut fixture, 0, 1);
    assert_eq!(fixture.open(client(1), 1), 3, "another region comes before");
    fixture.set(1, 0, OpenOnly);
    assert_eq!(fixture.open(client(2), 1), 4);
    fixture.set(1, 1, OpenOnly);
    assert_eq!(
        fixture.open(client(3), 1),
        2,
        "the one that is marked, though the first of the list"
    );
    assert_eq!(fixture.ack(client(3), 90_000), Ok(2), "and it keeps it");
    fixture.set(1, 1, All);
    assert_eq!(fixture.open(client(4), 1), 4);
    assert_eq!(fixture.ack(client(3), 91_000), Ok(2));
    assert_eq!(fixture.counters(0), [4, 1, 0, 3, 0, 0]);
}

#[test]
fn full_regions_are_no_panic() {
    let mut fixture = Fixture::two_regions();
    flag(&mut fixture, PANIC);
    fixture.set(0, 0, OpenOnly);
    last_resort(&mut fixture, 0, 0);
    fixture.limit(0, 10, 1);
    fixture.limit(1, 10, 1);
    let to: Vec<_> = (0..4).map(|port| fixture.open(client(port), 1)).collect();
    assert_eq!(to, [2, 3, 2, 2], "over its limit, but healthy");
    assert_eq!(fixture.counters(0), [4, 3, 0, 1, 0, 2]);
}

#[test]
fn a_pool_of_one_region_never_leaves_it() {
    let mut fixture = Fixture::two_regions();
    for descriptor in &mut fixture.fake.descriptors {
        descriptor.group_count = 1;
    }
    fixture.limit(0, 10, 1);
    assert_eq!([fixture.open(client(1), 1), fixture.open(client(2), 1)], [1, 1]);
    assert_eq!(fixture.counters(0), [2, 2, 0, 0, 0, 1]);
    fixture.set(0, 0, Nothing);
    fixture.set(0, 1, Nothing);
    fixture.sleep(1);
    assert_eq!(fixture.syn(client(3), 1), Err(Verdict::NoBackend));
}

#[test]
fn who_is_found_beyond_the_slots_own_list_is_under_the_same_limits() {
    // Three slots, each with one member of its own: of the further slots some lead to the others.
    let lists = (0..3).map(|n| [n, 0xffff, 0xffff, 0xffff]).collect();
    let fake = FakeTables::new(&[(lists, 3)], 4).with_service("198.51.100.1", 80, 6, 0);
    let mut fixture = Fixture::with(fake);
    fixture.limit(0, 1_000, 1_000);
    for rank in 0..3 {
        limit_member(&mut fixture, 0, rank, 1);
    }
    let owner = |fixture: &Fixture, port| {
        let key = &fixture.fake.descriptors[1].hash_key;
        FlowHash::new(&fixture.flow(client(port)), key).slot(3) + 1
    };
    let of_first: Vec<u16> = (0..500).filter(|&port| owner(&fixture, port) == 1).take(60).collect();
    let to: Vec<_> = of_first.iter().map(|&port| fixture.open(client(port), 1)).collect();
    assert_eq!(to[0], 1);
    // Two more are within a limit; every one after them is over, and served by its owner.
    let mut others: Vec<_> = to[1..].iter().copied().filter(|&to| to != 1).collect();
    others.sort_unstable();
    assert_eq!(others, [2, 3]);
    assert_eq!(fixture.counters(0), [60, 60, 0, 0, 0, 57]);
    for (&port, &at) in of_first.iter().zip(&to) {
        assert_eq!(fixture.ack(client(port), 70_000), Ok(at));
    }
}
