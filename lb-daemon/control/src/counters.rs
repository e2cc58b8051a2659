//! Counters of what the loops write. Clones of each share it.

use std::{
    sync::atomic::AtomicU64,
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

/// Seconds of the Unix epoch.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

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
