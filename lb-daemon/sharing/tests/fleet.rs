//! A simulated fleet that shares capacities: what it admits, and what it survives.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod simulation;

use std::time::Duration;

use lb_sharing::{Ledger, Parts};
use proptest::{collection::vec, prelude::*, test_runner::RngSeed};
use simulation::{Faults, Fleet, group, name};

const SECOND: Duration = Duration::from_secs(1);

/// Seven tenths of a load reach one balancer, the rest the others.
fn uneven(fleet: &mut Fleet, load: f64) {
    let others = fleet.hosts.len() - 1;
    for (group, capacity) in fleet.capacity.clone() {
        for at in 0..=others {
            let portion = if at == 0 { 0.7 } else { 0.3 / others as f64 };
            fleet.demand(at, &group, load * capacity * portion);
        }
    }
}

/// Checks that nothing was admitted that was not allowed, and that the parts are one whole.
fn check(fleet: &Fleet) {
    assert_eq!(fleet.overshoot, [""; 0], "in a second");
    for group in fleet.births.keys() {
        assert_eq!(fleet.owned_and_on_its_way(group), Parts::WHOLE);
    }
}

/// Runs until the first epoch is closed, at most a minute. Until then nothing may be admitted that was not allowed.
fn until_forgotten(fleet: &mut Fleet) {
    let end = fleet.now + 60 * SECOND;
    while !fleet.etcd.epoch.as_ref().is_some_and(|epoch| epoch.closed) {
        assert!(fleet.now < end, "no epoch is closed");
        assert_eq!(fleet.overshoot, [""; 0], "before it is forgotten");
        fleet.run(SECOND / 4);
    }
}

#[test]
fn with_room_for_all_little_is_sent_elsewhere() {
    for (hosts, capacity) in
        [(4, 1_000.0), (4, 10_000.0), (16, 1_000.0), (16, 10_000.0), (64, 1_000.0), (64, 10_000.0)]
    {
        let mut fleet = Fleet::new(hosts, &[capacity], 1);
        uneven(&mut fleet, 0.8);
        fleet.run(13 * SECOND);
        let elsewhere = fleet.sent_elsewhere(3 * SECOND, 13 * SECOND);
        println!("{hosts} balancers, {capacity} a second: {:.3} % elsewhere", 100.0 * elsewhere);
        assert!(elsewhere <= 0.005, "{elsewhere} of {hosts} balancers at {capacity} a second");
        check(&fleet);
    }
}

#[test]
fn at_twice_the_capacity_all_of_it_is_used() {
    for (hosts, capacity) in [(4, 1_000.0), (4, 10_000.0), (16, 1_000.0), (16, 10_000.0)] {
        let mut fleet = Fleet::new(hosts, &[capacity], 2);
        uneven(&mut fleet, 2.0);
        fleet.run(12 * SECOND);
        let (_, admitted) = fleet.counted[&group(0, 1)].between(2 * SECOND, 12 * SECOND);
        let used = admitted as f64 / (10.0 * capacity);
        println!("{hosts} balancers, {capacity} a second: {used:.4} of the capacity");
        assert!((0.985..=1.005).contains(&used), "{used} of {hosts} balancers at {capacity}");
        check(&fleet);
    }
}

#[test]
fn demand_that_moves_is_followed() {
    for capacity in [1_000.0, 10_000.0] {
        let mut fleet = Fleet::new(4, &[capacity], 3);
        fleet.demand(0, &group(0, 1), 0.8 * capacity);
        fleet.run(20 * SECOND);
        fleet.demand(0, &group(0, 1), 0.0);
        fleet.demand(1, &group(0, 1), 0.8 * capacity);
        fleet.run(20 * SECOND);
        let in_second = |n: u32| fleet.sent_elsewhere((19 + n) * SECOND, (20 + n) * SECOND);
        let seconds: Vec<_> = (1..=6).map(|n| format!("{:.2} %", 100.0 * in_second(n))).collect();
        println!("{capacity} a second: {}", seconds.join(", "));
        assert!(in_second(4) <= 0.05);
        assert!(fleet.sent_elsewhere(24 * SECOND, 40 * SECOND) <= 0.01);
        check(&fleet);
    }
}

