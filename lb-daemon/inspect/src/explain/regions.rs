//! What was made of each region, in order.

use lb_common::{
    abi::{
        connection::Placement,
        limits::MAX_REGIONS_PER_POOL,
        member::{Accepts, MemberWord},
        pool::Descriptor,
    },
    path::{Choice, Memory, Observe, Outcome, Position, RegionSkip, Tables, select::REMEMBERED},
};
use serde::Serialize;

use crate::names::Names;

/// A region of the pool's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Region {
    /// Its name.
    pub region: String,
    /// What was made of it.
    pub outcome: RegionOutcome,
}

/// What was made of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionOutcome {
    /// It has the packet.
    Chosen,
    /// It has the packet though it is full, as every region is.
    OverCapacity,
    /// It has the packet though it is full: the flow table has no room.
    Held,
    /// Its limit is reached.
    Full,
    /// Its scaler is 0.
    Drained,
    /// It has no capacity, because nobody there is healthy.
    Closed,
    /// Nobody who was asked there may have the packet.
    NobodyUsable,
    /// It was not asked.
    NotAsked,
}

impl RegionOutcome {
    /// Words for it that follow the region's name.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Chosen => "has it",
            Self::OverCapacity => "is full and takes it over capacity",
            Self::Held => "is full but keeps it, because the flow table has no room",
            Self::Full => "is full",
            Self::Drained => "is drained",
            Self::Closed => "has no healthy backend",
            Self::NobodyUsable => "has no backend that can take it",
            Self::NotAsked => "was not asked",
        }
    }
}

/// Every region of the order.
pub(super) fn assess<T: Tables>(
    tables: &T,
    names: &Names,
    descriptor: &Descriptor,
    recorder: &Recorder,
    choice: Option<&Choice>,
) -> Vec<Region> {
    let taken_by = choice.and_then(|choice| position(tables, descriptor, choice));
    let count = descriptor.group_count.min(MAX_REGIONS_PER_POOL as u32);
    let region = |position| Region {
        region: name(tables, names, descriptor, position),
        outcome: outcome(tables, descriptor, recorder, position, taken_by),
    };
    (0..count).map(region).collect()
}

fn outcome<T: Tables>(
    tables: &T,
    descriptor: &Descriptor,
    recorder: &Recorder,
    position: u32,
    taken_by: Option<u32>,
) -> RegionOutcome {
    if taken_by == Some(position) {
        return match () {
            () if recorder.has(position, RegionSkip::Held) => RegionOutcome::Held,
            () if recorder.has(position, RegionSkip::OverCapacity) => RegionOutcome::OverCapacity,
            () => RegionOutcome::Chosen,
        };
    }
    if recorder.has(position, RegionSkip::Full) || recorder.has(position, RegionSkip::Held) {
        RegionOutcome::Full
    } else if recorder.has(position, RegionSkip::Closed) {
        let healthy = members(tables, descriptor, position)
            .any(|index| tables.member(index).is_some_and(|m| m.accepts() == Accepts::All));
        if healthy { RegionOutcome::Drained } else { RegionOutcome::Closed }
    } else if recorder.looked.iter().any(|it| it.outcome == Some(Outcome::Awaited)) {
        // The packet is dropped, and nobody else was asked.
        RegionOutcome::NotAsked
    } else if recorder.looked.iter().any(|looked| looked.place.region == position) {
        RegionOutcome::NobodyUsable
    } else {
        RegionOutcome::NotAsked
    }
}

/// Where in the order a choice is; `None`: its backend is in no group of the order.
pub(super) fn position<T: Tables>(
    tables: &T,
    descriptor: &Descriptor,
    choice: &Choice,
) -> Option<u32> {
    if choice.region != REMEMBERED {
        return Some(choice.region);
    }
    let is_it = |index| {
        tables.member(index).is_some_and(|member| member.backend() == choice.member.backend())
    };
    let count = descriptor.group_count.min(MAX_REGIONS_PER_POOL as u32);
    (0..count).find(|position| members(tables, descriptor, *position).any(is_it))
}

/// Indices of the member words of a region.
fn members<T: Tables>(
    tables: &T,
    descriptor: &Descriptor,
    position: u32,
) -> impl Iterator<Item = u32> {
    let index = descriptor.groups.get(position as usize).copied();
    let head = index.and_then(|index| tables.group(index)).map(|group| group.head);
    head.into_iter().flat_map(|head| (head.members..).take(head.member_count as usize))
}

/// The name of a region of the order.
pub(super) fn name<T: Tables>(
    tables: &T,
    names: &Names,
    descriptor: &Descriptor,
    position: u32,
) -> String {
    let index = descriptor.groups.get(position as usize).copied();
    let group = index.and_then(|index| tables.group(index));
    group.map_or_else(|| "?".into(), |group| names.region(group.region))
}

/// One entry that the decision looked at, or would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VisitedEntry {
    pub(super) place: Position,
    pub(super) member: MemberWord,
    /// `None`: it was not asked, another had the packet before.
    pub(super) outcome: Option<Outcome>,
}

/// All that was told.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Entries in the order in which they were asked.
    pub(super) looked: Vec<VisitedEntry>,
    /// Regions that were left, or kept against the rule, each reason once.
    pub(super) left: Vec<(u32, RegionSkip)>,
    /// What the packet went by, if nothing was chosen anew.
    pub(super) remembered: Option<Memory>,
}

impl Observe for Recorder {
    fn entry(&mut self, place: Position, _: u16, member: MemberWord, outcome: Outcome) {
        self.looked.push(VisitedEntry { place, member, outcome: Some(outcome) });
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
