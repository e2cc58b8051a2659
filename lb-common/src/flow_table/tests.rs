use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    vec::Vec,
};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::abi::{clock::Coarse, connection::Placement};

/// A table in the memory of a test.
struct Memory {
    mask: u32,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(buckets: u32) -> Self {
        let words = (0..2 * CELLS * buckets).map(|_| AtomicU64::new(0)).collect();
        Self { mask: buckets - 1, words }
    }

    fn word(&self, at: Position, word: u32) -> &AtomicU64 {
        &self.words[(2 * (at.bucket * CELLS + at.cell) + word) as usize]
    }

    fn exchange(&self, at: Position, word: u32, from: u64, to: u64) -> bool {
        let word = self.word(at, word);
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Cells of a flow that are not over.
    fn count(&self, key: FlowKey, now: Coarse) -> usize {
        let at = |bucket| (0..CELLS).map(move |cell| Position { bucket, cell });
        let all = (0..=self.mask).flat_map(at).filter_map(|at| self.load_owner(at));
        all.filter(|owner| owner.is_of(key, false) && owner.left(now) > 0).count()
    }
}

impl FlowCells for Memory {
    fn mask(&self) -> u32 {
        self.mask
    }
    fn load_owner(&self, at: Position) -> Option<Owner> {
        Some(Owner(self.word(at, 0).load(Ordering::SeqCst)))
    }
    fn load_place(&self, at: Position) -> Option<Place> {
        Some(Place(self.word(at, 1).load(Ordering::SeqCst)))
    }
    fn exchange_owner(&self, at: Position, from: Owner, to: Owner) -> bool {
        self.exchange(at, 0, from.0, to.0)
    }
    fn exchange_place(&self, at: Position, from: Place, to: Place) -> bool {
        self.exchange(at, 1, from.0, to.0)
    }
    fn store_place(&self, at: Position, place: Place) {
        self.word(at, 1).store(place.0, Ordering::SeqCst);
    }
}

/// A hash as good as any (SplitMix64).
fn key(number: u64) -> FlowKey {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    FlowKey(z ^ z >> 31)
}

fn wanted(number: u64, state: State, until: u64) -> Wanted {
    let place = Place::new(Placement { backend: number as u32, incarnation: 3 }, number as u32);
    Wanted { key: key(number), datagrams: false, zone: 7, state, until: Coarse(until), place }
}

fn is_found(memory: &Memory, number: u64, now: u64) -> bool {
    let place = wanted(number, State::Open, 0).place;
    let found = youngest(memory, (key(number), false), Coarse(now));
    let next = Segment { sequence: number as u32 + 1, ends: false, resets: false, has_data: false };
    assert_eq!(found.is_some(), nearest(memory, key(number), next, Coarse(now)).0.is_some());
    found.is_some_and(|cell| cell.place == place)
}

/// What happens to a table.
#[derive(Clone, Debug)]
enum Step {
    Open(u64, u64),
    HalfOpen(u64, u64, bool),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..60_u64, 1..900_u64).prop_map(|(flow, life)| Step::Open(flow, life)),
        (0..60_u64, 1..80_u64, any::<bool>())
            .prop_map(|(flow, life, home)| Step::HalfOpen(flow, life, home)),
        (0..40_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whoever has an open cell has it to its end, whatever others take, and nobody else is found.
    #[test]
    fn an_open_flow_keeps_its_cell(start in 0..1_u64 << 17, steps in vec(step(), 0..400)) {
        let memory = Memory::new(4);
        let (mut now, mut open, mut known) = (start, HashMap::new(), HashMap::new());
        for step in steps {
            let (flow, state, life) = match step {
                Step::Open(flow, life) => (flow, State::Open, life),
                Step::HalfOpen(flow, life, false) => (flow, State::HalfOpen, life),
                Step::HalfOpen(flow, life, true) => (flow, State::HalfOpenAtHome, life),
                Step::Wait(time) => {
                    now += time;
                    continue;
                }
            };
            if !is_found(&memory, flow, now) {
                let taken = take(&memory, &wanted(flow, state, now + life), Coarse(now));
                prop_assert!(!matches!(taken, Taken::Before(_)));
                if let Taken::Cell(_) = taken {
                    known.insert(flow, now + life);
                    if state == State::Open {
                        open.insert(flow, now + life);
                    }
                }
                let full = memory.words.iter().step_by(2).all(|word| word.load(Ordering::SeqCst) != 0);
                prop_assert!(taken != Taken::Full || full || open.len() >= CELLS as usize);
            }
            open.retain(|_, until| *until > now);
            known.retain(|_, until| *until > now);
            for flow in 0..60 {
                let found = is_found(&memory, flow, now);
                prop_assert!(found || !open.contains_key(&flow), "{flow} is gone");
                prop_assert!(!found || known.contains_key(&flow), "{flow} is there");
                prop_assert!(memory.count(key(flow), Coarse(now)) <= 1);
            }
        }
    }
}

/// Of open flows in a table of 65,536 cells, how many find no cell until it is full to a part.
fn refused(full_to: f64) -> usize {
    let memory = Memory::new(1 << 14);
    let flows = (65_536.0 * full_to) as u64;
    let take = |flow| take(&memory, &wanted(flow, State::Open, 100), Coarse(0));
    (0..flows).filter(|flow| take(*flow) == Taken::Full).count()
}

#[test]
fn a_table_that_is_full_to_a_third_refuses_nobody() {
    assert_eq!(refused(1.0 / 3.0), 0);
    let half = refused(0.5);
    assert!(half < 32_768 / 200, "{half} of 32,768");
}

#[test]
fn two_cpus_take_one_cell_for_one_syn() {
    let (memory, arrived) = (&Memory::new(1 << 12), &AtomicUsize::new(0));
    let rounds = 5_000;
    let work = || {
        for round in 0..rounds {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 * (round as usize + 1) {
                std::hint::spin_loop();
            }
            // Each round a second later, so that the table does not fill up.
            take(memory, &wanted(round, State::HalfOpen, round + 64), Coarse(round));
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    for round in rounds - 60..rounds {
        assert_eq!(memory.count(key(round), Coarse(rounds)), 1, "{round}");
    }
}
