use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prometheus_client::metrics::{
    counter::Counter,
    gauge::Gauge,
    histogram::{Histogram, exponential_buckets},
};

use super::Lateness;
use crate::model::Name;

/// What the daemon itself counts while it lives; clones count together.
#[derive(Clone, Debug)]
pub struct Live {
    pub(super) publish: Histogram,
    pub(super) publish_failures: Counter,
    pub(super) published_at: Gauge<f64, AtomicU64>,
    pub(super) passed: Counter,
    pub(super) failed: Counter,
    pub(super) not_made: Counter,
    pub(super) lateness: Histogram,
    pub(super) failing: Failing,
    api_refused: Arc<[[AtomicU64; ApiLimit::ALL.len()]; Door::ALL.len()]>,
    fine: Arc<Lateness>,
}

/// A check of a backend: pool, address, name of the check.
pub type Check = (Name, IpAddr, Name);

/// Checks that fail now. Only these are kept and shown: of a hundred thousand backends few do.
#[derive(Clone, Debug, Default)]
pub(super) struct Failing(Arc<Mutex<BTreeSet<Check>>>);

/// What came of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// This host had no room for it.
    NotMade,
}

/// Where clients of the API come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The unix socket.
    Socket,
    /// TCP with TLS.
    Tls,
}

/// A limit of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiLimit {
    /// Connections.
    Connections,
    /// Calls under way, streams included.
    Calls,
    /// Watches.
    Watches,
}

impl Door {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Socket, Self::Tls];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Tls => "tls",
        }
    }
}

impl ApiLimit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Connections, Self::Calls, Self::Watches];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Calls => "calls",
            Self::Watches => "watches",
        }
    }
}

/// Bounds of the buckets of durations: 1 ms, doubled up to 16 s.
const SHORTEST: f64 = 0.001;
const BUCKETS: u16 = 15;

impl Default for Live {
    fn default() -> Self {
        let durations = || Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS));
        Self {
            publish: durations(),
            publish_failures: Counter::default(),
            published_at: Gauge::default(),
            passed: Counter::default(),
            failed: Counter::default(),
            not_made: Counter::default(),
            lateness: durations(),
            failing: Failing::default(),
            api_refused: Arc::default(),
            fine: Arc::default(),
        }
    }
}

impl Failing {
    pub(super) fn now(&self) -> MutexGuard<'_, BTreeSet<Check>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// Takes all checks that fail, in place of those that did.
    pub fn failing_are(&self, checks: impl Iterator<Item = Check>) {
        *self.failing.now() = checks.collect();
    }

    /// Takes whether a check fails.
    pub fn failing(&self, check: Check, fails: bool) {
        let mut failing = self.failing.now();
        match fails {
            true => failing.insert(check),
            false => failing.remove(&check),
        };
    }

    /// The packet path was brought to a plan, in this time.
    pub fn published(&self, took: Duration, now: SystemTime) {
        self.publish.observe(took.as_secs_f64());
        self.published_at.set(seconds(now));
    }

    /// It could not be.
    pub fn not_published(&self) {
        self.publish_failures.inc();
    }

    /// A health check began so much later than planned.
    pub fn late(&self, by: Duration) {
        self.lateness.observe(by.as_secs_f64());
        self.fine.record(by);
    }

    /// How late checks began, finer than the metric has it.
    pub fn lateness(&self) -> &Lateness {
        &self.fine
    }

    /// The API refused something because of a limit.
    pub fn api_refused(&self, door: Door, limit: ApiLimit) {
        self.refusals(door, limit).fetch_add(1, Ordering::Relaxed);
    }

    /// How often the API refused something because of a limit.
    pub fn api_refusals(&self, door: Door, limit: ApiLimit) -> u64 {
        self.refusals(door, limit).load(Ordering::Relaxed)
    }

    fn refusals(&self, door: Door, limit: ApiLimit) -> &AtomicU64 {
        &self.api_refused[door as usize][limit as usize]
    }

    /// A health check is over.
    pub fn probed(&self, result: Probed) {
        match result {
            Probed::Passed => self.passed.inc(),
            Probed::Failed => self.failed.inc(),
            Probed::NotMade => self.not_made.inc(),
        };
    }
}

/// Seconds of the Unix epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
