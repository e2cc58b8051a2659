//! For how long what home meant before a remap counts beside what it means now. Pure: the time is handed in.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

/// How far a pool is with a remap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Open connections go by what home meant before.
    Settling,
    /// They do, and those that would be elsewhere without that are remembered one by one.
    Adopting,
    /// What home meant before can be forgotten.
    Over,
}

/// A remap, or several of which each came before the one before had settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    began: Instant,
    changed: Instant,
    refused: Option<Instant>,
}

impl Settling {
    /// Part of the settle time in which connections are adopted.
    const ADOPTS: u32 = 3;
    /// Settle times after which it is over though changes continue.
    const LONGEST: u32 = 3;

    pub fn begin(now: Instant) -> Self {
        Self { began: now, changed: now, refused: None }
    }

    /// Another change: the settle time begins anew.
    pub fn change(&mut self, now: Instant) {
        (self.changed, self.refused) = (now, None);
    }

    /// A connection could not be adopted: there must be time to try again.
    pub fn refuse(&mut self, now: Instant) {
        self.refused = Some(now);
    }

    /// When the first change was.
    pub fn since(&self) -> Instant {
        self.began
    }

    /// When adopting begins, with a settle time.
    pub fn adopts_at(&self, settle_time: Duration) -> Instant {
        self.planned_end(settle_time) - settle_time / Self::ADOPTS
    }

    /// When it is over: refusals while connections are adopted put that off, but not for longer than
    /// another settle time.
    pub fn ends_at(&self, settle_time: Duration) -> Instant {
        let end = self.planned_end(settle_time);
        let refused = self.refused.filter(|at| *at >= self.adopts_at(settle_time));
        let tried_again = refused.map(|at| at + settle_time / Self::ADOPTS);
        tried_again.map_or(end, |tried| tried.clamp(end, end + settle_time))
    }

    /// How far it is.
    pub fn phase(&self, settle_time: Duration, now: Instant) -> Phase {
        if now >= self.ends_at(settle_time) {
            Phase::Over
        } else if now >= self.adopts_at(settle_time) {
            Phase::Adopting
        } else {
            Phase::Settling
        }
    }

    fn planned_end(&self, settle_time: Duration) -> Instant {
        (self.changed + settle_time).min(self.began + Self::LONGEST * settle_time)
    }
}
