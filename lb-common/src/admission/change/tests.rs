use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    vec::Vec,
};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::admission::{Debit, debit};

const SECOND: u64 = 1_000_000_000;
const PARTS: u64 = LimitWord::PER_NANOSECOND;
/// When the tests begin.
const START: u64 = 100 * SECOND;

fn per_second(rate: u64, burst: u32) -> LimitWord {
    LimitWord::new(SECOND * PARTS / rate, burst)
}

/// A limiter, and the daemon that changes it.
#[derive(Default)]
struct Limiter {
    limit: Cell<u64>,
    arrival: Cell<u64>,
}

impl Limiter {
    fn new(limit: LimitWord) -> Self {
        Self { limit: Cell::new(limit.0), arrival: Cell::new(0) }
    }

    fn admits(&self, now: u64) -> bool {
        debit(|| LimitWord(self.limit.get()), &self.arrival, now) == Debit::Admitted
    }

    /// How many of `demand` connections are admitted.
    fn admitted(&self, demand: u32, now: u64) -> u32 {
        (0..demand).map(|_| u32::from(self.admits(now))).sum()
    }

    fn change(&self, to: LimitWord, now: u64) {
        change_limit(&self.limit, &self.arrival, to, now);
        assert_eq!(self.limit.get(), to.0);
    }

    /// Debt, connections.
    fn debt(&self, now: u64) -> f64 {
        match per_connection(LimitWord(self.limit.get())) {
            0 => 0.0,
            interval => self.arrival.get().saturating_sub(now * PARTS) as f64 / interval as f64,
        }
    }
}

#[test]
fn alternation_admits_the_mean_of_both_limits() {
    for (first, second) in [((100, 10), (10, 10)), ((1_000, 100), (10, 10)), ((50, 3), (49, 3))] {
        let limits = [first, second].map(|(rate, burst)| per_second(rate, burst));
        let limiter = Limiter::new(limits[0]);
        let mut admitted = 0;
        for step in 0..120_000_u64 {
            let now = START + step * SECOND / 1_000;
            if step % 250 == 0 {
                limiter.change(limits[(step / 250 % 2) as usize], now);
            }
            let now_admitted = limiter.admitted(9, now);
            // The burst of the beginning is over after a minute.
            admitted += if step < 60_000 { 0 } else { now_admitted };
        }
        let mean = f64::from(admitted) / 60.0;
        let expected = (first.0 + second.0) as f64 / 2.0;
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} a second instead of {expected}");
    }
}

#[test]
fn a_raised_limit_admits_after_its_own_interval() {
    let limiter = Limiter::new(LimitWord::new(60 * SECOND * PARTS, 10));
    assert_eq!(limiter.admitted(20, START), 10);
    limiter.change(per_second(1_000, 10), START);
    assert_eq!(limiter.admitted(20, START), 0);
    assert_eq!(limiter.admitted(20, START + SECOND / 1_000), 1);
    assert_eq!(limiter.admitted(20, START + 4 * SECOND / 1_000), 3);
}

#[test]
fn a_lowered_limit_waits_until_the_debt_is_within_its_burst() {
    let limiter = Limiter::new(per_second(1_000, 100));
    assert_eq!(limiter.admitted(200, START), 100);
    limiter.change(per_second(100, 10), START);
    assert_eq!(limiter.admitted(200, START + 90 * SECOND / 100), 0);
    assert_eq!(limiter.admitted(200, START + 91 * SECOND / 100), 1);
    // What lies beyond the lower burst is kept for the higher limit too.
    limiter.change(per_second(1_000, 100), START + 91 * SECOND / 100);
    assert_eq!(limiter.admitted(200, START + 91 * SECOND / 100), 90);
}

