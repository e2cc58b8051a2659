//! The flow table when it is short of room, lied to, or read by a clock that is behind.

use std::collections::VecDeque;

use lb_common::{
    abi::{
        counter::Event,
        limiter::LimitWord,
        pool::PoolWord,
        service::{SERVICE_REJECTS, SERVICE_TRACKED},
    },
    flow_table::{Owner, Place},
};

use lb_common_fake::{
    FakeTables, POOL,
    fixture::{Client, Fixture, NONE, SECOND, client},
};

/// Pseudorandom numbers (xorshift64).
pub(crate) fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

pub(crate) fn stranger(state: &mut u64) -> Client {
    let [a, b, c, d, p, q, ..] = random(state).to_be_bytes();
    Client([10 | a & 1, b, c, d], u16::from_be_bytes([p, q]))
}

/// 4,000 new connections a second at a full home, whose round trips take 20 to 150 ms: each has its cell before its SYN
/// leaves, so that none is placed elsewhere and not remembered there.
#[test]
fn connections_that_overflow_are_remembered_whatever_their_round_trip() {
    const RATE: u64 = 4_000;
    let mut fixture = Fixture::two_regions();
    fixture.fake.set_buckets(1 << 15);
    fixture.room_at_home(1);
    let (mut state, mut handshakes, mut open) =
        (0x2545_f491_4f6c_dd1d, VecDeque::new(), Vec::new());
    assert_eq!(fixture.open(client(1), 100), 1);
    let start = fixture.fake.now.get();
    for n in 0..5 * RATE {
        let client = Client([10, 1, (n >> 14) as u8, (n >> 6) as u8], 1_000 + (n & 63) as u16);
        let number = (random(&mut state) >> 32) as u32;
        let to = fixture.syn(client, number).unwrap();
        let round_trip = (20 + random(&mut state) % 130) * 1_000_000;
        handshakes.push_back((fixture.fake.now.get() + round_trip, client, number, to));
        fixture.fake.now.set(start + n * SECOND / RATE);
        while let Some(&(at, client, number, to)) = handshakes.front()
            && at <= fixture.fake.now.get()
        {
            handshakes.pop_front();
            // An upload begins: its first flight, and what follows.
            for beyond in [1, 14_601, 29_201, 900_000] {
                assert_eq!(fixture.ack(client, number.wrapping_add(beyond)), Ok(to));
            }
            open.push((client, number, to));
        }
    }
    let away = open.iter().filter(|(.., to)| *to == 3).count();
    assert!(away as u64 > 4 * RATE, "{away} connections are away");
    // Home has room for all of them again: whoever is not remembered would go there.
    fixture.set_limit(0, LimitWord::UNLIMITED);
    for (client, number, to) in open {
        assert_eq!(fixture.ack(client, number.wrapping_add(1_900_000)), Ok(to));
    }
    assert_eq!(fixture.counted(Event::FlowNoRoom), 0);
}

/// Bare ACKs from random sources during a remap take cells that anybody may take again. Connections that send two packets
/// keep theirs, as far as two buckets have room.
#[test]
fn forged_acks_during_a_remap_take_no_connections_cell() {
    let mut fixture = Fixture::two_regions();
    assert_eq!(fixture.fake.add_version(&[1, 0], &[]), 2);
    // Twice as many cells as forged packets.
    fixture.fake.set_buckets(1 << 15);
    let number = |n: u16| u32::from(n) * 8_000_000;
    for n in 1..=500 {
        assert_eq!(fixture.open(client(n), number(n)), 1);
    }
    fixture.publish(PoolWord::new(1, 2));
    let (mut state, mut far) = (0x9e37_79b9_7f4a_7c15, 0);
    for n in 0..60_000_u64 {
        let to = fixture.ack(stranger(&mut state), (random(&mut state) >> 32) as u32);
        assert_eq!(to, Ok(1));
        fixture.sleep_ns(1_000_000);
        if n % 60 == 59 {
            let at = (n / 60 % 500) as u16 + 1;
            far = 1_000 + n as u32;
            assert_eq!(fixture.ack(client(at), number(at) + far), Ok(1));
        }
    }
    fixture.publish(PoolWord::new(2, 0));
    for n in 1..=500 {
        assert_eq!(fixture.ack(client(n), number(n) + far), Ok(1), "connection {n}");
    }
}

/// Another CPU's clock may be a tick ahead, into the next unit.
#[test]
fn a_time_that_is_a_tick_ahead_is_no_time_long_ago() {
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let fake = FakeTables::new(&[list(), list()], 4);
    let flags = SERVICE_TRACKED | 56 << 16;
    let mut fixture = Fixture::with(fake.with_service("198.51.100.1", 53, 17, flags));
    fixture.room_at_home(1);
    assert_eq!(fixture.datagram(client(1)), Ok(1));
    let unit = 1_u64 << 30;
    fixture.fake.now.set((fixture.fake.now.get() / unit + 5) * unit);
    assert_eq!(fixture.datagram(client(2)), Ok(3), "home is full");
    fixture.fake.now.set(fixture.fake.now.get() - 1);
    for _ in 0..2 {
        assert_eq!(fixture.datagram(client(2)), Ok(3));
    }
    assert_eq!(fixture.tracked_count(), 2);
}

