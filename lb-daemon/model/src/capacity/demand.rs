use std::time::Duration;

use lb_common::abi::{counter::GroupCounter, limiter::LimitWord};
use serde::Serialize;

const NANOSECONDS: f64 = 1e9;
/// A smaller part of a backend counts as none, because floating-point numbers are not exact.
const EPSILON: f64 = 1e-6;

/// New connections of a group, a second.
pub type Rates = Connections<f64>;

impl Rates {
    /// Rates between two readings of the counters; `None`: no time has passed, or the counters were reset.
    pub fn between(before: &GroupCounter, after: &GroupCounter, elapsed: Duration) -> Option<Self> {
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let rate = |of: fn(&GroupCounter) -> u64| {
            of(after).checked_sub(of(before)).map(|count| count as f64 / seconds)
        };
        Some(Self {
            offered: rate(|c| c.offered)?,
            admitted: rate(|c| c.admitted)?,
            overflow_in: rate(|c| c.overflow_in)?,
            overflow_out: rate(|c| c.overflow_out)?,
            refused: rate(|c| c.refused)?,
            over_capacity: rate(|c| c.over_capacity)?,
        })
    }
}

/// New connections a second that a limit admits; `None`: unlimited.
pub fn per_second(limit: LimitWord) -> Option<f64> {
    if limit.is_unlimited() {
        return None;
    }
    if limit.is_closed() {
        return Some(0.0);
    }
    Some(NANOSECONDS * LimitWord::PER_NANOSECOND as f64 / limit.interval() as f64)
}

/// Used share of a limit, given in connections a second. It can exceed 1, by a burst or by connections over
/// capacity. `None`: there is no limit, or nothing is admitted.
pub fn utilisation(rates: &Rates, limit: Option<f64>) -> Option<f64> {
    limit.filter(|limit| *limit > 0.0).map(|limit| rates.admitted / limit)
}

/// Number of backends that a group lacks to admit all offered connections, if each one more raises its limit
/// by `gain` a second. `None`: the gain is unknown or zero.
pub fn missing_backends(rates: &Rates, limit: Option<f64>, gain: Option<f64>) -> Option<u32> {
    let Some(limit) = limit else { return Some(0) };
    let lost = rates.overflow_out + rates.refused + rates.over_capacity;
    let missing = rates.offered - limit;
    // Connections that a burst admitted need no backend.
    if lost <= 0.0 || missing <= 0.0 {
        return Some(0);
    }
    let gain = gain.filter(|gain| *gain > 0.0)?;
    Some((missing / gain - EPSILON).ceil().max(1.0) as u32)
}

/// New connections of a group: counts, or rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections<N> {
    /// All that reached the group: the sum of admitted, overflow out and refused.
    pub offered: N,
    pub admitted: N,
    /// Admitted ones that a nearer group had passed on.
    pub overflow_in: N,
    /// Passed on to another group.
    pub overflow_out: N,
    /// Dropped because every group was full, counted at the nearest group.
    pub refused: N,
    /// Admitted ones beyond the limit.
    pub over_capacity: N,
}

impl<N: Copy> Connections<N> {
    pub fn map<M>(&self, to: impl Fn(N) -> M) -> Connections<M> {
        Connections {
            offered: to(self.offered),
            admitted: to(self.admitted),
            overflow_in: to(self.overflow_in),
            overflow_out: to(self.overflow_out),
            refused: to(self.refused),
            over_capacity: to(self.over_capacity),
        }
    }
}

impl From<GroupCounter> for Connections<u64> {
    fn from(counter: GroupCounter) -> Self {
        let GroupCounter { offered, admitted, overflow_in, overflow_out, refused, over_capacity } =
            counter;
        Self { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
    }
}