#[test]
fn demand_that_stands_still_needs_few_writes() {
    for (load, capacity) in [
        (0.8, 1_000.0),
        (0.8, 10_000.0),
        (2.0, 1_000.0),
        (1.05, 1_000.0),
        (0.95, 1_000.0),
        (0.99, 1_000.0),
        (1.05, 10_000.0),
    ] {
        let mut fleet = Fleet::new(4, &[capacity; 5], 4);
        uneven(&mut fleet, load);
        fleet.run(10 * SECOND);
        let writes = |fleet: &Fleet| -> Vec<u64> {
            fleet.hosts.iter().map(|host| host.daemon.as_ref().unwrap().writes).collect()
        };
        let before = writes(&fleet);
        fleet.run(60 * SECOND);
        let after = writes(&fleet);
        let rates: Vec<f64> = before
            .iter()
            .zip(after)
            .map(|(before, after)| (after - before) as f64 / 60.0)
            .collect();
        println!("load {load}, {capacity} a second: {rates:.2?} writes a second");
        assert!(rates.iter().all(|rate| *rate <= 1.0), "{rates:?} writes a second");
        check(&fleet);
    }
}

#[test]
fn a_lost_host_is_forgotten_and_the_others_get_its_part() {
    let mut fleet = Fleet::new(4, &[1_000.0], 5);
    for at in 0..4 {
        fleet.demand(at, &group(0, 1), 237.5);
    }
    fleet.run(10 * SECOND);
    let before = fleet.sent_elsewhere(5 * SECOND, 10 * SECOND);
    fleet.kill(0);
    fleet.hosts[0].is_up = false;
    fleet.demand(0, &group(0, 1), 0.0);
    (1..4).for_each(|at| fleet.demand(at, &group(0, 1), 316.7));
    until_forgotten(&mut fleet);
    println!("forgotten after {:?}", fleet.now - 10 * SECOND);
    assert!(fleet.now <= 55 * SECOND, "forgotten after {:?}", fleet.now - 10 * SECOND);
    let forgotten = fleet.now;
    fleet.run(15 * SECOND);
    let elsewhere = fleet.sent_elsewhere(forgotten + 5 * SECOND, forgotten + 15 * SECOND);
    assert!(elsewhere <= before + 0.01, "{elsewhere} is sent elsewhere, {before} before");
    let left: Parts = fleet.hosts[1..].iter().map(|host| host.disk.owned(&group(0, 1))).sum();
    let on_its_way =
        fleet.owned_and_on_its_way(&group(0, 1)) - fleet.hosts[0].disk.owned(&group(0, 1));
    assert!(left <= Parts::WHOLE && on_its_way == Parts::WHOLE, "{left}, {on_its_way}");
    assert_eq!(fleet.overshoot, [""; 0]);

    // It comes back, owns nothing, and is given what it needs.
    fleet.boot(0);
    (0..4).for_each(|at| fleet.demand(at, &group(0, 1), 237.5));
    fleet.run(15 * SECOND);
    let back = fleet.now;
    fleet.run(10 * SECOND);
    let elsewhere = fleet.sent_elsewhere(back, back + 10 * SECOND);
    assert!(elsewhere <= before + 0.01, "{elsewhere} is sent elsewhere, {before} before");
    assert_eq!(fleet.etcd.epoch.as_ref().map(|epoch| epoch.number), Some(1));
    check(&fleet);
}

#[test]
fn a_lost_host_is_forgotten_beside_one_that_nobody_hears() {
    for is_one_way in [false, true] {
        let mut fleet = Fleet::new(4, &[1_000.0], 5);
        (0..4).for_each(|at| fleet.demand(at, &group(0, 1), 237.5));
        fleet.run(10 * SECOND);
        for other in 0..3 {
            fleet.cut.insert((name(3), name(other)));
            if !is_one_way {
                fleet.cut.insert((name(other), name(3)));
            }
        }
        fleet.kill(0);
        fleet.hosts[0].is_up = false;
        until_forgotten(&mut fleet);
        fleet.run(5 * SECOND);
        assert!(fleet.hosts[0].disk.owned(&group(0, 1)) > Parts::NONE);
        let left: Parts = fleet.hosts[1..].iter().map(|host| host.disk.owned(&group(0, 1))).sum();
        let on_its_way =
            fleet.owned_and_on_its_way(&group(0, 1)) - fleet.hosts[0].disk.owned(&group(0, 1));
        assert!(left <= Parts::WHOLE && on_its_way == Parts::WHOLE, "{left}, {on_its_way}");
        // It is heard again, and takes part.
        fleet.cut.clear();
        fleet.boot(0);
        fleet.demand(3, &group(0, 1), 0.0);
        fleet.demand(1, &group(0, 1), 475.0);
        fleet.run(20 * SECOND);
        assert!(fleet.hosts[3].disk.owned(&group(0, 1)) < Parts::from_fraction(0.2));
        assert_eq!(fleet.overshoot, [""; 0]);
        check(&fleet);
    }
}

