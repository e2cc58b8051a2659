//! Forged packets, as many as a flood brings: what they do to the connections of others, and what others pay for them.
//!
//! Tables and rates are smaller by the same factor: 4,096 cells and 390 packets a second are as a million cells, the
//! default, and 100,000 packets a second.

use std::collections::VecDeque;

use lb_common::{
    abi::{
        counter::Event,
        limiter::LimitWord,
        member::Accepts::{All, OpenOnly},
        pool::{LIMITED, PoolWord},
        service::SERVICE_TRACKED,
    },
    flow_hash::FlowHash,
};

use crate::flow_table::{random, stranger};
use lb_common_fake::{
    FakeTables, POOL,
    fixture::{ACK, Client, Fixture, NONE, SECOND, SYN, VIP_V4, client},
};

/// Time between two packets of a flood of 100,000 a second.
const FLOOD: u64 = SECOND / 390;

/// Whether a packet of an open connection looks for a cell.
fn looks_up(fixture: &Fixture, client: Client, sequence: u32) -> bool {
    let before = fixture.fake.looked_up.get();
    fixture.ack(client, sequence).unwrap();
    fixture.fake.looked_up.get() > before
}

/// The zone of a client's flow, counted from the pool's first one.
fn zone(fixture: &Fixture, client: Client) -> u32 {
    FlowHash::new(&fixture.flow(client), &fixture.fake.descriptors[1].hash_key)
        .slot(FakeTables::ZONES)
}

/// How many zones may have cells.
fn zones_on(fixture: &Fixture) -> usize {
    fixture.fake.zones.borrow().values().filter(|zone| zone.has_displaced()).count()
}

#[test]
fn syns_just_over_a_capacity_make_only_packets_of_their_zones_look_up_and_only_for_a_minute() {
    let mut fixture = Fixture::two_regions();
    let at_home: Vec<Client> = (1..=600).map(client).collect();
    for client in &at_home {
        assert_eq!(fixture.open(*client, 100), 1);
    }
    fixture.limit(0, 10, 10);
    let (mut state, mut over) = (0x2545_f491_4f6c_dd1d, 0);
    // Eleven SYNs a second where ten are admitted.
    for _ in 0..110 {
        over += u32::from(fixture.syn(stranger(&mut state), 7) == Ok(3));
        fixture.sleep_ns(SECOND / 11);
    }
    assert!((1..=14).contains(&over), "{over} are over the capacity");
    assert!((1..=over as usize).contains(&zones_on(&fixture)));
    let looking: Vec<_> = at_home.iter().filter(|it| looks_up(&fixture, **it, 5_000)).collect();
    let is_on = |at: &Client| {
        let zones = fixture.fake.zones.borrow();
        zones.get(&(100 * POOL + zone(&fixture, *at))).is_some_and(|zone| zone.has_displaced())
    };
    assert!(
        looking.iter().all(|client| is_on(client)),
        "a packet looked up in a zone without cells"
    );
    assert!((1..=600 * 14 / 64).contains(&looking.len()), "{} of 600 look up", looking.len());
    // Not for ten minutes: the SYNs were never connections.
    fixture.sleep(70);
    fixture.daemon();
    assert!(!fixture.has_displaced() && zones_on(&fixture) == 0);
    assert!(!at_home.iter().any(|client| looks_up(&fixture, *client, 6_000)));
}

#[test]
fn syns_that_a_pool_with_limits_takes_at_home_make_no_packet_look_up() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.open(client(1), 100), 1);
    fixture.limit(0, 1_000, 1_000);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..500 {
        assert_eq!(fixture.syn(stranger(&mut state), 7), Ok(1));
    }
    assert_eq!(fixture.counted(Event::FlowTaken), 500, "each so that a repeat of it goes home too");
    assert!(!fixture.has_displaced() && !looks_up(&fixture, client(1), 5_000));
}

