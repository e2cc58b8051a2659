//! Limits: who is over, where that one goes, and what it costs whom.

use lb_common::{
    abi::{
        descriptor::{ISOLATED, PANIC},
        event::Event,
        member::{
            MemberState::{Dead, Unfit, Up},
            MemberWord,
        },
        meter::{EXCEPTIONS_V4, LimitWord},
        service::SERVICE_REJECTS,
        verdict::Verdict,
    },
    flow_hash::FlowHash,
};

use crate::world::{SECOND, World, client};

fn rejecting(mut world: World) -> World {
    for service in world.twin.services.values_mut() {
        service.flags |= SERVICE_REJECTS;
    }
    world
}

fn flag(world: &mut World, flag: u32) {
    for descriptor in &mut world.twin.descriptors {
        descriptor.flags |= flag;
    }
}

/// Gives a member a limit of its own: `burst`, then one a minute.
fn limit_member(world: &mut World, region: usize, rank: u32, burst: u32) -> usize {
    let at = world.twin.groups[region].head.members + rank;
    let meter = world.twin.meters.len();
    let limit = LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, burst);
    world.twin.meters.push((limit.into(), 0.into()));
    world.twin.member_meters.insert(at, meter as u32);
    let word = &mut world.twin.members[at as usize];
    *word = word.with_limit(true);
    meter
}

fn last_resort(world: &mut World, region: usize, rank: u32) {
    let at = (world.twin.groups[region].head.members + rank) as usize;
    world.twin.members[at] = world.twin.members[at].with_last_resort(true);
}

#[test]
fn the_first_one_over_is_the_first_to_leave() {
    let mut world = World::two_regions();
    world.limit(0, 10, 10);
    world.limit(1, 10, 10);
    let to: Vec<_> = (0..23).map(|port| world.syn(client(port), 1).unwrap()).collect();
    assert_eq!(to, [vec![1; 10], vec![3; 10], vec![1; 3]].concat(), "full, full, nearest");
    assert_eq!(world.counters(0), [23, 13, 0, 10, 0, 3]);
    assert_eq!(world.counters(1), [10, 10, 10, 0, 0, 0]);
    // A tenth of a second makes room for one in each.
    world.sleep_ns(SECOND / 10);
    let to: Vec<_> = (30..33).map(|port| world.syn(client(port), 1).unwrap()).collect();
    assert_eq!(to, [1, 3, 1]);
}

#[test]
fn nobody_spends_a_token_where_nobody_is() {
    let mut world = World::two_regions();
    world.limit(0, 10, 10);
    world.limit(1, 10, 10);
    world.set(0, 0, Unfit);
    world.set(0, 1, Dead);
    for port in 0..5 {
        assert_eq!(world.open(client(port), 1), 3);
    }
    assert_eq!(world.arrival(0), 0, "its limit was not touched");
    world.set(0, 0, Up);
    let to: Vec<_> = (10..21).map(|port| world.syn(client(port), 1).unwrap()).collect();
    assert_eq!(to, [vec![1; 10], vec![3]].concat(), "the whole burst is there");
}

#[test]
fn a_full_region_spends_no_members_token() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    let meter = limit_member(&mut world, 0, 0, 5);
    assert_eq!(world.open(client(1), 1), 1);
    let spent = world.twin.meters[meter].1.get();
    assert_eq!(world.open(client(2), 1), 3);
    assert_eq!(world.twin.meters[meter].1.get(), spent);
}

#[test]
fn a_member_over_its_own_limit_is_passed_over() {
    let mut world = World::two_regions();
    world.limit(0, 1_000, 100);
    limit_member(&mut world, 0, 0, 2);
    limit_member(&mut world, 0, 1, 1);
    let to: Vec<_> = (0..4).map(|port| world.open(client(port), 1)).collect();
    assert_eq!(to, [1, 1, 2, 3]);
    assert_eq!(world.counters(0), [4, 3, 0, 1, 0, 0]);
    for (port, at) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        assert_eq!(world.ack(client(port), 80_000), Ok(at), "for new connections only");
    }
    // 1000 a second, and three were taken.
    let interval = SECOND * LimitWord::PER_NANOSECOND / 1_000;
    let now = world.twin.now.get() * LimitWord::PER_NANOSECOND;
    assert_eq!(world.arrival(0), now + 3 * interval, "the region's token only where one is taken");
}

#[test]
fn a_raised_limit_is_felt_at_once_and_a_lowered_one_moves_nobody() {
    let mut world = World::two_regions();
    world.room_at_home(1);
    assert_eq!(world.open(client(1), 1), 1);
    assert_eq!(world.open(client(2), 1), 3);
    world.limit(0, 1_000, 100);
    assert_eq!(world.open(client(3), 1), 1);
    world.set_limit(0, LimitWord::CLOSED);
    assert_eq!(world.open(client(4), 1), 3);
    for (port, at) in [(1, 1), (2, 3), (3, 1), (4, 3)] {
        assert_eq!(world.ack(client(port), 80_000), Ok(at));
    }
}

