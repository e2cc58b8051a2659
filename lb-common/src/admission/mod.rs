//! Admission: whether a new connection is within a limit (GCRA, ITU-T I.371, with a clock that ticks).
//!
//! One word holds the time at which the next connection would arrive if all so far had come evenly. It may be ahead of now
//! by as much as the burst takes; beyond that the limit is reached. So in any time `t` at most `burst + t / interval`
//! connections are admitted.
//!
//! How many connections that time stands for, the debt, depends on the interval. [`change_limit`] therefore converts it,
//! so that when the limit changes, at most the integral of the rate plus the largest burst is admitted, in any window of
//! up to [`MAX_WAIT`] that contains one change. Debt that would close the new limit for longer is forgiven.

mod change;

pub use change::{MAX_WAIT, change_limit, clamp_arrival};

use crate::{
    abi::{clock::Nanoseconds, limiter::LimitWord},
    word::Word,
};

/// How often a debit is tried again because another CPU changed the word, before it is added unconditionally and taken
/// back if that was too much.
pub const ATTEMPTS: u32 = 8;

/// Result of a debit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debit {
    /// It is within the limit, and counted.
    Admitted,
    /// The limit is reached.
    Full,
    /// Too many CPUs changed the word, whose arrival is still in the past, or the limit changed meanwhile: refused, to be
    /// safe.
    Contended,
}

/// Whether a debit at `now` would find the limit reached. Spends nothing.
#[inline(always)]
pub fn is_full(limit: LimitWord, arrival: u64, now: Nanoseconds) -> bool {
    !limit.is_unlimited() && (limit.is_closed() || next(limit, arrival, now).is_none())
}

/// Counts a connection against a limit, which `limit` reads.
///
/// The arrival is read before the limit, and is replaced only if it has not changed since. [`change_limit`] always
/// changes it, between two stores of the limit. So no debit adds the interval of one limit to the arrival of another.
///
/// That holds if the two reads happen in this order. On x86 they do: loads are not reordered. On arm64 they are plain
/// loads without an acquire, which the CPU may reorder: a debit may then read the limit of before a change and the
/// arrival of after it, and add the interval of the limit before.
#[inline(always)]
pub fn debit<W: Word>(limit: impl Fn() -> LimitWord, arrival: W, now: Nanoseconds) -> Debit {
    let mut seen = arrival.load();
    let current = limit();
    if current.is_unlimited() {
        return Debit::Admitted;
    }
    if current.is_closed() {
        return Debit::Full;
    }
    for _ in 0..ATTEMPTS {
        let Some(next) = next(current, seen, now) else { return Debit::Full };
        match arrival.exchange(seen, next) {
            Ok(()) => return Debit::Admitted,
            Err(found) => seen = found,
        }
        if limit() != current {
            return Debit::Contended;
        }
    }
    add(limit, current, seen, arrival, now)
}

/// Counts a connection against a limit whose word other CPUs change all the time, by an addition that cannot fail. If the
/// result is beyond the burst, it is taken back. Meanwhile it may have caused refusals on other CPUs, but no admissions.
///
/// If the limit changes within the few instructions between its last reading and the addition, the addition is of an
/// interval of the limit before: one connection of a CPU is counted wrongly. On x86 the readings come in
/// the order of the instructions. On arm64 an exchange that fails is no barrier for the reading after it, so that time can
/// be longer.
#[inline(always)]
fn add<W: Word>(
    limit: impl Fn() -> LimitWord,
    current: LimitWord,
    seen: u64,
    arrival: W,
    now: Nanoseconds,
) -> Debit {
    let interval = current.interval();
    let now = now.wrapping_mul(LimitWord::PER_NANOSECOND);
    let latest = now.wrapping_add(current.allowance());
    // If the arrival is in the past, an addition would leave capacity of the past to use.
    if seen < now {
        return Debit::Contended;
    }
    if seen.wrapping_add(interval) > latest {
        return Debit::Full;
    }
    if arrival.add(interval).wrapping_add(interval) > latest {
        // If a change has converted the interval meanwhile, as much would be too much to take back.
        if limit() == current {
            arrival.add(interval.wrapping_neg());
        }
        return Debit::Full;
    }
    Debit::Admitted
}

