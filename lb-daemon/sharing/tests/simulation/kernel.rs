//! The kernel of a host: limits, enforced by the packet path's own admission, whatever becomes of the daemon.

use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use lb_common::{
    abi::limiter::LimitWord,
    admission::{self, Debit, debit},
};
use lb_model::capacity::{Capacity, Portion, Share};
use lb_sharing::{GroupKey, Parts};

use super::STEP;

/// One limiter, with what it has been asked and has admitted.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: Cell<u64>,
    arrival: Cell<u64>,
    /// What is enforced: the parts, and the rate that they stand for.
    pub(crate) parts: Parts,
    pub(crate) per_second: f64,
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    /// Largest burst of each step of the last second, connections.
    bursts: VecDeque<f64>,
}

impl Limiter {
    fn closed() -> Self {
        Self {
            limit: Cell::new(LimitWord::CLOSED.0),
            arrival: Cell::new(0),
            parts: Parts::NONE,
            per_second: 0.0,
            offered: 0,
            admitted: 0,
            bursts: VecDeque::new(),
        }
    }

    fn set(&mut self, parts: Parts, capacity: f64, now: Duration) {
        (self.parts, self.per_second) = (parts, parts.fraction() * capacity);
        let portion = Portion::new(parts.fraction()).unwrap();
        let share = Share { portion, tick: STEP.as_nanos() as u64 };
        let limit = match capacity {
            0.0 => LimitWord::CLOSED,
            rate => share.group_limit(Capacity::PerSecond(rate)),
        };
        admission::change_limit(&self.limit, &self.arrival, limit, now.as_nanos() as u64);
        if let Some(last) = self.bursts.back_mut() {
            *last = last.max(burst(self.per_second));
        }
    }

    fn offer(&mut self, connections: u64, now: Duration) -> u64 {
        let asked = (0..connections)
            .map(|_| debit(|| LimitWord(self.limit.get()), &self.arrival, now.as_nanos() as u64));
        let admitted = asked.filter(|debit| *debit == Debit::Admitted).count() as u64;
        self.offered += connections;
        self.admitted += admitted;
        self.bursts.push_back(burst(self.per_second));
        // One step more than a second: what was in force when the second began counts.
        while self.bursts.len() > (1_000 / STEP.as_millis()) as usize + 1 {
            self.bursts.pop_front();
        }
        admitted
    }

    /// The largest burst that was allowed within the last second, connections.
    pub(crate) fn largest_burst(&self) -> f64 {
        self.bursts.iter().copied().fold(0.0, f64::max)
    }
}

/// The burst that a share of a capacity allows (FLEET.md), connections.
fn burst(per_second: f64) -> f64 {
    if per_second == 0.0 { 0.0 } else { (0.1 * per_second).max(10.0) }
}

/// The limiters of a host, by group.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) limiters: BTreeMap<GroupKey, Limiter>,
}

impl Kernel {
    pub(crate) fn enforce(&mut self, group: &GroupKey, parts: Parts, capacity: f64, now: Duration) {
        let limiter = self.limiters.entry(group.clone()).or_insert_with(Limiter::closed);
        if limiter.parts != parts || limiter.per_second != parts.fraction() * capacity {
            limiter.set(parts, capacity, now);
        }
    }

    /// Offers connections to a group. Returns how many are admitted.
    pub(crate) fn offer(&mut self, group: &GroupKey, connections: u64, now: Duration) -> u64 {
        let limiter = self.limiters.entry(group.clone()).or_insert_with(Limiter::closed);
        limiter.offer(connections, now)
    }
}
