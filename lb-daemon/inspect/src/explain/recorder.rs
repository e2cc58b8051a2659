//! What the decision tells while it is watched.

use lb_common::{
    abi::{connection::Placement, member::MemberWord},
    path::{Memory, Observe, Outcome, Position, RegionSkip},
};

/// One entry that the decision looked at, or would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub(super) place: Position,
    pub(super) member: MemberWord,
    /// `None`: it was not asked, another had the packet before.
    pub(super) outcome: Option<Outcome>,
}

/// All that was told.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Entries in the order in which they were asked.
    pub(super) looked: Vec<Looked>,
    /// Regions that were left, or kept against the rule, each reason once.
    pub(super) left: Vec<(u32, RegionSkip)>,
    /// What the packet went by, if nothing was chosen anew.
    pub(super) remembered: Option<Memory>,
}

impl Observe for Recorder {
    fn entry(&mut self, place: Position, _: u16, member: MemberWord, outcome: Outcome) {
        self.looked.push(Looked { place, member, outcome: Some(outcome) });
    }

    fn region(&mut self, region: u32, why: RegionSkip) {
        if !self.left.contains(&(region, why)) {
            self.left.push((region, why));
        }
    }

    fn remembered(&mut self, by: Memory, _: Placement) {
        self.remembered = Some(by);
    }
}

impl Recorder {
    /// Whether a region was left, or kept, for a reason.
    pub(super) fn has(&self, region: u32, why: RegionSkip) -> bool {
        self.left.contains(&(region, why))
    }
}