/// Without the cap the first one waits for 16.5 h, the second one for 99 s.
#[test]
fn a_lowered_limit_admits_after_ten_seconds_and_its_interval() {
    let minute = 60 * SECOND;
    for (from, to, interval) in [
        (per_second(10_000, 1_000), LimitWord::new(minute * PARTS, 10), minute),
        (per_second(100_000, 10_000), per_second(100, 100), SECOND / 100),
    ] {
        let limiter = Limiter::new(from);
        let burst = limiter.admitted(20_000, START);
        assert_eq!(u64::from(burst), from.burst());
        limiter.change(to, START);
        let next = START + MAX_WAIT + interval;
        assert_eq!(limiter.admitted(20, START + MAX_WAIT), 0, "{to:?}");
        assert_eq!(limiter.admitted(20, next - 1), 0, "{to:?}");
        assert_eq!(limiter.admitted(20, next), 1, "{to:?}");
        assert_eq!(limiter.admitted(20, next + interval), 1, "{to:?}");
    }
}

#[test]
fn debt_is_forgiven_when_a_closed_limit_opens_not_when_it_closes() {
    let (fast, slow) = (per_second(10_000, 1_000), LimitWord::new(60 * SECOND * PARTS, 10));
    let limiter = Limiter::new(fast);
    assert_eq!(limiter.admitted(2_000, START), 1_000);
    limiter.change(LimitWord::CLOSED, START);
    limiter.change(fast, START);
    assert_eq!(limiter.admitted(2_000, START), 0);
    limiter.change(LimitWord::CLOSED, START);
    limiter.change(slow, START);
    assert_eq!(limiter.admitted(20, START + 70 * SECOND - 1), 0);
    assert_eq!(limiter.admitted(20, START + 70 * SECOND), 1);
}

/// What was forgiven is not remembered: the bound is that of one change in ten seconds.
#[test]
fn a_limit_that_is_raised_again_admits_what_was_forgiven() {
    let (fast, slow) = (per_second(10_000, 1_000), LimitWord::new(60 * SECOND * PARTS, 10));
    let limiter = Limiter::new(fast);
    assert_eq!(limiter.admitted(2_000, START), 1_000);
    limiter.change(slow, START);
    limiter.change(fast, START);
    // The burst of ten, and a sixth of a connection for ten seconds.
    assert_eq!(limiter.admitted(2_000, START), 1_000 - 11);
}

#[test]
fn credit_is_kept_whole() {
    let limiter = Limiter::new(per_second(1_000, 100));
    limiter.change(per_second(10, 10), START);
    assert_eq!(limiter.admitted(20, START), 10);
    let limiter = Limiter::new(per_second(10, 10));
    limiter.change(per_second(1_000, 100), START);
    assert_eq!(limiter.admitted(200, START), 100);
}

#[test]
fn debt_is_rounded_up() {
    let limiter = Limiter::new(per_second(10, 10));
    limiter.arrival.set(START * PARTS + 1);
    limiter.change(per_second(1_000, 10), START);
    assert!(limiter.arrival.get() > START * PARTS);
}

#[test]
fn debt_survives_that_the_limit_is_closed() {
    let limiter = Limiter::new(per_second(10, 10));
    assert_eq!(limiter.admitted(20, START), 10);
    limiter.change(LimitWord::CLOSED, START);
    assert_eq!(limiter.admitted(20, START + SECOND), 0);
    limiter.change(per_second(10, 10), START + SECOND);
    assert_eq!(limiter.admitted(20, START + SECOND), 0);
    assert_eq!(limiter.admitted(20, START + 11 * SECOND / 10), 1);
    limiter.change(LimitWord::CLOSED, START + 2 * SECOND);
    // One in 68.7 s.
    limiter.change(per_second(10, 10), START + 73 * SECOND);
    assert_eq!(limiter.admitted(20, START + 73 * SECOND), 9 + 1);
}

#[test]
fn debt_ends_where_there_is_no_limit() {
    let limiter = Limiter::new(per_second(10, 10));
    assert_eq!(limiter.admitted(20, START), 10);
    limiter.change(LimitWord::UNLIMITED, START);
    assert_eq!(limiter.admitted(20, START), 20);
    limiter.change(per_second(10, 10), START);
    assert_eq!(limiter.admitted(20, START), 10);
}

