//! Hosts and regions that fall and come back.

use std::collections::VecDeque;

use lb_common::abi::{
    counter::Event,
    member::Accepts::{All, Nothing, OpenOnly},
    next_hop::AWAITED,
    pool::PoolWord,
    service::SERVICE_TRACKED,
    verdict::Verdict,
};

use lb_common_fake::{
    FakeTables,
    fixture::{Fixture, NONE, VIP_V4, VIP_V6, client},
};

#[test]
fn the_owner_is_dead_and_then_up_again() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.set(0, 0, Nothing);
    assert_eq!(
        fixture.ack(client(1), 900),
        Ok(2),
        "its host is gone: immediately to a backend that can reset it"
    );
    assert_eq!(fixture.open(client(2), 100), 2, "opened while the owner is dead");
    fixture.set(0, 0, All);
    assert_eq!(fixture.ack(client(2), 900), Ok(2));
    assert_eq!(fixture.ack(client(2), 9_000_000), Ok(2));
    assert_eq!(fixture.ack(client(1), 900), Ok(1));
    assert_eq!(fixture.open(client(3), 100), 1);
    // Again: what was at home keeps to that rule, what was elsewhere is not touched.
    fixture.set(0, 0, Nothing);
    assert_eq!(fixture.ack(client(2), 9_500_000), Ok(2));
    assert_eq!(fixture.ack(client(3), 900), Ok(2));
    fixture.set(0, 0, All);
    fixture.set(0, 1, Nothing);
    assert_eq!(fixture.ack(client(2), 9_500_000), Ok(1), "its own host died");
}

#[test]
fn an_application_check_that_fails_moves_nobody() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.set(0, 0, OpenOnly);
    assert_eq!(fixture.ack(client(1), 900), Ok(1));
    assert_eq!(fixture.open(client(2), 100), 2);
    fixture.set(0, 1, OpenOnly);
    assert_eq!(fixture.open(client(3), 100), 3, "no member of this region accepts new ones");
    fixture.set(0, 0, All);
    fixture.set(0, 1, All);
    for (port, at) in [(1, 1), (2, 2), (3, 3)] {
        assert_eq!(fixture.ack(client(port), 50_000), Ok(at));
    }
    fixture.set(1, 0, OpenOnly);
    assert_eq!(fixture.ack(client(3), 60_000), Ok(3));
}

/// Packets of a host whose next hop was lost a moment ago are dropped, wherever its connection is; new ones go elsewhere.
#[test]
fn while_a_next_hop_is_awaited_open_connections_wait_and_new_ones_move() {
    let lost = Err(Verdict::NextHopUnresolved);
    for version in [4, 6] {
        let list = || (vec![[0, 1, NONE, NONE]], 2);
        let fake = FakeTables::new(&[list(), list()], version);
        let vip = if version == 4 { VIP_V4 } else { VIP_V6 };
        let fake =
            fake.with_service(vip, 80, 6, 0).with_service(vip, 53, 17, SERVICE_TRACKED | 60 << 16);
        let mut fixture = Fixture::in_family(fake, version);
        assert_eq!(fixture.open(client(1), 100), 1, "at home, without a cell");
        assert_eq!([fixture.datagram(client(1)), fixture.datagram(client(1))], [Ok(1); 2]);
        assert_eq!(fixture.datagram(client(2)), Ok(1), "one only");
        fixture.fake.set_next_hop(0, 0, AWAITED);
        assert_eq!(fixture.ack(client(1), 900), lost);
        assert_eq!(fixture.datagram(client(1)), lost);
        assert_eq!(fixture.datagram(client(2)), Ok(2));
        assert_eq!(fixture.open(client(3), 100), 2, "displaced");
        fixture.fake.set_next_hop(0, 1, AWAITED);
        assert_eq!(fixture.ack(client(3), 900), lost, "with a cell");
        assert_eq!(fixture.open(client(4), 100), 3);
        // Whose host accepts nothing any more moves, by the list, and waits at the next host of it.
        fixture.set(0, 0, Nothing);
        assert_eq!(fixture.ack(client(1), 900), lost);
        fixture.fake.set_next_hop(0, 1, 0);
        assert_eq!(fixture.ack(client(1), 900), Ok(3), "given up");
        fixture.set(0, 0, All);
        fixture.fake.set_next_hop(0, 0, 1);
        fixture.fake.set_next_hop(0, 1, 1);
        for (port, at) in [(1, 1), (3, 2), (4, 3)] {
            assert_eq!(fixture.ack(client(port), 50_000), Ok(at), "there again");
        }
        assert_eq!(fixture.datagram(client(1)), Ok(1));
    }
}

