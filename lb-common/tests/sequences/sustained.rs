//! What the default table sustains, in simulated time.
//!
//! Table and rates are smaller by the same factor, [`scale`], so that a bucket sees as many connections as in a table of the
//! default size, times are as they are, and a run takes seconds. What is lost for want of room would be so many times as
//! much. `FLOW_TABLE_SCALE=1` runs the whole, which a release build does in minutes.
//!
//! The daemon's walk takes a second for each 65,536 cells and rests for five: 21 s for the default table.

use std::{cmp::Reverse, collections::BinaryHeap};

use lb_common::abi::{
    counter::Event,
    member::Accepts::{All, OpenOnly},
    pool::PoolWord,
};

use crate::flow_table::random;
use lb_common_fake::{
    FakeTables,
    fixture::{ACK, Client, FIN, Fixture, NONE, SECOND, VIP_V4, VIP_V6},
};

/// By how much rates and table are smaller.
fn scale(usual: u64) -> u64 {
    let set = std::env::var("FLOW_TABLE_SCALE").ok();
    set.map_or(usual, |set| set.parse().unwrap())
}

/// Cells of a table by default.
const CELLS: u64 = 1 << 20;
const ROUND_TRIP: u64 = SECOND / 10;
/// Time between two passes of the walk.
const WALK: u64 = 21 * SECOND;
/// Time between two packets of a connection that lasts, less than the ten minutes that are promised to idle ones.
const PAUSE: u64 = 290 * SECOND;
const PSH: u8 = 0x08;

/// An open connection.
#[derive(Clone, Copy, Debug)]
struct Connection {
    client: Client,
    next: u32,
    at: u32,
    /// When it ends; by a FIN, or by silence.
    end: u64,
    by_fin: bool,
    /// Its packets so far.
    packets: u64,
    has_ended: bool,
}

struct Load {
    fixture: Fixture,
    state: u64,
    /// When each connection sends next, by its place.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    connections: Vec<Connection>,
    /// Places of connections that have ended.
    free: Vec<usize>,
    begun: u64,
    /// Packets of connections that went elsewhere than their SYN.
    lost: u64,
    walked: u64,
    most: usize,
}

impl Load {
    fn new(mut fixture: Fixture, scale: u64) -> Self {
        fixture.fake.set_buckets((CELLS / 4 / scale) as u32);
        let walked = fixture.fake.now.get();
        Self {
            fixture,
            state: 0x2545_f491_4f6c_dd1d,
            due: BinaryHeap::new(),
            connections: Vec::new(),
            free: Vec::new(),
            begun: 0,
            lost: 0,
            walked,
            most: 0,
        }
    }

    /// Begins a connection of a client that no other one is of; returns its backend.
    fn begin(&mut self, life: u64, by_fin: bool) -> u32 {
        let n = self.begun as u32;
        self.begun += 1;
        let client =
            Client([10, (n >> 20) as u8, (n >> 12) as u8, (n >> 4) as u8], 4_000 + (n & 15) as u16);
        let number = (random(&mut self.state) >> 32) as u32;
        let at = self.fixture.syn(client, number).unwrap();
        let now = self.fixture.fake.now.get();
        let next = number.wrapping_add(1);
        let connection =
            Connection { client, next, at, end: now + life, by_fin, packets: 0, has_ended: false };
        let place = self.free.pop().unwrap_or(self.connections.len());
        if place == self.connections.len() {
            self.connections.push(connection);
        } else {
            self.connections[place] = connection;
        }
        self.due.push(Reverse((now + ROUND_TRIP, place)));
        at
    }

    /// Sends what connections send until a time, and walks through the table.
    fn run_to(&mut self, time: u64) {
        while let Some(&Reverse((at, place))) = self.due.peek()
            && at <= time
        {
            self.due.pop();
            self.walk(at);
            self.fixture.fake.now.set(at);
            self.send(place);
        }
        self.walk(time);
        self.fixture.fake.now.set(time);
    }

    fn walk(&mut self, time: u64) {
        while self.walked + WALK <= time {
            self.walked += WALK;
            self.fixture.fake.now.set(self.walked);
            self.most = self.most.max(self.fixture.displaced_count());
            self.fixture.daemon();
        }
    }

    /// The ACK of the handshake, a request a round trip later, a segment every so often, and at the end a FIN and the ACK of
    /// the other side's; or nothing more.
    fn send(&mut self, place: usize) {
        let now = self.fixture.fake.now.get();
        let connection = &mut self.connections[place];
        let is_last = connection.has_ended;
        let ends = !is_last && connection.packets >= 2 && now >= connection.end;
        if ends && !connection.by_fin {
            self.free.push(place);
            return;
        }
        let bits = match (ends, connection.packets) {
            (true, _) => ACK | FIN,
            (_, 0) => ACK,
            _ if is_last => ACK,
            _ => ACK | PSH,
        };
        let went = self.fixture.send(connection.client, bits, connection.next);
        self.lost += u64::from(went != Ok(connection.at));
        connection.next =
            connection.next.wrapping_add(if ends { 1 } else { 700 * u32::from(bits & PSH != 0) });
        connection.packets += 1;
        if is_last {
            self.free.push(place);
            return;
        }
        connection.has_ended = ends;
        let rest = connection.end.saturating_sub(now);
        let pause = match connection.packets {
            _ if ends => ROUND_TRIP,
            1 => ROUND_TRIP,
            _ if rest > 2 * PAUSE => PAUSE,
            2 => rest / 2,
            _ => rest,
        };
        self.due.push(Reverse((now + pause.max(ROUND_TRIP), place)));
    }

