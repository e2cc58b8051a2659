//! Choose: from a flow's hash to a member. The first entry of the slot's list in the first region
//! is the fast path; everything else is [`Search`], out of line.

use super::{parse::Kind, tables::Tables};
use crate::{
    abi::{
        descriptor::Descriptor,
        group::GroupHead,
        limits::{MAX_REGIONS_PER_POOL, STANDBYS_PER_GROUP},
        member::{FULL_RAMP, MemberState, MemberWord},
        next_hop::NextHopWord,
        slot::RANKS_PER_SLOT,
        table_ref::TableRef,
        verdict::Verdict,
    },
    flow_hash::FlowHash,
};

/// Slots whose lists are asked beyond the first.
pub const FURTHER_SLOTS: u32 = 4;

/// A member that has the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its word, as it was read once.
    pub member: MemberWord,
    /// Its next hop, resolved.
    pub next_hop: NextHopWord,
}

/// Where in the order an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position of the group in the pool's order of regions.
    pub region: u32,
    /// Slot of its table, or `None` for a standby.
    pub slot: Option<u32>,
    /// Place in the slot's list, 0 for the owner; for a standby its number.
    pub entry: u32,
}

/// What was made of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has the packet.
    Chosen,
    /// Its state forbids it.
    State,
    /// It is new and this slot is not its own yet.
    Ramp,
    /// Its next hop is not resolved.
    NextHop,
}

/// Told of every entry that is looked at. In a packet program it is empty and compiles to nothing.
pub trait Observe {
    /// An entry was looked at.
    fn entry(&mut self, place: Place, rank: u16, member: MemberWord, outcome: Outcome);
}

/// Nobody watches.
pub struct Unobserved;

impl Observe for Unobserved {
    #[inline(always)]
    fn entry(&mut self, _: Place, _: u16, _: MemberWord, _: Outcome) {}
}

/// Why nobody has been found yet.
const NOBODY: u32 = 0;
const NOBODY_RESOLVED: u32 = 1;

/// Whether a member may have a packet, its next hop aside.
#[inline(always)]
fn judge(member: MemberWord, kind: Kind, slot: u32) -> Outcome {
    match (member.state(), kind) {
        (MemberState::Up, Kind::NewConnection | Kind::Datagram) => {
            let ramp = member.ramp();
            if ramp == FULL_RAMP || FlowHash::ramp_threshold(slot, member.backend()) < ramp {
                Outcome::Chosen
            } else {
                Outcome::Ramp
            }
        }
        (MemberState::Up | MemberState::Unfit, Kind::OpenConnection) => Outcome::Chosen,
        _ => Outcome::State,
    }
}

/// The member of rank `rank`, if it may have the packet.
///
/// # Errors
/// `NOBODY` or `NOBODY_RESOLVED`.
#[inline(always)]
fn consider<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    head: &GroupHead,
    (rank, slot): (u16, u32),
    place: Place,
    kind: Kind,
    observer: &mut O,
) -> Result<Choice, u32> {
    if u32::from(rank) >= head.member_count {
        return Err(NOBODY);
    }
    let Some(member) = tables.member(head.members.wrapping_add(u32::from(rank))) else {
        return Err(NOBODY);
    };
    let outcome = judge(member, kind, slot);
    if outcome != Outcome::Chosen {
        observer.entry(place, rank, member, outcome);
        return Err(NOBODY);
    }
    let next_hop = tables.next_hop(u32::from(member.next_hop())).unwrap_or(NextHopWord::UNRESOLVED);
    if !next_hop.is_resolved() {
        observer.entry(place, rank, member, Outcome::NextHop);
        return Err(NOBODY_RESOLVED);
    }
    observer.entry(place, rank, member, Outcome::Chosen);
    Ok(Choice { member, next_hop })
}