/// A second pool, whose service has port 443, with the first one's limit at home.
fn two_pools() -> (Fixture, u32) {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let mut fake = FakeTables::new(&[list(), list()], 4).with_service(VIP_V4, 80, 6, 0);
    let pool = fake.add_pool(&[list(), list()], 4);
    fake.add_service(VIP_V4, (443, 6), 0, pool);
    let mut fixture = Fixture::with(fake);
    for region in [0, 2] {
        fixture.set_limit(region, LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, 1));
    }
    (fixture, pool)
}

/// Pairs of a forged SYN and a forged ACK are connections to the packet path. Those of one pool end the overflow of that pool
/// at the latest when half of the table is theirs, and of no other pool.
#[test]
fn forged_pairs_at_one_pool_leave_the_other_pools_room() {
    const ROUNDS: u32 = 1_000;
    let (fixture, pool) = two_pools();
    let to = |port, n: u32, flags, sequence| {
        let client = Client([172, 16, (n >> 8) as u8, n as u8], 2_000);
        fixture.send_to(port, client, flags, sequence)
    };
    // Of both pools connections that overflowed before.
    let number = |n: u32| n.wrapping_mul(4_000_000);
    for n in 0..100 {
        for (port, at) in [(80, [1, 3]), (443, [5, 7])] {
            let at = if n == 0 { at[0] } else { at[1] };
            assert_eq!(to(port, n, SYN, number(n)), Ok(at));
            assert_eq!(to(port, n, ACK, number(n) + 1), Ok(at));
        }
    }
    let mut state = 0x2545_f491_4f6c_dd1d;
    let (mut overflowed, mut at_home, mut lost, mut handshakes) = (0, 0, 0, VecDeque::new());
    for round in 0..ROUNDS {
        for _ in 0..39 {
            let (from, number) = (stranger(&mut state), (random(&mut state) >> 32) as u32);
            fixture.syn(from, number).unwrap();
            fixture.ack(from, number.wrapping_add(1)).unwrap();
            fixture.sleep_ns(FLOOD);
        }
        if round % 200 == 199 {
            fixture.daemon();
        }
        if round % 3 != 0 {
            continue;
        }
        // Every 300 ms an honest connection at each pool, whose round trip takes as long.
        let n = 1_000 + round;
        let went = to(443, n, SYN, number(n)).unwrap();
        let same_pool = to(80, n, SYN, number(n)).unwrap();
        handshakes.push_back((n, went, same_pool));
        if handshakes.len() > 1
            && let Some((n, went, same_pool)) = handshakes.pop_front()
        {
            lost += u32::from(to(443, n, ACK, number(n) + 1) != Ok(went));
            lost += u32::from(to(80, n, ACK, number(n) + 1) != Ok(same_pool));
        }
        overflowed += u32::from(went == 7);
        at_home += u32::from(went == 5);
        if round % 30 == 0 {
            for n in 0..100 {
                let at = if n == 0 { [1, 5] } else { [3, 7] };
                assert_eq!(to(80, n, ACK, number(n) + 900 + round), Ok(at[0]), "{n}");
                assert_eq!(to(443, n, ACK, number(n) + 900 + round), Ok(at[1]), "{n}");
            }
        }
    }
    let counts = &fixture.fake.flow_counts;
    let room = u64::from(4 * FakeTables::BUCKETS);
    assert!(counts[POOL as usize].get() > room * 3 / 8, "the flood has what a pool may have");
    assert!(counts[0].get() < room * 3 / 4, "and not all");
    // One finds home with room again.
    assert_eq!((overflowed, at_home), (ROUNDS / 3, 1), "the other pool overflows as before");
    // Where seven of a flow's eight cells are open, the next SYN takes the eighth.
    assert!(lost <= 1, "{lost} handshakes were lost");
    assert_eq!(fixture.counted(Event::DisplacedWithoutCell), 0);
    let counted = fixture.counters(2);
    assert_eq!(counted[5], 0, "pool {pool} held a connection over its capacity: {counted:?}");
}

