//! How long a remap lasts: the time in which open connections are at home where they were before. Pure: the caller passes the
//! time.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

/// A remap, or several that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    began: Instant,
    changed: Instant,
}

impl Settling {
    /// Settle times after which no further backend is marked out until the remap is over, and after which a change of an
    /// operator that moves homes of the pool ends it.
    pub const LONGEST: u32 = 3;

    /// Settle times that it lasts at most: the last change that does not end it is younger than [`Self::LONGEST`].
    pub const MOST: u32 = Self::LONGEST + 1;

    pub fn begin(now: Instant) -> Self {
        Self { began: now, changed: now }
    }

    /// Another change restarts the settle time: what it moves has all of it.
    pub fn change(&mut self, now: Instant) {
        self.changed = now;
    }

    pub fn since(&self) -> Instant {
        self.began
    }

    /// When it is over, unless another change comes.
    pub fn ends_at(&self, settle_time: Duration) -> Instant {
        self.changed + settle_time
    }

    pub fn is_over(&self, settle_time: Duration, now: Instant) -> bool {
        now >= self.ends_at(settle_time)
    }

    /// Whether changes have kept it from its end for too long.
    pub fn is_overdue(&self, settle_time: Duration, now: Instant) -> bool {
        now >= self.began + Self::LONGEST * settle_time
    }
}
