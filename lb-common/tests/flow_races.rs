//! CPUs at the flow table at the same time: all orders of their loads and exchanges, as loom makes them, with up to so many
//! switches of the CPU as [`SWITCHES`] that nothing forces. `cargo xtask test races` runs it.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use lb_common::{
    abi::{clock::Coarse, connection::Placement},
    flow_table::{self, Bucket, Cell, FlowCells, FlowKey, Owner, Packets, Place, Segment, State},
};
use loom::{
    model::Builder,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
    thread,
};

const SWITCHES: usize = 4;
/// The table has two buckets of four cells.
const WORDS: usize = 16;
const NOW: Coarse = Coarse(500);
const NUMBER: u32 = 7_000;
/// The key of each flow; its backend has the same number.
const fn key(flow: u64) -> FlowKey {
    FlowKey(flow << 40)
}

struct Table(Vec<AtomicU64>);

#[derive(Clone, Copy)]
struct Line<'t>(&'t [AtomicU64]);

impl Bucket for Line<'_> {
    fn load(self, word: u32) -> u64 {
        // What depends on a load comes after it, on all CPUs that Linux runs on (Documentation/memory-barriers.txt).
        self.0[word as usize].load(Ordering::Acquire)
    }
    fn exchange(self, word: u32, from: u64, to: u64) -> bool {
        // BPF's atomic instructions that return a value are full barriers (Documentation/bpf/standardization).
        fence(Ordering::SeqCst);
        let word = &self.0[word as usize];
        let is_done = word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
        fence(Ordering::SeqCst);
        is_done
    }
    fn store(self, word: u32, to: u64) {
        // It follows such a barrier.
        self.0[word as usize].store(to, Ordering::Release);
    }
}

impl FlowCells for Table {
    type Bucket<'t> = Line<'t>;

    fn mask(&self) -> Option<u32> {
        Some(1)
    }
    fn bucket(&self, number: u32) -> Option<Line<'_>> {
        self.0.chunks_exact(8).nth(number as usize).map(Line)
    }
}

impl Table {
    /// Without cells, but for those that are in use for long.
    fn with(full: usize) -> Arc<Self> {
        let others = Owner::new(key(99), false, 1, State::Open, Coarse(NOW.0 + 900));
        let word = |at: usize| {
            let is_full = at.is_multiple_of(2) && at < 2 * full;
            if is_full { others.0 } else { 0 }
        };
        Arc::new(Self((0..WORDS).map(|at| AtomicU64::new(word(at))).collect()))
    }

    fn take(&self, flow: u64, state: State, life: u64) -> bool {
        let owner = Owner::new(key(flow), false, 3, state, Coarse(NOW.0 + life));
        let place = Place::new(Placement { backend: flow as u32, incarnation: 1 }, NUMBER);
        let mut cell = Cell::NONE;
        let survey = self.survey(key(flow), Packets::Tcp(NUMBER), NOW, &mut cell);
        flow_table::take(self, key(flow), survey, (owner, place), NOW, &mut cell).is_some()
    }

    /// A flow's cell, which is of no other flow.
    fn find(&self, flow: u64) -> Option<Cell> {
        let mut cell = Cell::NONE;
        let (is_found, _) = self.nearest(key(flow), Segment::new(NUMBER + 1, 0), NOW, &mut cell);
        let backend = cell.place.placement().backend;
        assert!(!is_found || backend == flow as u32, "flow {flow} at backend {backend}");
        is_found.then_some(cell)
    }

    fn count(&self, flow: u64) -> usize {
        let is_its =
            |at: &usize| Owner(self.0[2 * at].load(Ordering::SeqCst)).is_of(key(flow), false);
        (0..8).filter(is_its).count()
    }
}

fn in_all_orders(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(SWITCHES);
    builder.max_branches = 10_000;
    builder.check(check);
}

#[test]
fn two_cpus_take_one_cell_for_one_syn() {
    in_all_orders(|| {
        let table = Table::with(0);
        let other = table.clone();
        let taking = thread::spawn(move || other.take(5, State::HalfOpen, 60));
        assert!(table.take(5, State::HalfOpen, 60) && taking.join().unwrap());
        assert_eq!(table.count(5), 1);
        assert!(table.find(5).is_some());
    });
}

#[test]
fn two_flows_take_two_cells() {
    in_all_orders(|| {
        let table = Table::with(6);
        let other = table.clone();
        let taking = thread::spawn(move || other.take(5, State::HalfOpen, 60));
        assert!(table.take(6, State::HalfOpen, 60) && taking.join().unwrap());
        assert!(table.find(5).is_some() && table.find(6).is_some());
    });
}

