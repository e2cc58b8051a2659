//! Counters of health checks.

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

/// Clones share the counters.
#[derive(Clone, Debug)]
pub struct Counters {
    pub passed: Counter,
    pub failed: Counter,
    /// Checks that could not be made for lack of resources on this host.
    pub not_made: Counter,
    /// Delay of checks' starts, seconds.
    pub lateness: Histogram,
    failing: Failing,
    fine: Arc<Lateness>,
}

/// Pool, address, name of the check.
pub type Check = (Name, IpAddr, Name);

/// Checks that fail now. Only these are exposed: of a hundred thousand backends few fail.
#[derive(Clone, Debug, Default)]
struct Failing(Arc<Mutex<BTreeSet<Check>>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedResult {
    Passed,
    Failed,
    /// Not made for lack of resources on this host.
    NotMade,
}

/// Buckets of durations: 1 ms, doubled up to 16 s.
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
    /// Replaces the failing checks.
    pub(crate) fn set_failing(&self, checks: impl Iterator<Item = Check>) {
        *self.failing.now() = checks.collect();
    }

    /// Sets whether a check fails.
    pub(crate) fn update_failing(&self, check: Check, fails: bool) {
        let mut failing = self.failing.now();
        match fails {
            true => failing.insert(check),
            false => failing.remove(&check),
        };
    }

    /// The failing checks.
    pub fn failing(&self) -> Vec<Check> {
        self.failing.now().iter().cloned().collect()
    }

    /// Counts the delay of a check's start.
    pub(crate) fn late(&self, by: Duration) {
        self.lateness.observe(by.as_secs_f64());
        self.fine.record(by);
    }

    /// Delays with a finer resolution than the histogram's.
    pub fn exact_lateness(&self) -> &Lateness {
        &self.fine
    }

    /// Counts a finished check.
    pub(crate) fn probed(&self, result: CountedResult) {
        match result {
            CountedResult::Passed => self.passed.inc(),
            CountedResult::Failed => self.failed.inc(),
            CountedResult::NotMade => self.not_made.inc(),
        };
    }
}