/// Of SYNs that overflow while others come, those whose cell is another flow's when their handshake of 308 ms is over: how
/// many of how many.
fn lost_handshakes(per_second: u64) -> (u32, u32) {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    let (mut state, mut handshakes) = (0x9e37_79b9_7f4a_7c15, VecDeque::new());
    let (mut tried, mut lost) = (0, 0);
    for n in 0..40_000_u32 {
        let from = stranger(&mut state);
        let to = fixture.syn(from, n).unwrap();
        if to == 3 {
            handshakes.push_back((fixture.fake.now.get() + 308_000_000, from));
        }
        fixture.sleep_ns(SECOND * 256 / per_second);
        while handshakes.front().is_some_and(|(end, _)| *end < fixture.fake.now.get())
            && let Some((_, from)) = handshakes.pop_front()
        {
            // Once the table is full.
            if n > 8_000 {
                tried += 1;
                lost += u32::from(fixture.displaced(from) != Some(3));
            }
        }
    }
    assert!(fixture.fake.cells().all(|(owner, _)| owner.0 != 0), "the table is full");
    (lost, tried)
}

/// Where a flood of SYNs takes half-open cells of others, a handshake keeps its own for the time it takes.
#[test]
fn a_flood_of_syns_leaves_handshakes_their_cells() {
    for (per_second, thousandths) in [(200_000, 0), (400_000, 1), (800_000, 50)] {
        let (lost, tried) = lost_handshakes(per_second);
        assert!(tried > 30_000 && lost <= tried * thousandths / 1_000, "{lost} of {tried}");
    }
}

/// Of `tries` evenly spaced numbers those by which a forged SYN and an ACK move a connection that has come to `at`.
/// `is_away`: it was displaced, else it is at its full home. Each pair meets the connection as it was before.
fn moving_pairs(is_away: bool, at: u32, tries: u32) -> Vec<i32> {
    let mut moving = Vec::new();
    for number in (0..tries).map(|n| n * (u32::MAX / tries) + 77) {
        let mut fixture = Fixture::two_regions();
        fixture.fake.set_buckets(2);
        fixture.room_at_home(1);
        if is_away {
            assert_eq!(fixture.open(client(9), 5), 1);
        }
        let stays = if is_away { 3 } else { 1 };
        assert_eq!(fixture.open(client(1), at.wrapping_sub(300)), stays);
        assert_eq!(fixture.ack(client(1), at), Ok(stays));
        fixture.sleep(70);
        assert_eq!(fixture.ack(client(1), at), Ok(stays));
        fixture.room_at_home(0);
        // The forged SYN goes to a backend of its own.
        fixture.set(0, 0, OpenOnly);
        fixture.set(1, 0, OpenOnly);
        fixture.syn(client(1), number).unwrap();
        assert_eq!(fixture.ack(client(1), at), Ok(stays), "a SYN alone moves it");
        fixture.syn(client(1), number.wrapping_add(9_000_000)).unwrap();
        assert_eq!(fixture.ack(client(1), at), Ok(stays), "two SYNs move it");
        fixture.ack(client(1), number.wrapping_add(1)).unwrap();
        if fixture.ack(client(1), at) != Ok(stays) {
            moving.push(number.wrapping_sub(at).cast_signed());
        }
        fixture.set(0, 0, All);
    }
    moving
}

/// An attacker who knows addresses and ports, but not the number, has to try: a pair near a connection's number moves it if it
/// is at home and has no cell. That is 272 MiB of 4 GiB.
#[test]
fn a_forged_pair_moves_a_connection_at_its_full_home_only_near_its_number() {
    for at in [0x1234_5678, 0xffff_ff00] {
        let moving = moving_pairs(false, at, 512);
        assert!(
            (32..=34).contains(&moving.len()),
            "{} of 512 numbers move it {moving:?}",
            moving.len()
        );
        let near = -(16 << 20)..=256 << 20;
        assert!(moving.iter().all(|ahead| near.contains(ahead)), "{moving:?}");
    }
}

/// A connection's own cell is nearer.
#[test]
fn a_forged_pair_does_not_move_a_connection_that_has_a_cell() {
    assert_eq!(moving_pairs(true, 0x1234_5678, 512), []);
}

