//! How much is measured.

use crate::question::{CaseName, Unit};

/// How much, and of which cases.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    /// Fewer and shorter rounds.
    pub(crate) quick: bool,
    /// Before all ordinary processes.
    pub(crate) realtime: bool,
    /// Only cases whose names contain one of these; none: all.
    pub(crate) only: Vec<String>,
}

impl Effort {
    /// Rounds of a case, of which the median counts.
    pub(crate) const fn rounds(&self, unit: Unit) -> usize {
        match (self.quick, unit) {
            (true, _) => 5,
            (false, Unit::Nanoseconds) => 15,
            (false, Unit::Mpps) => 7,
        }
    }

    /// Packets of a round.
    pub(crate) const fn packets(&self, unit: Unit) -> u32 {
        match (self.quick, unit) {
            (true, Unit::Nanoseconds) => 200_000,
            (true, Unit::Mpps) => 500_000,
            (false, Unit::Nanoseconds) => 2_000_000,
            (false, Unit::Mpps) => 5_000_000,
        }
    }

    /// Whether a case is measured.
    pub(crate) fn includes(&self, name: &CaseName) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.case.contains(word))
    }
}