#[test]
fn a_handshake_across_the_owners_return_stays_where_it_began() {
    let mut fixture = Fixture::two_regions();
    fixture.set(0, 0, Nothing);
    fixture.set(0, 1, Nothing);
    assert_eq!(fixture.syn(client(1), 100), Ok(3));
    fixture.set(0, 0, All);
    assert_eq!(fixture.syn(client(1), 100), Ok(3), "repeated after the return");
    assert_eq!(fixture.ack(client(1), 101), Ok(3));
    assert_eq!(fixture.ack(client(1), 200_000), Ok(3));
    assert_eq!(fixture.counters(0), [1, 0, 0, 1, 0, 0]);
}

/// An hour at `rate` connections a second while region 0 is dead; each is used for 100 s. The daemon
/// looks every ten seconds. Returns the connections that are still in use, each with whether it has a cell, and the most
/// cells there ever were.
fn an_hour_of_outage(fixture: &mut Fixture, rate: u16) -> (VecDeque<(u16, u64, bool)>, usize) {
    let (mut open, mut most, mut port) = (VecDeque::new(), 0, 0_u16);
    fixture.set(0, 0, Nothing);
    fixture.set(0, 1, Nothing);
    for second in 0..3_600_u64 {
        for _ in 0..rate {
            port = port.wrapping_add(1);
            let number = second as u32 * 1_000_000;
            assert_eq!(fixture.open(client(port), number), 3, "second {second}");
            open.push_back((port, second, fixture.displaced(client(port)).is_some()));
        }
        while open.front().is_some_and(|&(_, since, _)| since + 100 < second) {
            open.pop_front();
        }
        if second % 10 == 9 {
            fixture.daemon();
            let &(port, since, _) = &open[open.len() / 2];
            let sequence = since as u32 * 1_000_000 + 700_000;
            assert_eq!(fixture.ack(client(port), sequence), Ok(3));
        }
        most = most.max(fixture.displaced_count());
        fixture.sleep(1);
    }
    fixture.set(0, 0, All);
    fixture.set(0, 1, All);
    (open, most)
}

#[test]
fn an_hour_of_a_dead_region_with_room_for_all_then_its_return() {
    let mut fixture = Fixture::two_regions();
    // Five a second, each known for twelve minutes: a third of 10,800 cells.
    fixture.fake.set_buckets(1 << 12);
    let (open, most) = an_hour_of_outage(&mut fixture, 5);
    // 671 units of 1.0737 s are 720.5 s.
    assert!((5 * 720..=5 * 723).contains(&most), "{most}, and not the 18,000 of the hour");
    assert_eq!(open.len(), 5 * 101, "still in use");
    for &(port, since, _) in &open {
        let sequence = since as u32 * 1_000_000 + 800_000;
        assert_eq!(fixture.ack(client(port), sequence), Ok(3), "after the return");
    }
    assert_eq!(fixture.open(client(65_000), 77), 1, "new ones are at home again");
    assert_eq!(
        fixture.events(),
        [(Event::FlowTaken, 18_000)],
        "each had a cell, and nothing else happened"
    );
    // Twelve minutes after the last packet the outage is forgotten.
    fixture.sleep(730);
    fixture.daemon();
    assert!(!fixture.has_displaced());
}