/// Datagrams from random sources at a tracking service, one from each. Of flows that had their first datagram a tenth of a
/// second ago those that have no cell any more, and of how many; flows that had two keep theirs.
fn forgotten_flows(per_second: u64) -> (u32, u32) {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let fake = FakeTables::new(&[list(), list()], 4);
    let mut fixture = Fixture::with(fake.with_service(VIP_V4, 53, 17, SERVICE_TRACKED | 112 << 16));
    // Where home is full a new flow goes elsewhere, and goes home when it is forgotten.
    let begin = |fixture: &mut Fixture, client| {
        fixture.set_limit(0, LimitWord::CLOSED);
        let went = fixture.datagram(client);
        fixture.set_limit(0, LimitWord::UNLIMITED);
        assert_eq!(went, Ok(3));
    };
    for n in 1..=300 {
        begin(&mut fixture, client(n));
        assert_eq!(fixture.datagram(client(n)), Ok(3));
    }
    let (mut state, mut begun, mut tried, mut lost) =
        (0x2545_f491_4f6c_dd1d, VecDeque::new(), 0, 0);
    for n in 0..40_000_u32 {
        let from = stranger(&mut state);
        assert_eq!(fixture.datagram(from), Ok(1));
        begun.push_back((fixture.fake.now.get() + SECOND / 10, from));
        fixture.sleep_ns(SECOND * 256 / per_second);
        if n % 10 == 0 {
            assert_eq!(fixture.datagram(client(1 + (n % 3_000 / 10) as u16)), Ok(3), "after {n}");
        }
        while begun.front().is_some_and(|(end, _)| *end < fixture.fake.now.get())
            && let Some((_, from)) = begun.pop_front()
        {
            // Once the table is full.
            if n > 8_000 {
                tried += 1;
                lost += u32::from(fixture.tracked(from).is_none());
            }
        }
    }
    for n in 1..=300 {
        assert_eq!(fixture.datagram(client(n)), Ok(3), "flow {n}");
    }
    (lost, tried)
}

/// The least recent half-open flow of eight loses its cell, by a clock of seconds: of a million flows a second, as many as the
/// default table has cells, a twentieth has lost it after a tenth of a second.
#[test]
fn spoofed_datagrams_make_no_tracked_flow_forgotten() {
    for (per_second, thousandths) in [(250_000, 0), (1_000_000, 50)] {
        let (lost, tried) = forgotten_flows(per_second);
        assert!(tried > 30_000 && lost <= tried * thousandths / 1_000, "{lost} of {tried}");
    }
}

/// One region of eight members, and as many slots as zones.
fn eight_members() -> Fixture {
    let lists = (0..FakeTables::ZONES as u16).map(|slot| {
        let owner = slot * 5 % 8;
        [owner, (owner + 1) % 8, (owner + 2) % 8, NONE]
    });
    Fixture::with(FakeTables::new(&[(lists.collect(), 8)], 4).with_service(VIP_V4, 80, 6, 0))
}

#[test]
fn in_a_remap_packets_of_a_flow_that_keeps_its_home_look_nothing_up() {
    for flags in [0, LIMITED] {
        let mut fixture = eight_members();
        // Backend 3 is drained for long, and marked out.
        assert_eq!(fixture.fake.add_version(&[0], &[(0, 2)]), 2);
        fixture.fake.descriptors.iter_mut().for_each(|version| version.flags |= flags);
        let open: Vec<_> = (1..=400).map(|n| (client(n), fixture.open(client(n), 100))).collect();
        let moved = open.iter().filter(|(_, at)| *at == 3).count();
        assert!((30..80).contains(&moved), "{moved}");
        fixture.set(0, 2, OpenOnly);
        fixture.sleep(70);
        fixture.publish(PoolWord::new(1, 2));
        for sequence in [5_000, 6_000, 7_000] {
            for (client, at) in &open {
                let looked_up = looks_up(&fixture, *client, sequence);
                // The first packet of a zone takes a cell without a look.
                assert!(
                    looked_up == (*at == 3) || sequence == 5_000 && *at == 3,
                    "{client:?} at {at}"
                );
                assert_eq!(fixture.ack(*client, sequence), Ok(*at));
            }
            fixture.sleep(60);
            fixture.daemon();
        }
        // Nor once it is over: only those that were moved have cells.
        fixture.publish(PoolWord::new(2, 0));
        for (client, at) in &open {
            assert_eq!(looks_up(&fixture, *client, 8_000), *at == 3, "{client:?} at {at}");
            assert_eq!(fixture.ack(*client, 8_000), Ok(*at));
        }
        let taken = moved as u64;
        assert_eq!(fixture.counted(Event::RemapTaken), taken);
    }
}