/// A balancer that is mute to the others says in etcd that one is silent, which then reaches it and gives it parts, just when the
/// others forget it.
#[test]
fn one_that_is_said_to_be_silent_may_be_heard_at_any_moment() {
    for late in 0..24 {
        let mut fleet = Fleet::new(4, &[1_000.0], 8 + u64::from(late));
        (0..4).for_each(|at| fleet.demand(at, &group(0, 1), 237.5));
        fleet.run(10 * SECOND);
        for (one, other) in [(3, 1), (3, 2), (0, 1), (0, 2), (0, 3)] {
            fleet.cut.insert((name(one), name(other)));
            fleet.cut.insert((name(other), name(one)));
        }
        fleet.hosts[0].reaches_etcd = false;
        fleet.run(29 * SECOND + late * SECOND / 8);
        fleet.cut.remove(&(name(0), name(3)));
        fleet.cut.remove(&(name(3), name(0)));
        fleet.demand(0, &group(0, 1), 0.0);
        fleet.demand(3, &group(0, 1), 900.0);
        fleet.run(20 * SECOND);
        fleet.cut.clear();
        fleet.hosts[0].reaches_etcd = true;
        fleet.run(30 * SECOND);
        check(&fleet);
    }
}

#[test]
fn a_daemon_that_is_gone_while_its_packets_go_on_costs_at_most_its_part() {
    let mut fleet = Fleet::new(4, &[1_000.0], 6);
    (0..4).for_each(|at| fleet.demand(at, &group(0, 1), 500.0));
    fleet.run(10 * SECOND);
    fleet.kill(0);
    until_forgotten(&mut fleet);
    let part = fleet.hosts[0].disk.owned(&group(0, 1)).fraction();
    let from = fleet.now + SECOND;
    fleet.run(11 * SECOND);
    let (_, admitted) = fleet.counted[&group(0, 1)].between(from, fleet.now);
    let used = admitted as f64 / 10_000.0;
    assert!(used <= 1.0 + part + 0.01 && used > 1.0 + 0.5 * part, "{used}, a part of {part}");
    fleet.start(0, false);
    fleet.run(5 * SECOND);
    fleet.overshoot.clear();
    fleet.run(10 * SECOND);
    check(&fleet);
}

#[test]
fn a_balancer_joins_and_one_leaves() {
    let mut fleet = Fleet::new(3, &[1_000.0], 7);
    (0..3).for_each(|at| fleet.demand(at, &group(0, 1), 260.0));
    fleet.run(5 * SECOND);
    fleet.join();
    fleet.demand(3, &group(0, 1), 200.0);
    fleet.run(5 * SECOND);
    assert!(fleet.hosts[3].disk.owned(&group(0, 1)).fraction() > 0.19);
    (0..3).for_each(|at| fleet.demand(at, &group(0, 1), 200.0));
    fleet.demand(0, &group(0, 1), 0.0);
    fleet.tell_to_leave(0);
    fleet.run(5 * SECOND);
    assert!(fleet.hosts[0].has_left);
    check(&fleet);
    let (start, end) = (fleet.now, fleet.now + 10 * SECOND);
    fleet.run(10 * SECOND);
    assert!(fleet.sent_elsewhere(start, end) <= 0.005);
}

#[test]
fn messages_that_are_lost_cost_nothing_at_twice_the_capacity() {
    let mut fleet = Fleet::new(4, &[1_000.0], 8);
    let delay = Duration::from_millis(50);
    fleet.faults = Faults { lost: 0.2, repeated: 0.1, delay, write_fails: 0.05, ..Faults::NONE };
    uneven(&mut fleet, 2.0);
    fleet.run(22 * SECOND);
    let (_, admitted) = fleet.counted[&group(0, 1)].between(2 * SECOND, 22 * SECOND);
    let used = admitted as f64 / 20_000.0;
    assert!((0.985..=1.005).contains(&used), "{used} of the capacity");
    check(&fleet);
}

