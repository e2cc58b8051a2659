//! What the prober counts while it runs.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lb_model::Name;
use prometheus_client::metrics::{
    counter::Counter,
    histogram::{Histogram, exponential_buckets},
};

use crate::lateness::Lateness;

/// Counts health checks. Clones count together.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Checks that passed.
    pub passed: Counter,
    /// Checks that failed.
    pub failed: Counter,
    /// Checks that this host had no room for.
    pub not_made: Counter,
    /// How late checks began, seconds.
    pub lateness: Histogram,
    failing: Failing,
    fine: Arc<Lateness>,
}

/// A check of a backend: pool, address, name of the check.
pub type Check = (Name, IpAddr, Name);

/// Checks that fail now. Only these are kept and shown: of a hundred thousand backends few do.
#[derive(Clone, Debug, Default)]
struct Failing(Arc<Mutex<BTreeSet<Check>>>);

/// What came of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedResult {
    Passed,
    Failed,
    /// This host had no room for it.
    NotMade,
}

/// Bounds of the buckets of durations: 1 ms, doubled up to 16 s.
const SHORTEST: f64 = 0.001;
const BUCKETS: u16 = 15;

impl Default for Counters {
    fn default() -> Self {
        Self {
            passed: Counter::default(),
            failed: Counter::default(),
            not_made: Counter::default(),
            lateness: Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS)),
            failing: Failing::default(),
            fine: Arc::default(),
        }
    }
}

impl Failing {
    fn now(&self) -> MutexGuard<'_, BTreeSet<Check>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    /// Replaces the checks that fail.
    pub(crate) fn set_failing(&self, checks: impl Iterator<Item = Check>) {
        *self.failing.now() = checks.collect();
    }

    /// Says whether a check fails.
    pub(crate) fn update_failing(&self, check: Check, fails: bool) {
        let mut failing = self.failing.now();
        match fails {
            true => failing.insert(check),
            false => failing.remove(&check),
        };
    }

    /// Checks that fail now.
    pub fn failing(&self) -> Vec<Check> {
        self.failing.now().iter().cloned().collect()
    }

    /// A check began so much later than planned.
    pub(crate) fn late(&self, by: Duration) {
        self.lateness.observe(by.as_secs_f64());
        self.fine.record(by);
    }

    /// How late checks began, finer than the histogram has it.
    pub fn exact_lateness(&self) -> &Lateness {
        &self.fine
    }

    /// A check is over.
    pub(crate) fn probed(&self, result: CountedResult) {
        match result {
            CountedResult::Passed => self.passed.inc(),
            CountedResult::Failed => self.failed.inc(),
            CountedResult::NotMade => self.not_made.inc(),
        };
    }
}
