//! The kernel of a host: limits, enforced by the packet path's own admission, whatever becomes of the daemon.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use lb_common::abi::limiter::LimitWord;
use lb_common_fake::limiter::FakeLimiter;
use lb_model::capacity::{Capacity, Portion, Share};
use lb_sharing::{GroupKey, Parts};

use super::STEP;

/// The limiter of a group, with the bursts that it allowed.
#[derive(Debug)]
pub(crate) struct GroupLimiter {
    pub(crate) limiter: FakeLimiter,
    /// What is enforced: the parts, and the rate that they stand for.
    pub(crate) parts: Parts,
    per_second: f64,
    /// Largest burst of each step of the last second, connections.
    bursts: VecDeque<f64>,
}

impl GroupLimiter {
    fn closed() -> Self {
        Self {
            limiter: FakeLimiter::closed(),
            parts: Parts::NONE,
            per_second: 0.0,
            bursts: VecDeque::new(),
        }
    }

    fn enforce(&mut self, parts: Parts, capacity: f64, now: Duration) {
        let per_second = parts.fraction() * capacity;
        if (self.parts, self.per_second) == (parts, per_second) {
            return;
        }
        (self.parts, self.per_second) = (parts, per_second);
        let portion = Portion::new(parts.fraction()).unwrap();
        let share = Share { portion, tick: STEP.as_nanos() as u64 };
        let limit = match capacity {
            0.0 => LimitWord::CLOSED,
            rate => share.group_limit(Capacity::PerSecond(rate)),
        };
        self.limiter.change_limit(limit, now);
        if let Some(last) = self.bursts.back_mut() {
            *last = last.max(burst(self.per_second));
        }
    }

    fn offer(&mut self, connections: u64, now: Duration) -> u64 {
        self.bursts.push_back(burst(self.per_second));
        // One step more than a second: what was in force when the second began counts.
        while self.bursts.len() > (1_000 / STEP.as_millis()) as usize + 1 {
            self.bursts.pop_front();
        }
        self.limiter.offer(connections, now)
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
    pub(crate) limiters: BTreeMap<GroupKey, GroupLimiter>,
}

impl Kernel {
    pub(crate) fn enforce(&mut self, group: &GroupKey, parts: Parts, capacity: f64, now: Duration) {
        self.limiter(group).enforce(parts, capacity, now);
    }

    /// Offers connections to a group. Returns how many are admitted.
    pub(crate) fn offer(&mut self, group: &GroupKey, connections: u64, now: Duration) -> u64 {
        self.limiter(group).offer(connections, now)
    }

    fn limiter(&mut self, group: &GroupKey) -> &mut GroupLimiter {
        self.limiters.entry(group.clone()).or_insert_with(GroupLimiter::closed)
    }
}