#[test]
fn a_drained_region_gives_nothing_even_when_all_else_is_full() {
    let mut world = World::two_regions();
    assert_eq!(world.open(client(1), 1), 1);
    world.set_limit(0, LimitWord::CLOSED);
    world.limit(1, 1, 1);
    for port in 2..5 {
        assert_eq!(world.open(client(port), 1), 3);
    }
    assert_eq!(world.counters(1), [3, 3, 3, 0, 0, 2], "two of them over its limit");
    assert_eq!(world.ack(client(1), 70_000), Ok(1), "what is open stays");
    world.set_limit(1, LimitWord::CLOSED);
    assert_eq!(world.syn(client(5), 1), Err(Verdict::NoBackend));
    assert_eq!(world.ack(client(4), 70_000), Ok(3));
}

#[test]
fn where_all_is_full_a_rejecting_service_drops() {
    let mut world = rejecting(World::two_regions());
    world.limit(0, 10, 2);
    world.limit(1, 10, 1);
    let went: Vec<_> = (0..5).map(|port| world.syn(client(port), 1)).collect();
    let full = Err(Verdict::RegionsFull);
    assert_eq!(went, [Ok(1), Ok(1), Ok(3), full, full]);
    assert_eq!(world.counters(0), [5, 2, 0, 1, 2, 0]);
    assert_eq!(world.counters(1), [1, 1, 1, 0, 0, 0]);
    assert_eq!(world.ack(client(2), 2), Ok(3));
}

#[test]
fn an_isolated_region_is_left_when_nobody_is_there_and_not_when_it_is_full() {
    let mut world = World::two_regions();
    flag(&mut world, ISOLATED);
    world.limit(0, 10, 2);
    let to: Vec<_> = (0..4).map(|port| world.open(client(port), 1)).collect();
    assert_eq!(to, [1; 4]);
    assert_eq!(world.counters(0), [4, 4, 0, 0, 0, 2]);
    // Full, and its owner unfit: the alternate has it.
    world.set(0, 0, Unfit);
    assert_eq!(world.open(client(5), 1), 2);
    assert_eq!(world.counters(0), [5, 5, 0, 0, 0, 3]);
    world.set(0, 1, Unfit);
    world.sleep(1);
    assert_eq!(world.open(client(6), 1), 3);
    assert_eq!(world.counters(1), [1, 1, 1, 0, 0, 0]);

    let mut world = rejecting(World::two_regions());
    flag(&mut world, ISOLATED);
    world.limit(0, 10, 2);
    let went: Vec<_> = (0..3).map(|port| world.syn(client(port), 1)).collect();
    assert_eq!(went, [Ok(1), Ok(1), Err(Verdict::RegionsFull)]);
    assert_eq!(world.counters(0), [3, 2, 0, 0, 1, 0]);
}

#[test]
fn without_a_budget_new_connections_stay_at_a_full_home() {
    for (rejects, over) in [(false, Ok(1)), (true, Err(Verdict::RegionsFull))] {
        let world = World::two_regions();
        let mut world = if rejects { rejecting(world) } else { world };
        world.room_at_home(1);
        let slow = LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, 2);
        world.twin.meters[EXCEPTIONS_V4 as usize].0.set(slow);
        assert_eq!(world.open(client(1), 1), 1);
        // Three SYNs leave before any is acknowledged: the budget is debited at insertion only.
        for port in [2, 3, 4] {
            assert_eq!(world.syn(client(port), 1), Ok(3));
        }
        for port in [2, 3, 4] {
            assert_eq!(world.ack(client(port), 2), Ok(3), "with an exception or without");
        }
        assert_eq!(world.events(), [(Event::ExceptionInserted, 2), (Event::ExceptionRefused, 1)]);
        assert_eq!(world.syn(client(5), 1), over);
        assert_eq!(world.events(), [(Event::HeldAtHome, 1)]);
        let [refused, overrun] = if rejects { [1, 0] } else { [0, 1] };
        assert_eq!(world.counters(0), [5, 1 + overrun, 0, 3, refused, overrun]);
        assert_eq!(world.counters(1), [3, 3, 3, 0, 0, 0]);
        // A minute later there is budget for one more, and the one left out tries again.
        world.sleep(60);
        assert_eq!(world.ack(client(4), 2), Ok(3));
        assert_eq!(world.exceptions(), 3);
        assert_eq!(world.ack(client(4), 900_000), Ok(3));
    }
}

/// Client 1's home gives away all new connections, and no connection more can be remembered elsewhere.
fn ramped_without_budget() -> World {
    let mut world = World::two_regions();
    let slow = LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, 1);
    world.twin.meters[EXCEPTIONS_V4 as usize].0.set(slow);
    let home = world.twin.members[0];
    world.twin.members[0] = MemberWord::new(home.backend(), 5, Up, 0, 1);
    world
}