#[test]
fn the_largest_debt_fits_the_lowest_limit() {
    let limiter = Limiter::new(LimitWord::new(1, LimitWord::MAX_BURST));
    let years = 2 * 366 * 86_400 * SECOND;
    limiter.arrival.set(u64::MAX);
    limiter.change(LimitWord::CLOSED, years);
    let most = u64::from(LimitWord::MAX_BURST) * LimitWord::MAX_INTERVAL;
    assert_eq!(limiter.arrival.get(), years * PARTS + most);
}

/// A debit that began before a change fails after it, wherever the arrival is.
#[test]
fn a_debit_under_way_is_not_added_to_a_converted_arrival() {
    let [slow, fast] = [LimitWord::new(60 * SECOND * PARTS, 10), per_second(1_000, 10)];
    for spent in [0, 1, 5, 10] {
        let limiter = Limiter::new(slow);
        limiter.admitted(spent, START);
        let is_read = Cell::new(false);
        let limit = || {
            let limit = LimitWord(limiter.limit.get());
            if !is_read.replace(true) {
                limiter.change(fast, START);
            }
            limit
        };
        assert_ne!(debit(limit, &limiter.arrival, START), Debit::Admitted, "{spent} spent");
        assert_eq!(limiter.admitted(20, START), 10 - spent, "{spent} spent");
    }
}

/// An arrival of which no exchange succeeds. Before the first addition another CPU takes the whole burst; after it, the
/// limit changes.
#[derive(Clone, Copy)]
struct Overtaken<'l>(&'l Limiter, LimitWord);

impl Word for Overtaken<'_> {
    fn load(self) -> u64 {
        self.0.arrival.get()
    }
    fn exchange(self, _: u64, _: u64) -> Result<(), u64> {
        Err(self.load())
    }
    fn add(self, value: u64) -> u64 {
        let limit = LimitWord(self.0.limit.get());
        if limit == self.1 {
            return (&self.0.arrival).add(value);
        }
        self.0.arrival.set(START * PARTS + limit.allowance());
        let before = (&self.0.arrival).add(value);
        self.0.change(self.1, START);
        before
    }
}

/// The interval of the limit before would be the debt of many connections now.
#[test]
fn an_addition_that_was_converted_is_not_taken_back() {
    let limiter = Limiter::new(LimitWord::new(60 * SECOND * PARTS, 10));
    limiter.arrival.set(START * PARTS);
    let limit = || LimitWord(limiter.limit.get());
    assert_eq!(debit(limit, Overtaken(&limiter, per_second(1_000, 10)), START), Debit::Full);
    assert_eq!(limiter.admitted(20, START), 0);
    assert_eq!(limiter.admitted(20, START + 2 * SECOND / 1_000), 1);
}

/// The daemon is killed after some stores of a change; the next one continues.
#[test]
fn a_change_that_is_cut_off_closes_and_is_made_up_for() {
    let limits = [
        LimitWord::CLOSED,
        LimitWord::new(60 * SECOND * PARTS, 10),
        per_second(10, 10),
        per_second(100, 10),
        per_second(100_000, 10),
        LimitWord::UNLIMITED,
    ];
    for from in limits {
        for to in limits.into_iter().filter(|to| *to != from) {
            for stores in 1..3 {
                let limiter = Limiter::new(from);
                limiter.admitted(10, START);
                let left = Cell::new(stores);
                let dying = |word| Dying { word, left: &left };
                change_limit(dying(&limiter.limit), dying(&limiter.arrival), to, START);
                assert_eq!(limiter.admitted(20, START), 0, "{from:?} to {to:?} after {stores}");
                clamp_arrival(LimitWord(limiter.limit.get()), &limiter.arrival, START);
                limiter.change(to, START);
                // Never more debt than there was, but for rounding, so the next one comes no later.
                let at = START + to.interval() / PARTS + 1;
                assert!(limiter.admits(at) || to.is_closed(), "{from:?} to {to:?} after {stores}");
            }
        }
    }
}