    fn counted(&self, events: &[Event]) -> u64 {
        events.iter().map(|event| self.fixture.counted(*event)).sum()
    }
}

/// In the family of an IP version.
fn fixture(regions: &[(Vec<[u16; 4]>, u8)], version: u8) -> Fixture {
    let vip = if version == 4 { VIP_V4 } else { VIP_V6 };
    Fixture::in_family(FakeTables::new(regions, version).with_service(vip, 80, 6, 0), version)
}

/// How long connections last: most a few seconds, some minutes, and one of a hundred until the end. One of twenty ends
/// without a FIN.
fn life(state: &mut u64) -> (u64, bool) {
    let draw = random(state) >> 32;
    let seconds = match draw % 100 {
        0 => 10_000,
        1..=9 => 120,
        _ => 30,
    };
    (seconds * SECOND, !(draw / 100).is_multiple_of(20))
}

/// A quarter of a pool is drained for an hour, at 4,000 new connections a second. It is marked out after the settle time, ten
/// minutes, by a remap that lasts another; and it comes back.
fn an_hour_of_a_drained_quarter(version: u8) {
    let scale = scale(512);
    let lists = (0..FakeTables::ZONES as u16).map(|slot| {
        let owner = slot * 7 % 4;
        [owner, (owner + 1 + slot / 16 % 3) % 4, (owner + 2) % 4, NONE]
    });
    let mut fixture = fixture(&[(lists.collect(), 4)], version);
    assert_eq!(fixture.fake.add_version(&[0], &[(0, 1)]), 2);
    let mut load = Load::new(fixture, scale);
    let start = load.fixture.fake.now.get();
    let mut to = [0_u64; 5];
    let (settle, hour) = (600, 3_600);
    for n in 0_u64.. {
        let passed = n * SECOND * scale / 4_000;
        load.run_to(start + passed);
        let second = passed / SECOND;
        let (state, word) = match second {
            0..60 => (All, PoolWord::new(1, 0)),
            _ if second < 60 + settle => (OpenOnly, PoolWord::new(1, 0)),
            _ if second < 60 + 2 * settle => (OpenOnly, PoolWord::new(1, 2)),
            _ if second < 60 + hour => (OpenOnly, PoolWord::new(2, 0)),
            _ if second < 60 + hour + settle => (All, PoolWord::new(2, 1)),
            _ => (All, PoolWord::new(1, 0)),
        };
        load.fixture.set(0, 1, state);
        load.fixture.publish(word);
        if second > 60 + hour + settle + 120 {
            break;
        }
        let (life, by_fin) = life(&mut load.state);
        let at = load.begin(life, by_fin);
        to[at as usize] += u64::from((60..60 + hour).contains(&second));
    }
    let all = CELLS / scale;
    println!(
        "IPv{version}, 1/{scale}: {} connections, {} packets went elsewhere, at most {} of {all} cells, {:?}",
        load.begun,
        load.lost,
        load.most,
        load.fixture.events(),
    );
    assert_eq!(load.lost, 0);
    let short =
        [Event::FlowNoRoom, Event::RemapNoRoom, Event::DisplacedWithoutCell, Event::HeldAtHome];
    assert_eq!(load.counted(&short), 0);
    assert_eq!(to[2], 0, "nothing new at the drained backend");
    assert!(to[1].min(to[3]).min(to[4]) > 3_600 * 4_000 / scale / 4, "{to:?}");
    assert!((load.most as u64) < all / 3, "{} of {all} cells", load.most);
}

#[test]
fn an_hour_of_a_drained_quarter_breaks_nothing_v4() {
    an_hour_of_a_drained_quarter(4);
}

#[test]
fn an_hour_of_a_drained_quarter_breaks_nothing_v6() {
    an_hour_of_a_drained_quarter(6);
}

/// 2,000 connections a second overflow, of 30 s each, for 10 minutes.
fn overflow(version: u8) {
    let scale = scale(128);
    let list = || (vec![[0, 1, NONE, NONE]], 2);
    let mut fixture = fixture(&[list(), list()], version);
    fixture.room_at_home(1);
    let mut load = Load::new(fixture, scale);
    let start = load.fixture.fake.now.get();
    let mut overflowing = 0;
    for n in 0..2_000 * 600 / scale {
        load.run_to(start + n * SECOND * scale / 2_000);
        overflowing += u64::from(load.begin(30 * SECOND, true) == 3);
    }
    let all = CELLS / scale;
    println!(
        "IPv{version}, 1/{scale}: {overflowing} of {} connections overflowed, {} packets went elsewhere, at most {} of \
         {all} cells, {:?}",
        load.begun,
        load.lost,
        load.most,
        load.fixture.events(),
    );
    assert_eq!(load.lost, 0);
    let short = [Event::FlowNoRoom, Event::DisplacedWithoutCell, Event::HeldAtHome];
    assert_eq!(load.counted(&short), 0);
    // One a minute is admitted at home.
    assert!(overflowing + 11 >= load.begun, "{overflowing} of {}", load.begun);
    assert!((load.most as u64) < all / 3, "{} of {all} cells", load.most);
}

#[test]
fn the_default_table_sustains_two_thousand_overflowing_connections_a_second_v4() {
    overflow(4);
}

#[test]
fn the_default_table_sustains_two_thousand_overflowing_connections_a_second_v6() {
    overflow(6);
}