/// The member that has a flow's packet.
///
/// # Errors
/// [`Verdict::NoBackend`], [`Verdict::NextHopUnresolved`], or [`Verdict::Inconsistent`] where the home
/// group has no table.
#[inline(always)]
pub fn choose<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    (index, descriptor): (u32, &Descriptor),
    hash: FlowHash,
    kind: Kind,
    observer: &mut O,
) -> Result<Choice, Verdict> {
    if descriptor.group_count == 0 {
        return Err(Verdict::NoBackend);
    }
    let home = &descriptor.home;
    let slot = hash.slot(home.slots);
    let rank = tables.owner(home, slot).ok_or(Verdict::Inconsistent)?;
    let place = Place { region: 0, slot: Some(slot), entry: 0 };
    let owner = consider(tables, home, (rank, slot), place, kind, &mut Unobserved);
    if let Ok(choice) = owner {
        observer.entry(place, rank, choice.member, Outcome::Chosen);
        return Ok(choice);
    }
    let mut search = Search { hash, descriptor: index, kind, failure: NOBODY, choice: None };
    tables.search(&mut search, observer);
    search.choice.ok_or(match search.failure {
        NOBODY_RESOLVED => Verdict::NextHopUnresolved,
        _ => Verdict::NoBackend,
    })
}

/// The slow search: region by region the slot's list, the lists of further slots, a standby.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    hash: FlowHash,
    descriptor: u32,
    kind: Kind,
    failure: u32,
    choice: Option<Choice>,
}

impl Search {
    /// Entries of the lists of a region; one standby comes after them.
    const LISTED: u32 = (1 + FURTHER_SLOTS) * RANKS_PER_SLOT as u32;
    /// Steps kept for a region: a power of two, whose shift the verifier can follow.
    const PER_REGION: u32 = (Self::LISTED + 1).next_power_of_two();
    /// Steps of a whole search.
    pub const STEPS: u32 = Self::PER_REGION * MAX_REGIONS_PER_POOL as u32;

    /// Looks at the entry of one step; true where the search is over.
    ///
    /// A step knows nothing of the one before, so that the verifier has one state to walk, not one
    /// for every way to reach it.
    #[inline(always)]
    pub fn step<T: Tables + ?Sized, O: Observe>(
        &mut self,
        step: u32,
        tables: &T,
        observer: &mut O,
    ) -> bool {
        let (region, step) = (step / Self::PER_REGION, step % Self::PER_REGION);
        let Some(descriptor) = tables.descriptor(self.descriptor) else { return true };
        if region >= descriptor.group_count {
            return true;
        }
        // A mask, not a bounds check: the verifier keeps track of it on this very register.
        let index = descriptor.groups[region as usize % MAX_REGIONS_PER_POOL];
        let Some(group) = tables.group(index) else { return false };
        let Some((rank, place, slot)) = self.entry(tables, (region, index), &group.head, step)
        else {
            return false;
        };
        match consider(tables, &group.head, (rank, slot), place, self.kind, observer) {
            Ok(choice) => {
                self.choice = Some(choice);
                true
            }
            Err(failure) => {
                self.failure |= failure;
                false
            }
        }
    }

    /// The entry of a step within a region, and the slot whose ramp it is under.
    #[inline(always)]
    fn entry<T: Tables + ?Sized>(
        &self,
        tables: &T,
        (region, index): (u32, u32),
        head: &GroupHead,
        step: u32,
    ) -> Option<(u16, Place, u32)> {
        if step > Self::LISTED {
            return None;
        }
        let (attempt, entry) = (step / RANKS_PER_SLOT as u32, step % RANKS_PER_SLOT as u32);
        if step == Self::LISTED {
            let entry = self.hash.standby();
            let index = index.wrapping_mul(STANDBYS_PER_GROUP).wrapping_add(entry);
            let rank = tables.standby(index)?.rank()?;
            return Some((rank, Place { region, slot: None, entry }, self.hash.slot(head.slots)));
        }
        let hash = if attempt == 0 { self.hash } else { self.hash.again(attempt) };
        let slot = hash.slot(head.slots);
        let word = tables.slot(TableRef(head.table), slot)?;
        Some((word.rank(entry), Place { region, slot: Some(slot), entry }, slot))
    }
}