#[test]
fn an_old_copy_of_a_store_is_noticed() {
    let mut fleet = Fleet::new(3, &[1_000.0], 9);
    (0..3).for_each(|at| fleet.demand(at, &group(0, 1), 200.0));
    fleet.run(2 * SECOND);
    let old = fleet.hosts[0].disk.clone();
    assert!(old.owned(&group(0, 1)) > Parts::from_fraction(0.3));
    // It gives nearly everything away, then its host dies and comes back with the copy.
    fleet.demand(0, &group(0, 1), 0.0);
    fleet.demand(1, &group(0, 1), 780.0);
    fleet.run(10 * SECOND);
    assert!(fleet.hosts[0].disk.owned(&group(0, 1)) < Parts::from_fraction(0.2));
    fleet.kill(0);
    fleet.restore(0, old);
    let is_old = |fleet: &Fleet| {
        fleet.hosts[0].daemon.as_ref().is_some_and(|daemon| daemon.sharing.store_is_old())
    };
    let start = fleet.now;
    while !is_old(&fleet) && fleet.now < start + 3 * SECOND {
        fleet.run(SECOND / 100);
    }
    assert!(is_old(&fleet));
    // The others forget it at once, although it is alive; then it takes part again.
    fleet.run(10 * SECOND);
    assert_eq!(fleet.etcd.epoch.as_ref().map(|epoch| epoch.closed), Some(true));
    assert!(!is_old(&fleet));
    assert!(fleet.hosts[0].disk.owned(&group(0, 1)) > Parts::NONE);
    assert_eq!(fleet.etcd.membership(fleet.now).members[&name(0)], 1);
    check(&fleet);
}

/// Something that goes wrong in a fleet, or that an operator does.
#[derive(Clone, Debug)]
enum Event {
    /// The daemon is killed, and its host goes on.
    Kill(usize),
    /// The host loses its power.
    PowerLoss(usize),
    /// The host loses its power, and comes back with a copy of its disk from earlier.
    OldDisk(usize),
    /// The daemon starts again, after a boot if its host was off.
    Start(usize),
    /// Two hosts do not reach each other, or one of them does not reach the other, or both do again.
    Cut(usize, usize),
    CutOneWay(usize, usize),
    Heal(usize, usize),
    /// A host does not reach etcd, or does again.
    Alone(usize),
    Together(usize),
    Demand(usize, usize, f64),
    Join,
    Leave(usize),
    /// A generation with one group more.
    CreateGroup,
}

fn event() -> impl Strategy<Value = Event> {
    let host = 0..5_usize;
    prop_oneof![
        2 => host.clone().prop_map(Event::Kill),
        1 => host.clone().prop_map(Event::PowerLoss),
        1 => host.clone().prop_map(Event::OldDisk),
        4 => host.clone().prop_map(Event::Start),
        2 => (host.clone(), host.clone()).prop_map(|(a, b)| Event::Cut(a, b)),
        1 => (host.clone(), host.clone()).prop_map(|(a, b)| Event::CutOneWay(a, b)),
        2 => (host.clone(), host.clone()).prop_map(|(a, b)| Event::Heal(a, b)),
        1 => host.clone().prop_map(Event::Alone),
        2 => host.clone().prop_map(Event::Together),
        3 => (host.clone(), 0..2_usize, 0.0..900.0).prop_map(|(at, of, rate)| Event::Demand(at, of, rate)),
        1 => Just(Event::Join),
        1 => host.clone().prop_map(Event::Leave),
        1 => Just(Event::CreateGroup),
    ]
}

fn start(fleet: &mut Fleet, at: usize) {
    let host = &fleet.hosts[at];
    if host.daemon.is_some() || host.has_left || host.boots_at.is_some() {
        return;
    }
    match host.is_up {
        true => fleet.start(at, false),
        false => fleet.boot(at),
    }
}

