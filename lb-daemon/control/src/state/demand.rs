//! What was counted in the last second.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use lb_common::abi::counter::GroupCounter;

use lb_model::capacity::{GroupReading, Rates};

/// Time between two looks at the counters.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A group, by the indices of its pool and region.
type Key = (u32, u32);

/// The last looks at the counters of groups.
#[derive(Debug, Default)]
pub(super) struct Demand {
    last: Option<(Instant, HashMap<Key, GroupCounter>)>,
    /// Time between the last two looks.
    window: Option<Duration>,
    rates: HashMap<Key, Rates>,
}

impl Demand {
    /// Takes a look.
    pub(super) fn look(&mut self, readings: &[GroupReading], now: Instant) {
        let counters: HashMap<_, _> = readings.iter().map(|r| (key(r), r.counters)).collect();
        self.rates.clear();
        self.window = self.last.as_ref().map(|(before, _)| now.duration_since(*before));
        if let (Some((_, before)), Some(elapsed)) = (&self.last, self.window) {
            let between = |(key, after): (&Key, &GroupCounter)| {
                Some((*key, Rates::between(before.get(key)?, after, elapsed)?))
            };
            self.rates = counters.iter().filter_map(between).collect();
        }
        self.last = Some((now, counters));
    }

    /// The counters could not be read: nothing is known until two looks later.
    pub(super) fn lose(&mut self) {
        *self = Self::default();
    }

    /// Time that the rates are of.
    pub(super) fn window(&self) -> Option<Duration> {
        self.window
    }

    /// What was counted of a group in that time, a second; `None`: it is newer than that.
    pub(super) fn rates(&self, reading: &GroupReading) -> Option<Rates> {
        self.rates.get(&key(reading)).copied()
    }
}

fn key(reading: &GroupReading) -> Key {
    (reading.pool, reading.region)
}