#[test]
fn an_hour_of_a_dead_region_without_room_then_its_return() {
    let mut fixture = Fixture::two_regions();
    fixture.fake.set_buckets(1 << 8);
    // Ten a second, for each twelve minutes, in 1,024 cells, of which one pool alone has half: no connection is held at a
    // home that accepts nothing. While it stays dead all are fine; at its return those without a cell go home, each of
    // them counted.
    let (open, most) = an_hour_of_outage(&mut fixture, 10);
    assert!((512..=524).contains(&most), "{most}");
    let (kept, lost): (Vec<_>, Vec<_>) = open.iter().partition(|(.., has_cell)| *has_cell);
    assert!(lost.len() >= 500, "{} {}", kept.len(), lost.len());
    fixture.sleep(70);
    for &&(port, since, has_cell) in kept.iter().chain(&lost) {
        let sequence = since as u32 * 1_000_000 + 800_000;
        let expected = if has_cell { 3 } else { 1 };
        assert_eq!(fixture.ack(client(port), sequence), Ok(expected));
    }
    let events = fixture.events();
    assert_eq!(
        events.iter().map(|(event, _)| *event).collect::<Vec<_>>(),
        [Event::FlowTaken, Event::FlowNoRoom, Event::DisplacedWithoutCell]
    );
    assert_eq!(events[0].1 + events[1].1, 36_000);
    assert_eq!(events[2].1, events[1].1, "each was counted when it began");
}

/// What the daemon publishes while region 0 is dead from second 0 to 3,600: after a settle time of 60 s it is marked out,
/// and at its return it comes back; each time the remap lasts another.
fn versions(second: u64) -> PoolWord {
    match second {
        60..120 => PoolWord::new(1, 2),
        120..3_600 => PoolWord::new(2, 0),
        3_600..3_660 => PoolWord::new(2, 1),
        _ => PoolWord::new(1, 0),
    }
}

#[test]
fn an_hour_of_a_dead_region_at_any_rate_where_it_is_marked_out() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    // As above, ten a second; but there is room for what two settle times displace.
    fixture.set(0, 0, Nothing);
    fixture.set(0, 1, Nothing);
    let (mut open, mut port, mut at_rest) = (VecDeque::new(), 0_u16, 0);
    for second in 0..4_800_u64 {
        if second == 3_600 {
            fixture.set(0, 0, All);
            fixture.set(0, 1, All);
        }
        fixture.publish(versions(second));
        for _ in 0..if second < 3_800 { 10 } else { 0 } {
            port = port.wrapping_add(1);
            let number = (second as u32).wrapping_mul(1_000_000);
            let to = fixture.open(client(port), number);
            assert_eq!(to, if second < 3_600 { 3 } else { 1 }, "second {second}");
            open.push_back((port, second, to));
        }
        while open.front().is_some_and(|&(_, since, _)| since + 100 < second) {
            open.pop_front();
        }
        if second % 10 == 9 {
            fixture.daemon();
            for &(port, since, to) in &open {
                let sequence = (since as u32).wrapping_mul(1_000_000) + 700_000;
                assert_eq!(fixture.ack(client(port), sequence), Ok(to), "second {second}");
            }
        }
        // Cells are known for twelve minutes.
        if (1_100..3_600).contains(&second) {
            assert!(!fixture.has_displaced(), "second {second}: region 1 is home");
            assert_eq!(fixture.displaced_count(), 0);
            at_rest += 1;
        }
        fixture.sleep(1);
    }
    assert_eq!(at_rest, 2_500);
    // Ten a second for two settle times, and for one at the return with what was then open.
    let events = fixture.events();
    let count = |event| events.iter().find(|it| it.0 == event).map_or(0, |it| it.1);
    assert_eq!(count(Event::FlowNoRoom) + count(Event::RemapNoRoom), 0);
    assert_eq!(count(Event::FlowTaken), 10 * (120 + 60));
    assert!((900..=1_010).contains(&count(Event::RemapTaken)), "{events:?}");
    assert!(!fixture.has_displaced() && fixture.displaced_count() == 0);
}