fn happen(fleet: &mut Fleet, event: &Event, copies: &[Ledger]) {
    let hosts = fleet.hosts.len();
    match *event {
        Event::Kill(at) => fleet.kill(at % hosts),
        Event::PowerLoss(at) => {
            fleet.kill(at % hosts);
            fleet.hosts[at % hosts].is_up = false;
        }
        Event::OldDisk(at) => {
            let at = at % hosts;
            let Some(copy) = copies.get(at).filter(|_| !fleet.hosts[at].has_left) else { return };
            // An old copy is noticed by balancers that parts moved to or from since, so they have to be there.
            if fleet.hosts.iter().any(|host| host.leaves) {
                return;
            }
            for other in 0..hosts {
                start(fleet, other);
            }
            fleet.run(2 * SECOND);
            fleet.kill(at);
            fleet.hosts[at].reaches_etcd = true;
            fleet.cut.retain(|(one, other)| *one != name(at) && *other != name(at));
            fleet.restore(at, copy.clone());
            fleet.run(3 * SECOND);
        }
        Event::Start(at) => start(fleet, at % hosts),
        Event::Cut(one, other) => {
            let (one, other) = (name(one % hosts), name(other % hosts));
            fleet.cut.extend([(one.clone(), other.clone()), (other, one)]);
        }
        Event::CutOneWay(from, to) => {
            fleet.cut.insert((name(from % hosts), name(to % hosts)));
        }
        Event::Heal(one, other) => {
            let (one, other) = (name(one % hosts), name(other % hosts));
            fleet.cut.remove(&(one.clone(), other.clone()));
            fleet.cut.remove(&(other, one));
        }
        Event::Alone(at) => fleet.hosts[at % hosts].reaches_etcd = false,
        Event::Together(at) => fleet.hosts[at % hosts].reaches_etcd = true,
        Event::Demand(at, of, rate) => fleet.demand(at % hosts, &group(of, 1), rate),
        Event::Join if hosts < 7 => fleet.join(),
        Event::Join => {}
        Event::Leave(at) => {
            let stay = fleet.hosts.iter().filter(|host| !host.leaves).count();
            if stay > 2 {
                fleet.tell_to_leave(at % hosts);
            }
        }
        Event::CreateGroup if fleet.births.len() < 5 => fleet.create_group(200.0),
        Event::CreateGroup => {}
    }
}

proptest! {
    // A case is minutes of a fleet. The same ones in each run, unless more are asked for: `PROPTEST_CASES=32000` runs 4,000.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 8,
        max_shrink_iters: 200,
        rng_seed: match std::env::var_os("PROPTEST_CASES") {
            Some(_) => RngSeed::Random,
            None => RngSeed::Fixed(20),
        },
        ..ProptestConfig::default()
    })]

    /// Whatever happens, no second admits more than the capacity and the bursts until a balancer was forgotten, the limits
    /// of the others are never more than the whole, and in the end all parts are there.
    #[test]
    fn whatever_happens_parts_are_one_whole(
        seed in any::<u64>(),
        hosts in 2..6_usize,
        events in vec((0..20_000_u64, event()), 0..25),
        lost in 0.0..0.3_f64,
        delay in 0..400_u64,
        writes in (0..300_u64, 0.0..0.2_f64),
    ) {
        let mut fleet = Fleet::new(hosts, &[1_000.0, 30.0], seed);
        let [delay, write_takes] = [delay, writes.0].map(Duration::from_millis);
        fleet.faults = Faults { lost, repeated: 0.2, delay, write_fails: writes.1, write_takes };
        for at in 0..hosts {
            fleet.demand(at, &group(0, 1), 300.0);
            fleet.demand(at, &group(1, 1), 9.0);
        }
        let mut copies: Vec<Ledger> = vec![];
        for (number, (after, event)) in events.iter().enumerate() {
            fleet.run(Duration::from_millis(*after));
            happen(&mut fleet, event, &copies);
            if number % 4 == 0 {
                copies = fleet.hosts.iter().map(|host| host.disk.clone()).collect();
            }
        }
        // In the end all is well, and the fleet finds together.
        fleet.faults = Faults::NONE;
        fleet.cut.clear();
        for at in 0..fleet.hosts.len() {
            fleet.hosts[at].reaches_etcd = true;
            start(&mut fleet, at);
        }
        fleet.run(60 * SECOND);
        prop_assert_eq!(&fleet.overshoot, &[""; 0]);
        if let Some(epoch) = &fleet.etcd.epoch {
            prop_assert!(epoch.closed, "{epoch:?}");
        }
        for group in fleet.births.keys() {
            prop_assert_eq!(fleet.owned_and_on_its_way(group), Parts::WHOLE);
        }
        for host in fleet.hosts.iter().filter(|host| !host.has_left) {
            let daemon = host.daemon.as_ref().unwrap();
            prop_assert!(!daemon.sharing.store_is_old() && host.disk.frozen.is_none());
        }
    }
}
