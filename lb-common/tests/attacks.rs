//! The flow table under packets of which each has a source of its own.
//!
//! `cargo test -p lb-common -p lb-features --test attacks -- --nocapture` prints the curve of docs/attacks.md. What counts
//! is how many cells there are for each flow a second, so table and rates are a sixteenth of those that are printed.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::VecDeque;

use lb_common::{
    abi::{clock::Coarse, connection::Placement},
    flow_table::{
        self, CELLS, Cell, FlowCells as _, FlowKey, HALF_OPEN, LIFE, Owner, Packets, Place,
        Segment, State,
    },
};
use lb_common_fake::FakeTables;

const SECOND: u64 = 1_000_000_000;
const SCALE: u64 = 16;
/// Cells of the default table.
const DEFAULT: u64 = 1 << 20;
/// Flows whose second packet comes, of all: the others were sent by a forger.
const HONEST: u64 = 4;

/// First packets of flows, and how long after them the second ones come, milliseconds.
#[derive(Clone, Copy, Debug)]
struct Flood {
    forged: State,
    honest: State,
    datagrams: bool,
    round_trip: u64,
}

const SYNS: Flood =
    Flood { forged: State::HalfOpen, honest: State::HalfOpen, datagrams: false, round_trip: 300 };
/// Handshakes beside bare ACKs, during a remap.
const ACKS: Flood = Flood { forged: State::SeenOnce, ..SYNS };
const DATAGRAMS: Flood = Flood { datagrams: true, round_trip: 100, ..SYNS };

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn take(table: &FakeTables, key: FlowKey, datagrams: bool, state: State, now: Coarse) {
    let life = if state == State::SeenOnce { LIFE } else { HALF_OPEN };
    let owner = Owner::new(key, datagrams, 7, state, Coarse(now.0 + life));
    let place = Place::new(Placement { backend: 5, incarnation: 1 }, 100);
    let of = if datagrams { Packets::Datagrams } else { Packets::Tcp(100) };
    let mut scratch = Cell::NONE;
    let survey = table.survey(key, of, now, &mut scratch);
    flow_table::take(table, key, survey, (owner, place), now, &mut scratch).unwrap();
}

fn is_known(table: &FakeTables, key: FlowKey, datagrams: bool, now: Coarse) -> bool {
    let mut found = Cell::NONE;
    if datagrams {
        return table.youngest(key, true, now, &mut found);
    }
    table.nearest(key, Segment::new(101, 0), now, &mut found).0
}

/// The part of the honest flows whose cell is gone when their second packet comes, in a table that is full of forged flows.
fn lost(flood: Flood, per_second: u64) -> f64 {
    let Flood { forged, honest, datagrams, round_trip } = flood;
    let mut table = FakeTables::default();
    table.set_buckets((DEFAULT / SCALE) as u32 / CELLS);
    let (per_second, full) = (per_second / SCALE, 2 * DEFAULT / SCALE);
    let mut state = 0x2545_f491_4f6c_dd1d;
    let (mut waiting, mut all, mut lost) = (VecDeque::new(), 0_u32, 0_u32);
    for n in 0..full + 4 * per_second {
        let time = 3_600 * SECOND + n * SECOND / per_second;
        let now = Coarse::from_nanoseconds(time);
        let key = FlowKey(random(&mut state));
        let is_honest = n >= full && n % HONEST == 0;
        take(&table, key, datagrams, if is_honest { honest } else { forged }, now);
        if is_honest {
            waiting.push_back((time + round_trip * 1_000_000, key));
        }
        while let Some(&(due, key)) = waiting.front()
            && due <= time
        {
            waiting.pop_front();
            all += 1;
            lost += u32::from(!is_known(&table, key, datagrams, now));
        }
    }
    f64::from(lost) / f64::from(all)
}

#[test]
fn half_open_cells_outlast_a_round_trip_under_a_flood() {
    println!("flows a second, lost of SYNs, of SYNs beside bare ACKs, of datagrams");
    for (per_second, most) in [
        (50_000, 0.0),
        (100_000, 0.0),
        (200_000, 0.0),
        (500_000, 0.01),
        (1_000_000, 0.2),
        (2_000_000, 0.6),
    ] {
        let lost = [SYNS, ACKS, DATAGRAMS].map(|flood| lost(flood, per_second));
        let [syns, beside_acks, datagrams] = lost.map(|lost| format!("{:.2} %", 100.0 * lost));
        println!("{per_second:>9} {syns:>8} {beside_acks:>8} {datagrams:>8}");
        assert!(lost.iter().all(|lost| *lost <= most), "{per_second} a second: {lost:?}");
    }
}
