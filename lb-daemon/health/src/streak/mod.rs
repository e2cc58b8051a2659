//! Rise and fall: what a row of results says.

use super::{Health, Row};

/// Counts results in a row of one probe.
#[derive(Clone, Debug)]
pub(super) struct Streak {
    rise: u32,
    fall: u32,
    /// `None` before the first success and the first whole row of failures.
    says: Option<Health>,
    has_passed: bool,
    /// Successes in a row, up to now.
    passed: u32,
    /// Failures in a row, up to now.
    failed: u32,
    /// Results without a sign of the host in a row, up to now.
    silent: u32,
}

impl Streak {
    pub(super) fn new(rise: u32, fall: u32) -> Self {
        let (passed, failed, silent) = (0, 0, 0);
        Self { rise, fall, says: None, has_passed: false, passed, failed, silent }
    }

    /// Has the rows that have begun judged by another rise and fall, from the next result on.
    pub(super) fn judge_by(&mut self, rise: u32, fall: u32) {
        (self.rise, self.fall) = (rise, fall);
    }

    /// Takes the next result; what the probe says from now on, if that changes.
    pub(super) fn record(&mut self, result: Health) -> Option<Health> {
        let counted = |row: &mut u32, counts| *row = if counts { row.saturating_add(1) } else { 0 };
        counted(&mut self.passed, result == Health::Passing);
        counted(&mut self.failed, result != Health::Passing);
        counted(&mut self.silent, result == Health::Silent);
        let says = self.after();
        self.has_passed |= result == Health::Passing;
        let changed = self.says != says;
        self.says = says;
        says.filter(|_| changed)
    }

    /// The row of failures that has begun, where nothing was decided before it.
    pub(super) fn undecided(&self) -> Option<Row> {
        let Self { failed, fall, .. } = *self;
        (self.says.is_none() && failed > 0).then_some(Row { failed, fall })
    }

    /// Whether a row has begun that would change what the probe says.
    pub(super) fn is_in_doubt(&self) -> bool {
        match self.says {
            None | Some(Health::Passing) => self.failed > 0,
            Some(Health::Failing) => self.passed > 0 || self.silent > 0,
            Some(Health::Silent) => self.passed > 0,
        }
    }

    /// How far the row of successes is, for a probe that has still to rise.
    pub(super) fn rising(&self) -> String {
        format!("passed {} of {}", self.passed, self.rise)
    }

    /// What follows from the rows.
    fn after(&self) -> Option<Health> {
        let up = if self.has_passed { self.passed >= self.rise } else { self.passed > 0 };
        let silent = self.silent >= self.fall;
        match self.says {
            Some(Health::Passing) if self.failed < self.fall => self.says,
            Some(Health::Failing | Health::Silent) | None if up => Some(Health::Passing),
            None if self.failed < self.fall => None,
            // So one sign proves that the host is there, and the absence of one proves nothing.
            _ if silent => Some(Health::Silent),
            _ => Some(Health::Failing),
        }
    }
}

#[cfg(test)]
mod tests;
