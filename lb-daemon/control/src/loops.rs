//! What is measured of the loops.

use lb_base::loops::LoopCounters;

/// What is measured of each loop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AllLoopCounters {
    pub member: LoopCounters,
    pub state: LoopCounters,
    pub publisher: LoopCounters,
    pub overrides: LoopCounters,
    pub status: LoopCounters,
}

impl AllLoopCounters {
    /// Each loop by the name that metrics give it.
    pub fn named(&self) -> [(&'static str, &LoopCounters); 5] {
        [
            ("member", &self.member),
            ("state", &self.state),
            ("publisher", &self.publisher),
            ("overrides", &self.overrides),
            ("status", &self.status),
        ]
    }
}