/// The arrival after one more connection, or `None` where that is beyond the burst.
#[inline(always)]
fn next(limit: LimitWord, arrival: u64, now: Nanoseconds) -> Option<u64> {
    let now = now.wrapping_mul(LimitWord::PER_NANOSECOND);
    let latest = now.wrapping_add(limit.allowance());
    let from = if arrival < now { now } else { arrival };
    let next = from.wrapping_add(limit.interval());
    (next <= latest).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        cell::Cell,
        sync::atomic::{AtomicU64, Ordering::SeqCst},
        vec,
        vec::Vec,
    };

    const SECOND: u64 = 1_000_000_000;

    fn per_second(rate: u64, burst: u32) -> LimitWord {
        LimitWord::new(SECOND * LimitWord::PER_NANOSECOND / rate, burst)
    }

    #[test]
    fn after_a_pause_the_burst_and_then_one_an_interval() {
        let (limit, arrival) = (per_second(10, 3), Cell::new(0));
        let at = |now| debit(|| limit, &arrival, now) == Debit::Admitted;
        let now = 100 * SECOND;
        assert_eq!([at(now), at(now), at(now), at(now)], [true, true, true, false]);
        assert!(!at(now + SECOND / 10 - 1));
        assert!(at(now + SECOND / 10));
        assert!(!at(now + SECOND / 10));
        assert!(at(now + SECOND / 5));
    }

    #[test]
    fn unlimited_and_closed_are_said_outright() {
        let arrival = Cell::new(0);
        for now in 0..1000 {
            assert_eq!(debit(|| LimitWord::UNLIMITED, &arrival, now), Debit::Admitted);
            assert_eq!(debit(|| LimitWord::CLOSED, &arrival, now), Debit::Full);
            assert!(!is_full(LimitWord::UNLIMITED, u64::MAX, now));
            assert!(is_full(LimitWord::CLOSED, 0, now));
        }
        assert_eq!(arrival.get(), 0, "neither is counted");
    }

    /// A word that others have always just changed.
    #[derive(Clone, Copy)]
    struct Contended<'c>(&'c Cell<u64>);

    impl Word for Contended<'_> {
        fn load(self) -> u64 {
            self.0.get()
        }
        fn exchange(self, _: u64, _: u64) -> Result<(), u64> {
            self.0.set(self.0.get() + 1);
            Err(self.0.get())
        }
        fn add(self, value: u64) -> u64 {
            self.0.add(value)
        }
    }

    #[test]
    fn a_word_that_is_never_won_is_added_to_once_it_is_up_to_now() {
        let limit = per_second(10, 2);
        let (interval, now) = (limit.interval(), SECOND * LimitWord::PER_NANOSECOND);
        let debit_at = |arrival| {
            let word = Cell::new(arrival);
            (debit(|| limit, Contended(&word), SECOND), word.get() - arrival)
        };
        let lost = u64::from(ATTEMPTS);
        assert_eq!(debit_at(0), (Debit::Contended, lost), "of a time gone by");
        assert_eq!(debit_at(now), (Debit::Admitted, lost + interval));
        assert_eq!(debit_at(now + interval - lost), (Debit::Admitted, lost + interval));
        assert_eq!(debit_at(now + interval - lost + 1), (Debit::Full, lost));
    }

    #[test]
    fn debits_that_are_about_to_be_taken_back_admit_nobody() {
        let (limit, arrival) = (per_second(10, 3), Cell::new(0));
        while debit(|| limit, &arrival, SECOND) == Debit::Admitted {}
        let full = arrival.get();
        for others in 1..=16 {
            (&arrival).add(limit.interval());
            assert_eq!(debit(|| limit, &arrival, SECOND), Debit::Full, "{others} others");
            assert!(is_full(limit, arrival.get(), SECOND));
        }
        (&arrival).add((16 * limit.interval()).wrapping_neg());
        assert_eq!((debit(|| limit, &arrival, SECOND), arrival.get()), (Debit::Full, full));
    }

    /// A word that other threads write too, and of which an exchange is lost fifteen times of sixteen.
    #[derive(Clone, Copy)]
    struct Shared<'w>(&'w AtomicU64, &'w Cell<u32>);

    impl Word for Shared<'_> {
        fn load(self) -> u64 {
            self.0.load(SeqCst)
        }
        fn exchange(self, from: u64, to: u64) -> Result<(), u64> {
            self.1.set(self.1.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
            if self.1.get() >> 28 != 0 {
                return Err(self.load());
            }
            self.0.compare_exchange(from, to, SeqCst, SeqCst).map(drop)
        }
        fn add(self, value: u64) -> u64 {
            self.0.fetch_add(value, SeqCst)
        }
    }

    /// What four threads are admitted that ask 4,000 times each, while the clock goes on by `tick` each time that
    /// the first of them has asked.
    fn admitted_together(limit: LimitWord, tick: u64) -> u64 {
        let (arrival, now) = (AtomicU64::new(0), AtomicU64::new(SECOND));
        let asks = |thread: u32| {
            let (chance, mut admitted) = (Cell::new(thread), 0);
            for _ in 0..4_000 {
                let word = Shared(&arrival, &chance);
                let asked = debit(|| limit, word, now.load(SeqCst));
                admitted += u64::from(asked == Debit::Admitted);
                if thread == 0 {
                    now.fetch_add(tick, SeqCst);
                }
            }
            admitted
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || asks(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    }

    /// Arrivals at random (exponential gaps) at four fifths of the limit, seen by a clock that ticks:
    /// few find it reached.
    #[test]
    fn little_spills_at_four_fifths_of_the_limit() {
        const TICK: u64 = 4_000_000;
        for rate in [5, 10, 50, 100] {
            let burst = 160 - (16 * rate * TICK).div_ceil(SECOND) as u32;
            let interval = SECOND * LimitWord::PER_NANOSECOND / rate;
            let (limit, arrival) = (LimitWord::in_parts(interval, burst), Cell::new(0));
            let (mut now, mut state, mut over) = (100.0 * SECOND as f64, 1_u64, 0);
            for _ in 0..1_000_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let uniform = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
                now -= uniform.ln() * SECOND as f64 / (0.8 * rate as f64);
                let ticked = now as u64 / TICK * TICK;
                over += u32::from(debit(|| limit, &arrival, ticked) != Debit::Admitted);
            }
            assert!(over < 5_000, "{over} of a million at a limit of {rate} a second");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn threads_at_one_moment_are_admitted_as_many_as_may_come_at_once(burst in 1..3_000_u32) {
            let admitted = admitted_together(per_second(10, burst), 0);
            proptest::prop_assert_eq!(admitted, u64::from(burst));
        }

        #[test]
        fn threads_keep_the_limit_while_time_goes_by(
            rate in 1_000..10_000_000_u64, burst in 1..100_u32, tick in 0..10_000_u64,
        ) {
            let limit = per_second(rate, burst);
            let admitted = admitted_together(limit, tick);
            let passed = 4_000 * tick * LimitWord::PER_NANOSECOND / limit.interval();
            proptest::prop_assert!(admitted <= u64::from(burst) + passed, "{admitted} admitted");
            proptest::prop_assert!(admitted >= u64::from(burst).min(4_000), "{admitted} admitted");
        }
    }

    proptest::proptest! {
        /// In any window at most `burst + window / interval`, and never refused while the admitted
        /// ones are fewer than that in every window that ends now: the definition, counted naively.
        #[test]
        fn it_is_the_limit_and_no_less(
            rate in 1..100_000_u64, burst in 1..50_u32,
            gaps in proptest::collection::vec(0..3_u64 * SECOND / 10, 1..300),
        ) {
            let limit = per_second(rate, burst);
            let interval = u128::from(limit.interval());
            let arrival = Cell::new(0);
            let mut now = 5 * SECOND;
            let mut admitted: Vec<u128> = vec![];
            for gap in gaps {
                now += gap;
                let at = u128::from(now) * u128::from(LimitWord::PER_NANOSECOND);
                let fits = |admitted: &[u128]| (0..=admitted.len()).all(|first| {
                    let since = admitted.get(first).copied().unwrap_or(at);
                    let count = (admitted.len() - first + 1) as u128;
                    // The k-th in a row may come no earlier than k - burst intervals after the first.
                    count <= u128::from(burst) || at >= since + (count - u128::from(burst)) * interval
                });
                let expected = fits(&admitted);
                let got = debit(|| limit, &arrival, now) == Debit::Admitted;
                proptest::prop_assert_eq!(got, expected, "after {} admitted", admitted.len());
                if got {
                    admitted.push(at);
                }
            }
        }
    }
}