/// A word of a process that ends after so many stores.
#[derive(Clone, Copy)]
struct Dying<'w> {
    word: &'w Cell<u64>,
    left: &'w Cell<u32>,
}

impl Word for Dying<'_> {
    fn load(self) -> u64 {
        self.word.get()
    }
    fn exchange(self, from: u64, to: u64) -> Result<(), u64> {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                self.word.exchange(from, to)
            }
            None => Ok(()),
        }
    }
    fn add(self, value: u64) -> u64 {
        self.word.add(value)
    }
}

#[test]
fn what_is_beyond_a_full_burst_is_settled() {
    let limit = per_second(10, 10);
    let full = START * PARTS + limit.allowance();
    for (arrival, expected) in [(0, 0), (full, full), (full + 1, full), (u64::MAX, full)] {
        let word = Cell::new(arrival);
        clamp_arrival(limit, &word, START);
        assert_eq!(word.get(), expected);
    }
    for limit in [LimitWord::CLOSED, LimitWord::UNLIMITED, between(limit, per_second(1, 1))] {
        let word = Cell::new(u64::MAX);
        clamp_arrival(limit, &word, START);
        assert_eq!(word.get(), u64::MAX, "{limit:?}");
    }
}

/// What happens to a limiter in a moment.
#[derive(Clone, Copy, Debug)]
enum Act {
    Change(LimitWord),
    Ask(u32),
}

fn limits() -> impl Strategy<Value = LimitWord> {
    let finite = (-2..5_i32, 1.0..10.0_f64, 16..160_u32).prop_map(|(power, rate, parts)| {
        let interval = (SECOND * PARTS) as f64 / (rate * 10_f64.powi(power));
        LimitWord::in_parts(interval as u64, parts)
    });
    prop_oneof![8 => finite, 1 => Just(LimitWord::CLOSED), 1 => Just(LimitWord::UNLIMITED)]
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![limits().prop_map(Act::Change), (1..20_u32).prop_map(Act::Ask)];
    // Gaps from 100 ns to 10 s.
    let gap = (2..10_u32, 1..10_u64).prop_map(|(power, digit)| digit * 10_u64.pow(power));
    vec((prop_oneof![Just(0), gap], act), 1..60)
}

/// Connections a nanosecond.
fn rate(limit: LimitWord) -> f64 {
    let interval = if limit.is_closed() { LimitWord::MAX_INTERVAL } else { limit.interval() };
    PARTS as f64 / interval as f64
}

/// Connections of a burst.
fn burst(limit: LimitWord) -> f64 {
    if limit.is_closed() { 0.0 } else { limit.allowance() as f64 / limit.interval() as f64 }
}

/// A bucket that counts connections, in real numbers. What it cannot tell for rounding is taken as it was.
struct Bucket {
    limit: LimitWord,
    debt: f64,
}

impl Bucket {
    const ROUNDING: f64 = 1e-4;

    fn pass(&mut self, gap: u64) {
        self.debt = if self.limit.is_unlimited() {
            0.0
        } else {
            (self.debt - gap as f64 * rate(self.limit)).max(0.0)
        };
    }

    /// Whether it agrees that a connection was admitted, or not.
    fn agrees(&mut self, admitted: bool) -> bool {
        if self.limit.is_unlimited() {
            return admitted;
        }
        let room = burst(self.limit) - self.debt - 1.0;
        if admitted {
            self.debt += 1.0;
        }
        room.abs() < Self::ROUNDING || admitted == (room > 0.0)
    }

    /// Forgives what a changed limit would wait for too long.
    fn change(&mut self, to: LimitWord) {
        self.limit = to;
        self.pass(0);
        if !to.is_closed() && !to.is_unlimited() {
            self.debt = self.debt.min(burst(to) + MAX_WAIT as f64 * rate(to));
        }
    }
}

