//! Histograms of durations that are written without a lock, so that a thread that must not wait can write one while others
//! read it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A histogram of durations. Clones share it.
#[derive(Clone, Debug)]
pub struct Durations(Arc<Buckets>);

#[derive(Debug)]
struct Buckets {
    /// The first bucket's bound; each next one is twice as high.
    shortest: Duration,
    /// How many are in each bucket; the last has all that are beyond its bounds.
    counts: Box<[AtomicU64]>,
    /// Nanoseconds.
    sum: AtomicU64,
}

/// What a histogram holds at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationCounts {
    /// Upper bound of each bucket in seconds, and how many are in it and not in those before. The last bound is
    /// infinite.
    pub buckets: Vec<(f64, u64)>,
    /// Of all buckets.
    pub count: u64,
    /// Seconds, of all that were recorded.
    pub sum: f64,
}

impl Durations {
    /// Of loops and their queues: 18 buckets from 100 µs on.
    pub fn up_to_13_seconds() -> Self {
        Self::new(Duration::from_micros(100), 18)
    }

    /// A histogram of so many buckets, of which each has twice the bound of the one before, and one for what is longer.
    pub fn new(shortest: Duration, buckets: usize) -> Self {
        let counts = (0..=buckets).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Buckets { shortest, counts, sum: AtomicU64::new(0) }))
    }

    pub fn record(&self, duration: Duration) {
        let Buckets { counts, sum, .. } = &*self.0;
        let place = self.bounds().position(|bound| duration <= bound);
        let Some(count) = counts.get(place.unwrap_or(counts.len() - 1)) else { return };
        count.fetch_add(1, Ordering::Relaxed);
        // Enough for five centuries.
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        sum.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// What was recorded. A duration that is recorded meanwhile may be missing in the sum.
    pub fn read(&self) -> DurationCounts {
        let bounds = self.bounds().map(|bound| bound.as_secs_f64()).chain([f64::INFINITY]);
        let counts = self.0.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        let sum = Duration::from_nanos(self.0.sum.load(Ordering::Relaxed)).as_secs_f64();
        DurationCounts { count: buckets.iter().map(|(_, count)| count).sum(), buckets, sum }
    }

    fn bounds(&self) -> impl Iterator<Item = Duration> {
        let next = |bound: &Duration| Some(bound.saturating_mul(2));
        let bounds = std::iter::successors(Some(self.0.shortest), next);
        bounds.take(self.0.counts.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_in_the_first_bucket_that_it_fits() {
        let durations = Durations::new(Duration::from_millis(1), 3);
        let clone = durations.clone();
        for micros in [0, 1_000, 1_001, 2_000, 4_000, 4_001, 9_000_000] {
            clone.record(Duration::from_micros(micros));
        }
        let expected = [(0.001, 2), (0.002, 2), (0.004, 1), (f64::INFINITY, 2)];
        let read = durations.read();
        assert_eq!((read.buckets, read.count), (expected.into(), 7));
        assert!((read.sum - 9.012_002).abs() < 1e-9, "{}", read.sum);
    }

    #[test]
    fn nothing_is_lost_if_several_threads_record() {
        let durations = Durations::new(Duration::from_millis(1), 2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let record = || (0..1000).for_each(|_| durations.record(Duration::from_millis(2)));
                scope.spawn(record);
            }
        });
        let expected = DurationCounts {
            buckets: vec![(0.001, 0), (0.002, 4000), (f64::INFINITY, 0)],
            count: 4000,
            sum: 8.0,
        };
        assert_eq!(durations.read(), expected);
    }
}
