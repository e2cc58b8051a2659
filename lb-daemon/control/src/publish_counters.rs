//! What the state loop counts while it publishes.

use std::{
    sync::atomic::AtomicU64,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prometheus_client::metrics::{
    counter::Counter,
    gauge::Gauge,
    histogram::{Histogram, exponential_buckets},
};

/// Counts what brings the packet path to a plan. Clones count together.
#[derive(Clone, Debug)]
pub struct PublishCounters {
    /// How long it took, seconds.
    pub durations: Histogram,
    /// How often it failed.
    pub failures: Counter,
    /// When it last succeeded, seconds of the Unix epoch.
    pub last_at: Gauge<f64, AtomicU64>,
}

/// Bounds of the buckets of durations: 1 ms, doubled up to 16 s.
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
    /// The packet path was brought to a plan, in this time.
    pub(crate) fn published(&self, took: Duration, now: SystemTime) {
        self.durations.observe(took.as_secs_f64());
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_at.set(since_epoch.as_secs_f64());
    }

    /// The packet path could not be brought to a plan.
    pub(crate) fn failed(&self) {
        self.failures.inc();
    }
}