/// Moments at which connections were admitted, and which limits there were.
#[derive(Default)]
struct History {
    admitted: Vec<(u64, u64)>,
    limits: Vec<(u64, LimitWord)>,
    /// Connections of debt that changes forgave.
    forgiven: Vec<(u64, f64)>,
}

impl History {
    /// The integral of the rate, and the largest burst, from one moment to another.
    fn allowed(&self, from: u64, to: u64) -> (f64, f64) {
        let ends = self.limits.iter().skip(1).map(|(end, _)| *end).chain([u64::MAX]);
        let periods =
            self.limits.iter().zip(ends).map(|((start, limit), end)| (*start, end, *limit));
        let (mut integral, mut largest) = (0.0, 0.0_f64);
        for (start, end, limit) in periods.filter(|(start, end, _)| *start <= to && *end >= from) {
            if limit.is_unlimited() {
                return (f64::INFINITY, 0.0);
            }
            integral += end.min(to).saturating_sub(start.max(from)) as f64 * rate(limit);
            largest = largest.max(burst(limit));
        }
        (integral, largest)
    }

    /// What was forgiven and may be admitted again from one moment to another. If the limit stays, the next connection
    /// comes later than [`MAX_WAIT`] after its change.
    fn forgiven(&self, from: u64, to: u64) -> f64 {
        let changes =
            |from: u64| self.limits.iter().filter(move |(at, _)| (from..=to).contains(at));
        let is_again = |at: u64| to > at + MAX_WAIT || changes(at).count() > 1;
        let within = self.forgiven.iter().filter(|(at, _)| (from..=to).contains(at));
        within.filter(|(at, _)| is_again(*at)).map(|(_, forgiven)| forgiven).sum()
    }

