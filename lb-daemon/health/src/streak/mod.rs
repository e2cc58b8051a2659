//! Rise and fall: consecutive results decide a probe's health.
//!
//! A restart of the daemon continues a streak ([`Streak::restored`]). One that passed before the restart is undecided until
//! its next result, as the state of its targets is the one in the maps; a single success decides it then, and after
//! failures it needs `rise`.

use serde::{Deserialize, Serialize};

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

/// What a restart of the daemon must not forget of a streak. Fits eight bytes ([`Self::pack`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreakCounts {
    /// `None` before it was decided for the first time.
    health: Option<Health>,
    has_passed: bool,
    passed: u16,
    failed: u16,
    silent: u16,
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

    /// Of a check that passed before a restart, without a failure since.
    pub(super) fn passed_before(rise: u32, fall: u32) -> Self {
        Self { has_passed: true, ..Self::new(rise, fall) }
    }

    /// Continues where an earlier daemon stopped. Whatever the counts are, none of them decides before the next result.
    pub(super) fn restored(rise: u32, fall: u32, counts: StreakCounts) -> Self {
        let StreakCounts { health, has_passed, passed, failed, silent } =
            counts.bounded(rise, fall);
        let (passed, failed, silent) = (passed.into(), failed.into(), silent.into());
        // It is decided by its next result: until then the state of its targets is the one in the maps.
        let health = health.filter(|health| *health != Health::Passing);
        Self { rise, fall, health, has_passed, passed, failed, silent }
    }

    /// What a restart must not forget; `None`: nothing, because it passes, or had no result yet.
    pub(super) fn counts(&self) -> Option<StreakCounts> {
        let count = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        let Self { rise, fall, health, has_passed, .. } = *self;
        let health = health.or(has_passed.then_some(Health::Passing));
        let [passed, failed, silent] = [self.passed, self.failed, self.silent].map(count);
        let counts =
            StreakCounts { health, has_passed, passed, failed, silent }.bounded(rise, fall);
        (counts.fails() || counts.failed > 0).then_some(counts)
    }

    /// The health, if it is decided.
    pub(super) fn health(&self) -> Option<Health> {
        self.health
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
        let needs_rise = self.has_passed && self.health.is_some();
        let up = if needs_rise { self.passed >= self.rise } else { self.passed > 0 };
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

impl StreakCounts {
    /// Without the counts that do not matter in its state, so that a probe that always fails stays the same, and none of
    /// the others so large that it would have decided.
    fn bounded(self, rise: u32, fall: u32) -> Self {
        let most = |bound: u32| u16::try_from(bound).unwrap_or(u16::MAX);
        let below = |count: u16, bound: u32| count.min(most(bound.saturating_sub(1)));
        let Self { health, has_passed, passed, failed, silent } = self;
        match health {
            None | Some(Health::Passing) => {
                let has_passed = has_passed || health.is_some();
                let failed = below(failed, fall);
                Self { health, has_passed, passed: 0, failed, silent: silent.min(failed) }
            }
            Some(Health::Failing) => {
                let (passed, silent) = (below(passed, rise), below(silent, fall));
                Self { health, has_passed, passed, failed: 0, silent }
            }
            Some(Health::Silent) => {
                let silent = silent.min(most(fall));
                Self { health, has_passed, passed: 0, failed: 0, silent }
            }
        }
    }

    /// Whether it takes its targets out.
    pub(super) fn fails(&self) -> bool {
        matches!(self.health, Some(Health::Failing | Health::Silent))
    }

    /// As one word, so that it can be read while the probe goes on. Zero: nothing to remember.
    pub(super) fn pack(counts: Option<Self>) -> u64 {
        let Some(Self { health, has_passed, passed, failed, silent }) = counts else { return 0 };
        let health: u64 = match health {
            None => 1,
            Some(Health::Passing) => 2,
            Some(Health::Failing) => 3,
            Some(Health::Silent) => 4,
        };
        let counts = u64::from(passed) | u64::from(failed) << 16 | u64::from(silent) << 32;
        counts | health << 48 | u64::from(has_passed) << 56
    }

    pub(super) fn unpack(word: u64) -> Option<Self> {
        let health = match word >> 48 & 0xff {
            0 => return None,
            1 => None,
            2 => Some(Health::Passing),
            3 => Some(Health::Failing),
            _ => Some(Health::Silent),
        };
        let (passed, failed, silent) = (word as u16, (word >> 16) as u16, (word >> 32) as u16);
        Some(Self { health, has_passed: word >> 56 != 0, passed, failed, silent })
    }
}

#[cfg(test)]
mod tests;
