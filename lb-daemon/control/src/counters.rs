//! Counters of what the loops write. Clones of each share it.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use prometheus_client::metrics::{
    counter::Counter,
    gauge::Gauge,
    histogram::{Histogram, exponential_buckets},
};

use crate::members::wall_clock;
use lb_base::durations::Durations;

/// Counters of the applies to the packet path.
#[derive(Clone, Debug)]
pub struct PublishCounters {
    /// Seconds.
    pub durations: Histogram,
    pub failures: Counter,
    /// Time of the last success, seconds of the Unix epoch.
    pub last_at: Gauge<f64, AtomicU64>,
}

/// Buckets of durations: 1 ms, doubled up to 16 s.
const SHORTEST: f64 = 0.001;
const BUCKETS: u16 = 15;

impl Default for PublishCounters {
    fn default() -> Self {
        Self {
            durations: Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS)),
            failures: Counter::default(),
            last_at: Gauge::default(),
        }
    }
}

impl PublishCounters {
    pub(crate) fn published(&self, took: Duration, now: SystemTime) {
        self.durations.observe(took.as_secs_f64());
        self.last_at.set(seconds(now));
    }

    pub(crate) fn failed(&self) {
        self.failures.inc();
    }
}

/// Counters of the member loop, which takes no lock for them.
#[derive(Clone, Debug)]
pub struct HealthCounters {
    /// From the end of the check that caused a change until the packet path had it.
    pub publish_delays: Durations,
    /// Time of the last change, seconds of the Unix epoch.
    pub last_at: Gauge<f64, AtomicU64>,
    /// Holds of flapping backends that began.
    pub hold_downs: Counter,
}

/// Shortest bucket of the delays, and the number of buckets: up to 3.2 s.
const SHORTEST_DELAY: Duration = Duration::from_micros(100);
const DELAY_BUCKETS: usize = 16;

impl Default for HealthCounters {
    fn default() -> Self {
        let publish_delays = Durations::new(SHORTEST_DELAY, DELAY_BUCKETS);
        Self { publish_delays, last_at: Gauge::default(), hold_downs: Counter::default() }
    }
}

impl HealthCounters {
    /// Changes are in the packet path that were caused by checks, which ended at these times.
    pub(crate) fn written(&self, checks_ended: impl Iterator<Item = Instant>) {
        let now = Instant::now();
        let mut checks_ended = checks_ended.peekable();
        if checks_ended.peek().is_none() {
            return;
        }
        checks_ended.for_each(|ended| {
            self.publish_delays.record(now.saturating_duration_since(ended));
        });
        self.last_at.set(seconds(wall_clock()));
    }
}

/// Counters of writes of the store.
#[derive(Clone, Debug)]
pub struct StoreCounters {
    /// Of all writes, also those that failed, until the disk has said so.
    pub durations: Durations,
    pub failures: Counter,
    /// When the write began that is under way.
    began: Arc<Mutex<Option<Instant>>>,
}

/// Shortest bucket of writes, and the number of buckets: up to 16 s.
const SHORTEST_WRITE: Duration = Duration::from_millis(1);
const WRITE_BUCKETS: usize = 15;

impl Default for StoreCounters {
    fn default() -> Self {
        let durations = Durations::new(SHORTEST_WRITE, WRITE_BUCKETS);
        Self { durations, failures: Counter::default(), began: Arc::default() }
    }
}

impl StoreCounters {
    /// Measures a write.
    pub(crate) fn measure<T, E>(&self, write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let began = Instant::now();
        self.set_began(Some(began));
        let written = write();
        self.set_began(None);
        self.durations.record(began.elapsed());
        if written.is_err() {
            self.failures.inc();
        }
        written
    }

    /// How long the write has taken that is under way; zero: none is.
    pub fn under_way(&self) -> Duration {
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    fn set_began(&self, began: Option<Instant>) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }
}

/// Seconds of the Unix epoch.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_write_of_the_store_is_seen_while_it_waits_and_counted_once_it_ends() {
        let counters = StoreCounters::default();
        assert_eq!(counters.under_way(), Duration::ZERO);
        let (disk, answer) = mpsc::channel::<Result<(), ()>>();
        let began = Instant::now();
        let shared = counters.clone();
        let write = thread::spawn(move || shared.measure(|| answer.recv().unwrap()));
        while counters.under_way() < Duration::from_millis(20) {
            assert!(began.elapsed() < Duration::from_secs(20), "it is not seen");
            thread::yield_now();
        }
        assert_eq!(counters.durations.read().count, 0);
        disk.send(Ok(())).unwrap();
        write.join().unwrap().unwrap();
        let read = counters.durations.read();
        assert_eq!((read.count, counters.failures.get()), (1, 0));
        assert!(read.sum >= 0.02 && read.sum <= began.elapsed().as_secs_f64(), "{}", read.sum);
        assert_eq!(counters.under_way(), Duration::ZERO);

        counters.measure(|| Err::<(), ()>(())).unwrap_err();
        assert_eq!((counters.durations.read().count, counters.failures.get()), (2, 1));
        assert_eq!(counters.under_way(), Duration::ZERO);
    }

    #[test]
    fn each_change_of_health_has_its_delay_and_none_leaves_no_trace() {
        let counters = HealthCounters::default();
        counters.written([].into_iter());
        assert_eq!((counters.publish_delays.read().count, counters.last_at.get()), (0, 0.0));
        let now = Instant::now();
        let ago = |millis| now.checked_sub(Duration::from_millis(millis)).unwrap();
        counters.written([ago(5), ago(300)].into_iter());
        let read = counters.publish_delays.read();
        assert_eq!(read.count, 2);
        assert!(read.sum >= 0.305 && read.sum <= 0.305 + 2.0 * now.elapsed().as_secs_f64());
        assert!(counters.last_at.get() > 1.7e9);
    }
}