    /// The first window with more connections than the definition allows.
    fn excess(&self) -> Option<(u64, u64)> {
        let starts = self.admitted.iter().enumerate();
        let mut windows = starts.flat_map(|(at, (from, _))| {
            self.admitted[at..].iter().scan(0, move |sum, (to, number)| {
                *sum += number;
                Some((*from, *to, *sum))
            })
        });
        let excess = windows.find(|(from, to, admitted)| {
            let (integral, burst) = self.allowed(*from, *to);
            let forgiven = self.forgiven(*from, *to);
            *admitted as f64 > integral + burst + forgiven + Bucket::ROUNDING
        });
        excess.map(|(from, to, _)| (from, to))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Each connection is admitted that a bucket of connections admits, and no other. In no window of up to ten seconds
    /// with one change more than the integral of the rate and the largest burst; in others also what was forgiven.
    #[test]
    fn debt_is_kept_in_connections(first in limits(), acts in acts()) {
        let limiter = Limiter::new(first);
        let mut bucket = Bucket { limit: first, debt: 0.0 };
        let mut now = START;
        let mut history = History { limits: [(now, first)].into(), ..History::default() };
        for (gap, act) in acts {
            now += gap;
            bucket.pass(gap);
            match act {
                Act::Change(to) => {
                    let debt = limiter.debt(now);
                    limiter.change(to, now);
                    bucket.change(to);
                    history.limits.push((now, to));
                    history.forgiven.push((now, (debt - limiter.debt(now)).max(0.0)));
                }
                Act::Ask(demand) => {
                    let mut sum = 0;
                    for _ in 0..demand {
                        let admitted = limiter.admits(now);
                        prop_assert!(bucket.agrees(admitted), "{admitted} at {}", bucket.debt);
                        sum += u64::from(admitted);
                    }
                    history.admitted.push((now, sum));
                }
            }
        }
        prop_assert_eq!(history.excess(), None);
    }

    /// If there is demand all the time, the limiter falls short of the integral by no more than a burst, and by what is
    /// owed for a higher one.
    #[test]
    fn demand_is_not_starved(
        // No burst is more than what the lowest rate admits in ten seconds, so nothing is forgiven.
        changes in vec((1..300_u64, 5..1_000_u64, 2..50_u32), 1..20),
    ) {
        let first = per_second(changes[0].1, changes[0].2);
        let limiter = Limiter::new(first);
        let (mut now, mut admitted) = (START, 0.0);
        let mut history = History { limits: [(now, first)].into(), ..History::default() };
        for (milliseconds, rate, burst) in changes {
            let limit = per_second(rate, burst);
            limiter.change(limit, now);
            history.limits.push((now, limit));
            for _ in 0..milliseconds {
                now += SECOND / 1_000;
                while limiter.admits(now) {
                    admitted += 1.0;
                }
            }
            let (integral, burst) = history.allowed(START, now);
            prop_assert!(admitted <= integral + burst + Bucket::ROUNDING);
            prop_assert!(admitted + burst + 1.0 >= integral, "{admitted} of {integral}");
        }
    }
}

/// A word that other threads write too. If it is lossy, fifteen of sixteen exchanges of a debit are lost, so most are
/// made by addition.
#[derive(Clone, Copy)]
struct Shared<'w>(&'w AtomicU64, Option<&'w Cell<u32>>);

impl Word for Shared<'_> {
    fn load(self) -> u64 {
        self.0.load(SeqCst)
    }
    fn exchange(self, from: u64, to: u64) -> Result<(), u64> {
        if let Some(chance) = self.1 {
            chance.set(chance.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
            if chance.get() >> 28 != 0 {
                return Err(self.load());
            }
        }
        self.0.compare_exchange(from, to, SeqCst, SeqCst).map(drop)
    }
    fn add(self, value: u64) -> u64 {
        self.0.fetch_add(value, SeqCst)
    }
}

/// What three threads are admitted while a fourth changes the limit again and again, and the clock between. Returns it
/// with the integral of the rate.
fn admitted_beside_changes(changes: &[(LimitWord, u64)], lossy: bool) -> (u64, f64) {
    let limit = AtomicU64::new(changes[0].0.0);
    let [arrival, now, is_over] = [0, START, 0].map(AtomicU64::new);
    let asks = |thread: u32| {
        let (chance, mut admitted) = (Cell::new(thread), 0);
        let word = Shared(&arrival, lossy.then_some(&chance));
        while is_over.load(SeqCst) == 0 {
            let asked = debit(|| LimitWord(limit.load(SeqCst)), word, now.load(SeqCst));
            admitted += u64::from(asked == Debit::Admitted);
        }
        admitted
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || asks(thread))).collect();
        let mut integral = 0.0;
        for (to, gap) in changes {
            change_limit(Shared(&limit, None), Shared(&arrival, None), *to, now.load(SeqCst));
            std::thread::yield_now();
            now.fetch_add(*gap, SeqCst);
            integral += *gap as f64 * rate(*to);
            std::thread::yield_now();
        }
        is_over.store(1, SeqCst);
        (threads.into_iter().map(|thread| thread.join().unwrap()).sum(), integral)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn threads_keep_the_bound_beside_changes(
        // No burst is more than what the lowest rate admits in ten seconds, so nothing is forgiven.
        kinds in vec((1..5_u32, 1..100_u32, 0..30_u64), 2..100), lossy: bool,
    ) {
        let changes: Vec<_> = kinds.into_iter().map(|(power, burst, gap)| {
            (per_second(10_u64.pow(power), burst), gap * SECOND / 100)
        }).collect();
        let (admitted, integral) = admitted_beside_changes(&changes, lossy);
        let largest = changes.iter().map(|(limit, _)| burst(*limit)).fold(0.0, f64::max);
        // An addition may meet another limit than it was for: one connection a thread and change.
        let wrong = if lossy { 3 * changes.len() } else { 0 };
        let most = integral + largest + wrong as f64 + Bucket::ROUNDING;
        prop_assert!(admitted as f64 <= most, "{admitted} admitted, at most {most}");
    }
}
