//! Rise and fall: consecutive results decide a probe's health.

use super::{Health, Row};

/// Counts consecutive results of one probe.
#[derive(Clone, Debug)]
pub(super) struct Streak {
    rise: u32,
    fall: u32,
    /// `None` before the first success or the first `fall` failures in a row.
    health: Option<Health>,
    has_passed: bool,
    /// Consecutive successes.
    passed: u32,
    /// Consecutive failures.
    failed: u32,
    /// Consecutive results without a sign of the host.
    silent: u32,
}

impl Streak {
    pub(super) fn new(rise: u32, fall: u32) -> Self {
        let (passed, failed, silent) = (0, 0, 0);
        Self { rise, fall, health: None, has_passed: false, passed, failed, silent }
    }

    /// Sets another rise and fall, from the next result on.
    pub(super) fn judge_by(&mut self, rise: u32, fall: u32) {
        (self.rise, self.fall) = (rise, fall);
    }

    /// Records a result; returns the health if it changed.
    pub(super) fn record(&mut self, result: Health) -> Option<Health> {
        let counted = |row: &mut u32, counts| *row = if counts { row.saturating_add(1) } else { 0 };
        counted(&mut self.passed, result == Health::Passing);
        counted(&mut self.failed, result != Health::Passing);
        counted(&mut self.silent, result == Health::Silent);
        let health = self.after();
        self.has_passed |= result == Health::Passing;
        let changed = self.health != health;
        self.health = health;
        health.filter(|_| changed)
    }

    /// The failures so far, if no health is decided yet.
    pub(super) fn undecided(&self) -> Option<Row> {
        let Self { failed, fall, .. } = *self;
        (self.health.is_none() && failed > 0).then_some(Row { failed, fall })
    }

    /// Whether results have begun that could change the health.
    pub(super) fn is_in_doubt(&self) -> bool {
        match self.health {
            None | Some(Health::Passing) => self.failed > 0,
            Some(Health::Failing) => self.passed > 0 || self.silent > 0,
            Some(Health::Silent) => self.passed > 0,
        }
    }

    /// Progress towards `rise`, for a probe that is not up yet.
    pub(super) fn rising(&self) -> String {
        format!("passed {} of {}", self.passed, self.rise)
    }

    /// The health that follows from the counts.
    fn after(&self) -> Option<Health> {
        let up = if self.has_passed { self.passed >= self.rise } else { self.passed > 0 };
        let silent = self.silent >= self.fall;
        match self.health {
            Some(Health::Passing) if self.failed < self.fall => self.health,
            Some(Health::Failing | Health::Silent) | None if up => Some(Health::Passing),
            None if self.failed < self.fall => None,
            // A single sign proves that the host is up. A single missing one proves nothing.
            _ if silent => Some(Health::Silent),
            _ => Some(Health::Failing),
        }
    }
}

#[cfg(test)]
mod tests;
