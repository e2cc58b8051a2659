use std::time::Duration;

use lb_common::abi::{counter::GroupCounter, limiter::LimitWord};
use serde::Serialize;

const NANOSECONDS: f64 = 1e9;
/// What is less of a backend than this is none: floating-point numbers are not exact.
const CRUMB: f64 = 1e-6;

/// New connections of a group a second.
pub type Rates = Connections<f64>;

impl Rates {
    /// What was counted between two looks, a second; `None`: no time has passed, or the counters have
    /// begun anew.
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

/// New connections a second that a limit admits; `None`: as many as come.
pub fn per_second(limit: LimitWord) -> Option<f64> {
    if limit.is_unlimited() {
        return None;
    }
    if limit.is_closed() {
        return Some(0.0);
    }
    Some(NANOSECONDS * LimitWord::PER_NANOSECOND as f64 / limit.interval() as f64)
}

/// Share of a limit a second, as [`per_second`] gives it, that was used, 1 for the whole; more where a burst or connections over capacity went beyond it.
/// `None`: there is no limit, or nothing is admitted.
pub fn utilisation(rates: &Rates, limit: Option<f64>) -> Option<f64> {
    limit.filter(|limit| *limit > 0.0).map(|limit| rates.admitted / limit)
}

/// Backends that a group misses to admit all that it was asked for, where each one more raises its
/// limit by `gain` a second. 0: none is missing, all was admitted within the limit. `None`: what one
/// more would bring is not known, or is nothing.
pub fn missing_backends(rates: &Rates, limit: Option<f64>, gain: Option<f64>) -> Option<u32> {
    let Some(limit) = limit else { return Some(0) };
    let lost = rates.overflow_out + rates.refused + rates.over_capacity;
    let missing = rates.offered - limit;
    // What a burst took is not missing.
    if lost <= 0.0 || missing <= 0.0 {
        return Some(0);
    }
    let gain = gain.filter(|gain| *gain > 0.0)?;
    Some((missing / gain - CRUMB).ceil().max(1.0) as u32)
}

/// New connections of a group: so many, or so many a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections<N> {
    /// Those it was asked for: the sum of admitted, overflow out and refused.
    pub offered: N,
    /// Those it took.
    pub admitted: N,
    /// Of those it took, the ones that a nearer group was asked for first.
    pub overflow_in: N,
    /// Those that another group took.
    pub overflow_out: N,
    /// Those that were dropped because every group was full, counted at the first one asked.
    pub refused: N,
    /// Of those it took, the ones beyond its limit.
    pub over_capacity: N,
}

impl<N: Copy> Connections<N> {
    /// The same in another unit.
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