// The main thread takes the cell: loom tries few orders if that thread only reads.

/// A reader finds the cell of its flow with both words of it, or no cell, while another CPU takes it: what the words were
/// before fits the flow's packets too.
#[test]
fn a_cell_that_is_being_taken_is_read_whole_or_not_at_all() {
    in_all_orders(|| {
        let table = Table::with(7);
        let other = table.clone();
        let reading = thread::spawn(move || {
            other.find(5);
        });
        assert!(table.take(5, State::HalfOpen, 60));
        reading.join().unwrap();
        assert!(table.find(5).is_some());
    });
}

/// The same where the cell was another flow's, which is looked for at the same time.
#[test]
fn a_cell_that_changes_its_flow_is_read_as_one_flows() {
    in_all_orders(|| {
        let table = Table::with(7);
        assert!(table.take(5, State::HalfOpen, 60));
        let (before, after) = (table.clone(), table.clone());
        let reading = [
            thread::spawn(move || before.find(5).is_some()),
            thread::spawn(move || after.find(6).is_some()),
        ];
        assert!(table.take(6, State::HalfOpen, 60));
        for reading in reading {
            reading.join().unwrap();
        }
        assert!(table.find(5).is_none() && table.find(6).is_some());
    });
}

/// There is one cell for both, and the first has it already.
#[test]
fn a_cell_that_was_opened_is_taken_by_nobody() {
    in_all_orders(|| {
        let table = Table::with(7);
        assert!(table.take(5, State::HalfOpen, 60));
        let other = table.clone();
        let taking = thread::spawn(move || other.take(6, State::HalfOpen, 60));
        let is_opened = table.find(5).is_some_and(|cell| {
            flow_table::touch(&*table, &cell, (3, Segment::new(NUMBER + 1, 0)), true, NOW)
        });
        let is_taken = taking.join().unwrap();
        assert_ne!(is_opened, is_taken, "one of them has it");
        assert_eq!(table.find(5).is_some(), is_opened);
        assert_eq!(table.find(6).is_some(), is_taken);
    });
}

/// The daemon's walk erases what was over when it read it.
#[test]
fn a_cell_that_was_renewed_is_not_erased() {
    in_all_orders(|| {
        let table = Table::with(7);
        assert!(table.take(5, State::Open, 1));
        let other = table.clone();
        let walking = thread::spawn(move || {
            let bucket = other.bucket(1).unwrap();
            let read = Owner(bucket.load(6));
            let is_over = read.left(Coarse(NOW.0 + 1)) <= 0;
            is_over && bucket.exchange(6, read.0, Owner::NONE.0)
        });
        let is_renewed = table.find(5).is_some_and(|cell| {
            flow_table::touch(&*table, &cell, (3, Segment::new(NUMBER + 1, 0)), true, NOW);
            table.find(5).is_some_and(|cell| cell.owner.left(NOW) > 1)
        });
        let is_erased = walking.join().unwrap();
        assert_ne!(is_renewed, is_erased);
        assert_eq!(table.find(5).is_some(), is_renewed);
    });
}

/// A flow's next packet, the walk, and a flow that takes the cell: one of the latter two has it, or the flow keeps it.
#[test]
fn a_half_open_cell_is_opened_erased_or_taken() {
    in_all_orders(|| {
        let table = Table::with(7);
        // Over by the clock of the walk, which is ahead.
        assert!(table.take(5, State::HalfOpen, 1));
        let (opened, walked) = (table.clone(), table.clone());
        let opening = thread::spawn(move || {
            opened.find(5).is_some_and(|cell| {
                flow_table::touch(&*opened, &cell, (3, Segment::new(NUMBER + 1, 0)), true, NOW)
            })
        });
        let walking = thread::spawn(move || {
            let bucket = walked.bucket(1).unwrap();
            let read = Owner(bucket.load(6));
            let is_over = read != Owner::BUSY && read.0 != 0 && read.left(Coarse(NOW.0 + 1)) <= 0;
            is_over && bucket.exchange(6, read.0, Owner::NONE.0)
        });
        let is_taken = table.take(6, State::HalfOpen, 60);
        let (is_opened, is_erased) = (opening.join().unwrap(), walking.join().unwrap());
        assert_ne!(is_opened, is_taken || is_erased, "opened, or not its own any more");
        assert_eq!(table.find(5).is_some(), is_opened);
        assert_eq!(table.find(6).is_some(), is_taken);
    });
}