#[test]
fn without_a_budget_a_ramped_home_keeps_new_connections() {
    let mut world = ramped_without_budget();
    assert_eq!(world.open(client(1), 1), 2, "the ramp gives it away");
    assert_eq!(world.syn(client(2), 1), Ok(1), "nobody could remember it elsewhere");
    assert_eq!(world.events(), [(Event::ExceptionInserted, 1), (Event::HeldAtHome, 1)]);
    assert_eq!(world.ack(client(2), 2), Ok(1));
    world.sleep(70);
    assert_eq!(world.ack(client(2), 900_000), Ok(1), "and there it stays");
    assert_eq!(world.open(client(3), 1), 2, "a minute later there is budget for one more");
}

#[test]
fn without_a_budget_connections_of_an_unhealthy_home_go_elsewhere_and_are_counted() {
    let mut world = ramped_without_budget();
    assert_eq!(world.open(client(1), 1), 2);
    world.set(0, 0, Unfit);
    world.events();
    assert_eq!(world.syn(client(2), 1), Ok(2));
    assert_eq!(world.events(), [(Event::AwayWithoutBudget, 1)]);
    for (region, rank) in [(0, 1), (1, 0), (1, 1)] {
        world.set(region, rank, Unfit);
    }
    assert_eq!(world.syn(client(3), 1), Err(Verdict::NoBackend));
    assert_eq!(world.events(), [], "it went nowhere");
    // A region that is drained has members that are up.
    let mut world = ramped_without_budget();
    assert_eq!(world.open(client(1), 1), 2);
    world.events();
    world.set_limit(0, LimitWord::CLOSED);
    assert_eq!(world.syn(client(2), 1), Ok(3));
    assert_eq!(world.events(), [(Event::AwayWithoutBudget, 1)]);
}

#[test]
fn last_resorts_come_when_no_region_has_anybody() {
    let mut world = World::two_regions();
    flag(&mut world, PANIC);
    for rank in [0, 1] {
        world.set(0, rank, Unfit);
    }
    last_resort(&mut world, 0, 1);
    assert_eq!(world.open(client(1), 1), 3, "another region is asked before");
    world.set(1, 0, Unfit);
    assert_eq!(world.open(client(2), 1), 4);
    world.set(1, 1, Unfit);
    assert_eq!(world.open(client(3), 1), 2, "the one that is marked, though the first of the list");
    assert_eq!(world.ack(client(3), 90_000), Ok(2), "and it keeps it");
    world.set(1, 1, Up);
    assert_eq!(world.open(client(4), 1), 4);
    assert_eq!(world.ack(client(3), 91_000), Ok(2));
    assert_eq!(world.counters(0), [4, 1, 0, 3, 0, 0]);
}

#[test]
fn full_regions_are_no_panic() {
    let mut world = World::two_regions();
    flag(&mut world, PANIC);
    world.set(0, 0, Unfit);
    last_resort(&mut world, 0, 0);
    world.limit(0, 10, 1);
    world.limit(1, 10, 1);
    let to: Vec<_> = (0..4).map(|port| world.open(client(port), 1)).collect();
    assert_eq!(to, [2, 3, 2, 2], "over its limit, but healthy");
    assert_eq!(world.counters(0), [4, 3, 0, 1, 0, 2]);
}

#[test]
fn a_pool_of_one_region_never_leaves_it() {
    let mut world = World::two_regions();
    for descriptor in &mut world.twin.descriptors {
        descriptor.group_count = 1;
    }
    world.limit(0, 10, 1);
    assert_eq!([world.open(client(1), 1), world.open(client(2), 1)], [1, 1]);
    assert_eq!(world.counters(0), [2, 2, 0, 0, 0, 1]);
    world.set(0, 0, Dead);
    world.set(0, 1, Dead);
    world.sleep(1);
    assert_eq!(world.syn(client(3), 1), Err(Verdict::NoBackend));
}

#[test]
fn who_is_found_beyond_the_slots_own_list_is_under_the_same_limits() {
    // Three slots, each with one member of its own: of the further slots some lead to the others.
    let lists = (0..3).map(|n| [n, 0xffff, 0xffff, 0xffff]).collect();
    let twin = crate::twin::Twin::new(&[(lists, 3)], 4).with_service("198.51.100.1", 80, 6, 0);
    let mut world = World::of(twin);
    world.limit(0, 1_000, 1_000);
    for rank in 0..3 {
        limit_member(&mut world, 0, rank, 1);
    }
    let owner = |world: &World, port| {
        let key = &world.twin.descriptors[1].hash_key;
        FlowHash::of(&world.flow(client(port)), key).slot(3) + 1
    };
    let of_first: Vec<u16> = (0..500).filter(|&port| owner(&world, port) == 1).take(60).collect();
    let to: Vec<_> = of_first.iter().map(|&port| world.open(client(port), 1)).collect();
    assert_eq!(to[0], 1);
    // Two more are within a limit; every one after them is over, and served by its owner.
    let mut others: Vec<_> = to[1..].iter().copied().filter(|&to| to != 1).collect();
    others.sort_unstable();
    assert_eq!(others, [2, 3]);
    assert_eq!(world.counters(0), [60, 60, 0, 0, 0, 57]);
    for (&port, &at) in of_first.iter().zip(&to) {
        assert_eq!(world.ack(client(port), 70_000), Ok(at));
    }
}