/// Bare ACKs from random sources, four for each cell of the table, leave room for the connections that a remap moves: those
/// that send two packets while their cell is not yet the oldest.
#[test]
fn forged_acks_leave_room_for_connections_that_a_remap_moves() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    fixture.fake.set_buckets(1 << 11);
    let number = |n: u16| u32::from(n) * 4_000_000;
    for n in 1..=1_000 {
        assert_eq!(fixture.open(client(n), number(n)), 1);
    }
    fixture.publish(PoolWord::new(1, 2));
    let (mut state, mut moved) = (0x9e37_79b9_7f4a_7c15, 0);
    for n in 0..32_000_u32 {
        let to = fixture.ack(stranger(&mut state), (random(&mut state) >> 32) as u32);
        assert_eq!(to, Ok(1));
        fixture.sleep_ns(4_000_000);
        // In the second half, when the table is full.
        if n >= 16_000 && n % 16 == 0 {
            moved += 1;
            assert_eq!(fixture.ack(client(moved), number(moved) + 1_000), Ok(1));
        }
        // 200 ms later, its next segment.
        if n >= 16_000 && n % 16 == 2 && moved > 3 {
            assert_eq!(fixture.ack(client(moved - 3), number(moved - 3) + 3_000), Ok(1));
        }
    }
    assert_eq!(moved, 1_000);
    fixture.publish(PoolWord::new(2, 0));
    let lost = (1..moved - 3).filter(|&n| fixture.ack(client(n), number(n) + 5_000) != Ok(1));
    assert_eq!(lost.count(), 0);
    assert_eq!(fixture.counted(Event::RemapNoRoom), 0);
}

/// Connections that a remap of ten minutes resets, of 200 of which each sends two packets within a second, once: forged
/// flows send two as well, so many as the table has cells within `seconds`.
fn lost_to_forged_flows(seconds: u64) -> usize {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    let number = |n: u16| u32::from(n) * 8_000_000;
    for n in 0..200 {
        assert_eq!(fixture.open(client(n), number(n)), 1);
    }
    fixture.publish(PoolWord::new(1, 2));
    let (mut state, mut forged) = (0x9e37_79b9_7f4a_7c15, 0);
    for second in 0..600_u64 {
        while forged * seconds < second * u64::from(4 * FakeTables::BUCKETS) {
            forged += 1;
            let (from, number) = (stranger(&mut state), (random(&mut state) >> 32) as u32);
            for beyond in [0, 1_000] {
                assert_eq!(fixture.ack(from, number.wrapping_add(beyond)), Ok(1));
            }
        }
        let n = (second / 3) as u16;
        if second % 3 < 2 {
            assert_eq!(fixture.ack(client(n), number(n) + 1_000 * second as u32), Ok(1));
        }
        fixture.sleep(1);
        if second % 20 == 0 {
            fixture.daemon();
        }
    }
    fixture.publish(PoolWord::new(2, 0));
    (0..200).filter(|&n| fixture.ack(client(n), number(n) + 700_000) != Ok(1)).count()
}

/// Forged flows that send twice are connections to the packet path, and those of one pool have half of the table at most. No
/// connection is reset while the settle time is too short for that: 749 forged flows a second, by default. At as many as the
/// table has cells within a settle time, half of those connections are that send late.
#[test]
fn forged_flows_that_send_twice_reset_nothing_until_they_have_half_of_the_table() {
    for (seconds, most) in [(1_400, 0), (600, 110)] {
        let lost = lost_to_forged_flows(seconds);
        assert!(lost <= most, "{lost} of 200 at a table in {seconds} s");
    }
}
