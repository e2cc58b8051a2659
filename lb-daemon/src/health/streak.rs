//! Rise and fall: what a row of results says.

use super::Health;

/// Counts results in a row of one probe.
#[derive(Debug)]
pub(super) struct Streak {
    rise: u32,
    fall: u32,
    /// `None` before the first result.
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

    /// Takes the next result; what the probe says from now on, if that changes.
    pub(super) fn record(&mut self, result: Health) -> Option<Health> {
        let counted = |row: &mut u32, counts| *row = if counts { row.saturating_add(1) } else { 0 };
        counted(&mut self.passed, result == Health::Passing);
        counted(&mut self.failed, result != Health::Passing);
        counted(&mut self.silent, result == Health::Silent);
        let says = self.after();
        self.has_passed |= result == Health::Passing;
        (self.says.replace(says) != Some(says)).then_some(says)
    }

    /// Whether a row has begun that would change what the probe says.
    pub(super) fn is_in_doubt(&self) -> bool {
        match self.says {
            None => false,
            Some(Health::Passing) => self.failed > 0,
            Some(Health::Failing) => self.passed > 0 || self.silent > 0,
            Some(Health::Silent) => self.passed > 0,
        }
    }

    /// How far the row of successes is, for a probe that has still to rise.
    pub(super) fn rising(&self) -> String {
        format!("passed {} of {}", self.passed, self.rise)
    }

    /// What follows from the rows.
    fn after(&self) -> Health {
        let up = if self.has_passed { self.passed >= self.rise } else { self.passed > 0 };
        let silent = self.silent >= self.fall;
        match self.says {
            Some(Health::Passing) if self.failed < self.fall => Health::Passing,
            Some(Health::Failing | Health::Silent) | None if up => Health::Passing,
            // So one sign proves that the host is there, and the absence of one proves nothing.
            _ if silent => Health::Silent,
            _ => Health::Failing,
        }
    }
}

#[cfg(test)]
mod tests;
