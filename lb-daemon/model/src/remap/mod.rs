//! The phases of a remap: how long the previous home counts beside the current one. Pure: the caller passes the time.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

/// Phase of a pool's remap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Open connections go to their previous home.
    Settling,
    /// They still do, and each whose home changes gets a displaced entry.
    Adopting,
    /// The previous version is no longer needed.
    Over,
}

/// A remap, or several that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    began: Instant,
    changed: Instant,
    refused: Option<Instant>,
    /// Since when connections are adopted.
    adopting: Option<Instant>,
}

impl Settling {
    /// Part of the settle time in which connections are adopted.
    const ADOPTS: u32 = 3;
    /// Settle times after which it ends even if changes continue.
    pub const LONGEST: u32 = 3;

    pub fn begin(now: Instant) -> Self {
        Self { began: now, changed: now, refused: None, adopting: None }
    }

    /// Another change restarts the settle time.
    pub fn change(&mut self, now: Instant) {
        (self.changed, self.refused) = (now, None);
    }

    /// Notes that a connection could not be adopted, so that there is time to try again.
    pub fn refuse(&mut self, now: Instant) {
        self.refused = Some(now);
    }

    /// Notes whether the packet path adopts connections now.
    ///
    /// The phases follow the clock, and the packet path follows the phases: a daemon that is stopped for longer than the
    /// last third of the settle time finds that over, and no connection adopted. So the end waits for a third in which they
    /// were.
    pub fn observe(&mut self, adopting: bool, now: Instant) {
        self.adopting = adopting.then(|| self.adopting.unwrap_or(now));
    }

    pub fn since(&self) -> Instant {
        self.began
    }

    pub fn adopts_at(&self, settle_time: Duration) -> Instant {
        self.planned_end(settle_time) - settle_time / Self::ADOPTS
    }

    /// Refusals while connections are adopted put the end off, by at most another settle time. The end is later if their
    /// adoption began late.
    pub fn ends_at(&self, settle_time: Duration) -> Instant {
        let end = self.planned_end(settle_time);
        let refused = self.refused.filter(|at| *at >= self.adopts_at(settle_time));
        let tried_again = refused.map(|at| at + settle_time / Self::ADOPTS);
        let end = tried_again.map_or(end, |tried| tried.clamp(end, end + settle_time));
        self.adopting.map_or(end, |since| end.max(since + settle_time / Self::ADOPTS))
    }

    pub fn phase(&self, settle_time: Duration, now: Instant) -> Phase {
        if now < self.adopts_at(settle_time) {
            Phase::Settling
        } else if self.adopting.is_none() || now < self.ends_at(settle_time) {
            Phase::Adopting
        } else {
            Phase::Over
        }
    }

    fn planned_end(&self, settle_time: Duration) -> Instant {
        (self.changed + settle_time).min(self.began + Self::LONGEST * settle_time)
    }
}