#[test]
fn a_new_hash_key_finds_handshakes_from_before() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.syn(client(1), 100), Ok(1));
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    let version = fixture.fake.add_version(&[0, 1], &[]);
    fixture.fake.descriptors[version as usize].hash_key = [77, 78];
    fixture.publish(PoolWord::new(1, version));
    assert_eq!(fixture.syn(client(2), 500), Ok(3), "repeated");
    assert_eq!(fixture.counters(0), [2, 1, 0, 1, 0, 0], "and not counted again");
    fixture.publish(PoolWord::new(version, 0));
    for (port, number, at) in [(1, 101, 1), (2, 501, 3)] {
        assert_eq!(fixture.ack(client(port), number), Ok(at));
        assert_eq!(fixture.ack(client(port), number + 90_000), Ok(at));
    }
}

#[test]
fn where_only_the_member_is_full_nobody_is_refused() {
    let mut fixture = Fixture::two_regions();
    for service in fixture.fake.services.values_mut() {
        service.flags |= SERVICE_REJECTS;
    }
    fixture.limit(0, 1_000, 100);
    let limiter = fixture.fake.limiters.len() as u32;
    let limit = LimitWord::new(60 * SECOND * LimitWord::PER_NANOSECOND, 1);
    fixture.fake.limiters.push((limit.into(), 0.into()));
    fixture.fake.member_limiters.insert(0, limiter);
    fixture.fake.members[0] = fixture.fake.members[0].with_limit(true);
    assert_eq!(fixture.open(client(1), 1), 1);
    assert_eq!(fixture.open(client(2), 1), 2, "the region has room");
    fixture.fill();
    assert_eq!(fixture.syn(client(3), 1), Ok(1), "and no cell: home is over its own limit");
    assert_eq!(fixture.counters(0), [3, 3, 0, 0, 0, 1]);
}

/// Above half of the table no pool has more than an eighth.
#[test]
fn a_pool_that_has_its_share_of_a_full_table_takes_no_more() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    let room = u64::from(4 * FakeTables::BUCKETS);
    let counts = &fixture.fake.flow_counts;
    let counted = [(room / 2, room / 2, 3), (room, room / 8, 3), (room / 2 + 1, room / 8 + 1, 1)];
    for (port, (all, its, to)) in (2..).zip(counted) {
        counts[0].set(all);
        counts[POOL as usize].set(its);
        assert_eq!(fixture.syn(client(port), 500), Ok(to), "{all} and {its}: home is full");
    }
    // What is half-open does not count: anybody may take its cell.
    assert_eq!((counts[0].get(), counts[POOL as usize].get()), (room / 2 + 1, room / 8 + 1));
    assert_eq!(fixture.ack(client(2), 501), Ok(3), "what has a cell keeps it");
    assert_eq!(counts[POOL as usize].get(), room / 8 + 1, "but others may take it");
    counts[POOL as usize].set(room / 8);
    assert_eq!(fixture.ack(client(2), 502), Ok(3));
    assert_eq!((counts[0].get(), counts[POOL as usize].get()), (room / 2 + 2, room / 8 + 1));
}

/// A forger may send all SYNs first: their cells are anybody's, and do not count. What then opens them stops at the pool's
/// share, so that other pools have room, and connections of this pool stay known while nobody needs their cells.
#[test]
fn forged_handshakes_of_one_pool_leave_half_of_the_table() {
    let mut fixture = Fixture::two_regions();
    fixture.room_at_home(1);
    assert_eq!(fixture.open(client(1), 100), 1);
    let cells = fixture.fake.cells().count() as u64;
    let strangers = || {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        (0..4 * cells).map(move |_| stranger(&mut state))
    };
    for forged in strangers() {
        assert_eq!(fixture.syn(forged, 7_000), Ok(3), "home is full");
    }
    assert_eq!(fixture.syn(client(2), 500), Ok(3));
    for forged in strangers() {
        fixture.ack(forged, 7_001).unwrap();
    }
    let open = |(owner, _): &(Owner, Place)| owner.0 != 0 && !owner.is_half_open();
    let opened = fixture.fake.cells().filter(open).count() as u64;
    assert!((cells / 2..=cells / 2 + 1).contains(&opened), "{opened} of {cells} are open");
    // The pool has its share; the handshake that was under way goes on, and is as good as open.
    for sequence in [501, 90_000, 4_000_000] {
        assert_eq!(fixture.ack(client(2), sequence), Ok(3));
    }
    fixture.sleep(300);
    assert_eq!(fixture.ack(client(2), 5_000_000), Ok(3));
    assert_eq!(fixture.fake.cells().filter(open).count() as u64, opened);
}
