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

    /// Cells of a flow that are not over.
    fn count(&self, key: FlowKey, now: Coarse) -> usize {
        let owners = self.words.iter().step_by(2).map(|word| Owner(word.load(Ordering::SeqCst)));
        owners.filter(|owner| owner.is_of(key, false) && owner.left(now) > 0).count()
    }
}

impl Bucket for &[AtomicU64] {
    fn load(self, word: u32) -> u64 {
        self[word as usize].load(Ordering::SeqCst)
    }
    fn exchange(self, word: u32, from: u64, to: u64) -> bool {
        let word = &self[word as usize];
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
    fn store(self, word: u32, to: u64) {
        self[word as usize].store(to, Ordering::SeqCst);
    }
}

impl FlowCells for Memory {
    type Bucket<'c> = &'c [AtomicU64];

    fn mask(&self) -> Option<u32> {
        Some(self.mask)
    }
    fn bucket(&self, number: u32) -> Option<&[AtomicU64]> {
        self.words.chunks_exact(2 * CELLS as usize).nth(number as usize)
    }
}

/// A hash as good as any (SplitMix64).
fn key(number: u64) -> FlowKey {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    FlowKey(z ^ z >> 31)
}

fn place(number: u64) -> Place {
    Place::new(Placement { backend: number as u32, incarnation: 3 }, number as u32)
}

/// Takes a cell for a flow.
fn take(memory: &Memory, number: u64, state: State, until: u64, now: u64) -> Option<Position> {
    let owner = Owner::new(key(number), false, 7, state, Coarse(until));
    let (key, place, now) = (key(number), place(number), Coarse(now));
    let survey = memory.survey(key, Packets::Tcp(number as u32), now, &mut { Cell::NONE });
    super::take(memory, key, survey, (owner, place), now, &mut { Cell::NONE })
}

fn is_found(memory: &Memory, number: u64, now: u64) -> bool {
    let (mut cell, mut again) = (Cell::NONE, Cell::NONE);
    let found = memory.youngest(key(number), false, Coarse(now), &mut cell);
    let next = Segment::new(number as u32 + 1, 0);
    assert_eq!(found, memory.nearest(key(number), next, Coarse(now), &mut again).0);
    found && cell.place == place(number)
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
                let taken = take(&memory, flow, state, now + life, now);
                if taken.is_some() {
                    known.insert(flow, now + life);
                    if state == State::Open {
                        open.insert(flow, now + life);
                    }
                }
                let full = memory.words.iter().step_by(2).all(|word| word.load(Ordering::SeqCst) != 0);
                prop_assert!(taken.is_some() || full || open.len() >= CELLS as usize);
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
    (0..flows).filter(|flow| take(&memory, *flow, State::Open, 100, 0).is_none()).count()
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
            take(memory, round, State::HalfOpen, round + 64, round);
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
