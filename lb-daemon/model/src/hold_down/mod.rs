//! Hold-down: a backend that goes down again soon after it came back is kept out of new connections for a while after it
//! passes its checks again. Each time in a row holds it twice as long, up to a bound. The time is handed in.
//!
//! The first return after a failure is never held, so a restart of a backend costs nothing. As with the restart delays of
//! supervisors, what counts is a failure soon after a return, not the number of failures an hour: a backend that was up for
//! long is forgiven. One that fails while it is held counts too, so that a backend whose checks pass for less than a hold
//! does not get new connections at each of its returns.
//!
//! A restart of the daemon continues a hold-down ([`HoldDown::restored`]).

use std::time::{Duration, Instant};

use lb_common::abi::member::Accepts;
use serde::{Deserialize, Serialize};

use crate::Pool;

/// How long backends of a pool are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldDownTimes {
    /// After the first failure soon after a return; zero: backends are never held.
    pub first: Duration,
    /// The bound of a hold. Also how long a backend must be up after a return until its failures are forgotten.
    pub longest: Duration,
}

impl HoldDownTimes {
    pub fn new(pool: &Pool) -> Self {
        Self { first: pool.hold_down, longest: pool.max_hold_down }
    }

    /// The hold after so many failures in a row.
    fn hold(self, failures: u32) -> Duration {
        let factor = failures.checked_sub(1).and_then(|doublings| 1u32.checked_shl(doublings));
        self.first.saturating_mul(factor.unwrap_or(u32::MAX)).min(self.longest)
    }
}

/// What is remembered of one backend in one pool. Its times are of the clock of this process, or of another one while it is
/// kept over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldDown<T = Instant> {
    /// Failures in a row that came soon after a return.
    failures: u32,
    phase: Phase<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase<T> {
    /// It has not failed, or its failures are forgotten.
    Calm,
    /// It is down.
    Down,
    /// It passes its checks, and is held.
    Held { since: T, until: T },
    /// It is up again.
    Returned { at: T },
}

impl<T> Default for HoldDown<T> {
    fn default() -> Self {
        Self { failures: 0, phase: Phase::Calm }
    }
}

impl<T> HoldDown<T> {
    /// Of a backend that is down for the first time.
    pub const DOWN: Self = Self { failures: 0, phase: Phase::Down };

    /// The same with the times of another clock.
    pub fn convert<U>(self, time: impl Fn(T) -> U) -> HoldDown<U> {
        let phase = match self.phase {
            Phase::Calm => Phase::Calm,
            Phase::Down => Phase::Down,
            Phase::Held { since, until } => Phase::Held { since: time(since), until: time(until) },
            Phase::Returned { at } => Phase::Returned { at: time(at) },
        };
        HoldDown { failures: self.failures, phase }
    }
}

impl HoldDown {
    /// What an earlier daemon knew at `saved_at`, as of `now`, of a backend that accepts this now. `None`: it is not known
    /// what the backend did meanwhile. The maps are newer than what was saved, and are right where the two contradict.
    pub fn restored(
        self,
        saved_at: Instant,
        accepts: Accepts,
        times: HoldDownTimes,
        now: Instant,
    ) -> Option<Self> {
        if now.saturating_duration_since(saved_at) > times.longest {
            return None;
        }
        let Self { failures, phase } = self;
        let phase = match phase {
            Phase::Held { until, .. } if until <= now => Phase::Returned { at: until },
            Phase::Held { since, until } => {
                let until = until.min(now + times.longest);
                // Not later than now, and no hold is longer than the longest.
                let since = since.min(now).max(until.checked_sub(times.longest).unwrap_or(now));
                Phase::Held { since, until }
            }
            Phase::Returned { at } => Phase::Returned { at: at.min(now) },
            phase @ (Phase::Calm | Phase::Down) => phase,
        };
        let mut restored = Self { failures, phase };
        match (accepts, restored.phase) {
            // It came up after that.
            (Accepts::All, Phase::Down | Phase::Held { .. }) => {
                restored.phase = Phase::Returned { at: saved_at.min(now) };
            }
            // Its host went silent after that.
            (Accepts::Nothing, _) => restored.fail(saved_at.min(now), times),
            _ => {}
        }
        Some(restored)
    }

    /// Whether it makes no difference any more that this is remembered.
    pub fn is_forgiven(&self, now: Instant, times: HoldDownTimes) -> bool {
        match self.phase {
            Phase::Calm => true,
            Phase::Returned { at } => now.saturating_duration_since(at) > times.longest,
            Phase::Down | Phase::Held { .. } => false,
        }
    }

    /// It went down. Repeated calls count once.
    pub fn fail(&mut self, now: Instant, times: HoldDownTimes) {
        let counts = match self.phase {
            Phase::Down => return,
            Phase::Calm => false,
            Phase::Held { .. } => true,
            Phase::Returned { at } => now.saturating_duration_since(at) <= times.longest,
        };
        self.failures = if counts { self.failures.saturating_add(1) } else { 0 };
        self.phase = Phase::Down;
    }

    /// It passes its checks: comes up, is held, or stays as it is.
    pub fn pass(&mut self, now: Instant, times: HoldDownTimes) {
        match self.phase {
            Phase::Calm | Phase::Returned { .. } => {}
            Phase::Held { .. } => {
                self.release(now);
            }
            Phase::Down => {
                let hold =
                    if self.failures > 0 { times.hold(self.failures) } else { Duration::ZERO };
                self.phase = match hold.is_zero() {
                    true => Phase::Returned { at: now },
                    false => Phase::Held { since: now, until: now + hold },
                };
            }
        }
    }

    /// Ends a hold whose time is over. Returns whether it did.
    pub fn release(&mut self, now: Instant) -> bool {
        let is_over = self.until().is_some_and(|until| until <= now);
        if is_over {
            self.phase = Phase::Returned { at: now };
        }
        is_over
    }

    pub fn is_held(&self) -> bool {
        self.until().is_some()
    }

    /// How much longer it is held.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        Some(self.until()?.saturating_duration_since(now))
    }

    /// How long it is held in all.
    pub fn length(&self) -> Option<Duration> {
        match self.phase {
            Phase::Held { since, until } => Some(until.saturating_duration_since(since)),
            _ => None,
        }
    }

    /// Failures in a row, each soon after a return.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    fn until(&self) -> Option<Instant> {
        match self.phase {
            Phase::Held { until, .. } => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
