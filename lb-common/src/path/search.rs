//! The slow search: region by region the slot's list, the lists of further slots, a standby.
//!
//! Region and member are one loop. A group whose limit is reached is passed over before anybody is
//! looked for in it, and debited last, when somebody was found who may have the connection: so no
//! token is spent on a group that has nobody.

use super::{
    choose::{Choice, Left, Observe, Outcome, Place, judge, member, next_hop},
    parse::Kind,
    tables::Tables,
};
use crate::{
    abi::{
        clock::Nanoseconds,
        event::Event,
        group::{Group, GroupHead},
        limits::{MAX_REGIONS_PER_POOL, STANDBYS_PER_GROUP},
        member::MemberWord,
        slot::RANKS_PER_SLOT,
        table_ref::TableRef,
        verdict::Verdict,
    },
    admission::{self, Debit},
    flow_hash::FlowHash,
};

/// Slots whose lists are asked beyond the first.
pub const FURTHER_SLOTS: u32 = 4;

/// Why nobody has been found yet.
const NOBODY: u32 = 0;
const NOBODY_RESOLVED: u32 = 1;

/// Limits are kept to.
pub(super) const LIMITS: u32 = 1;
/// Regions without capacity are passed over, whatever else is kept to.
pub(super) const CLOSED: u32 = 2;
/// A region that is full is not left.
pub(super) const STAY: u32 = 4;
/// Those that are a last resort, and nobody else.
pub(super) const LAST_RESORT: u32 = 8;

/// A search under way.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    pub(super) hash: FlowHash,
    descriptor: u32,
    kind: Kind,
    /// What it keeps to.
    pub(super) rules: u32,
    /// The next entry to look at, counted through all regions.
    pub(super) at: u32,
    /// Whether somebody was passed over only because a limit is reached.
    pub(super) met_full: bool,
    failure: u32,
    pub(super) now: Nanoseconds,
    pub(super) choice: Option<Choice>,
}

impl Search {
    /// Entries of the lists of a region; one standby comes after them.
    const LISTED: u32 = (1 + FURTHER_SLOTS) * RANKS_PER_SLOT as u32;
    /// Steps kept for a region: a power of two, whose shift the verifier can follow.
    pub(super) const PER_REGION: u32 = (Self::LISTED + 1).next_power_of_two();
    /// Steps of a whole search.
    pub const STEPS: u32 = Self::PER_REGION * MAX_REGIONS_PER_POOL as u32;

    /// A search from the beginning, which keeps to no limits.
    #[inline(always)]
    pub(super) const fn new(hash: FlowHash, descriptor: u32, kind: Kind) -> Self {
        Self {
            hash,
            descriptor,
            kind,
            rules: 0,
            at: 0,
            met_full: false,
            failure: NOBODY,
            now: 0,
            choice: None,
        }
    }

    /// Why nobody was found.
    #[inline(always)]
    pub(super) const fn verdict(&self) -> Verdict {
        match self.failure {
            NOBODY_RESOLVED => Verdict::NextHopUnresolved,
            _ => Verdict::NoBackend,
        }
    }

    /// Looks at the next entry; true where the search is over.
    #[inline(always)]
    pub fn step<T: Tables + ?Sized, O: Observe>(&mut self, tables: &T, observer: &mut O) -> bool {
        let at = self.at;
        self.at = at.wrapping_add(1);
        let (region, step) = (at / Self::PER_REGION, at % Self::PER_REGION);
        let Some(descriptor) = tables.descriptor(self.descriptor) else { return true };
        if region >= descriptor.group_count || region >= MAX_REGIONS_PER_POOL as u32 {
            return true;
        }
        // A mask, not a bounds check: the verifier keeps track of it on this very register.
        let index = descriptor.groups[region as usize % MAX_REGIONS_PER_POOL];
        let Some(group) = tables.group(index) else { return false };
        if step == 0 && self.rules & (LIMITS | CLOSED) != 0 {
            if self.met_full && self.rules & STAY != 0 {
                return true;
            }
            if self.passes_over(tables, group, region, observer) {
                return false;
            }
        }
        let Some((rank, place, slot)) = self.entry(tables, (region, index), &group.head, step)
        else {
            return false;
        };
        self.consider(tables, group, (rank, slot), place, observer)
    }

    /// Goes on to the next region where this one has no room.
    #[inline(always)]
    fn passes_over<T: Tables + ?Sized, O: Observe>(
        &mut self,
        tables: &T,
        group: &Group,
        region: u32,
        observer: &mut O,
    ) -> bool {
        let Some((limit, arrival)) = tables.meter(group.meter) else { return false };
        if limit.is_closed() {
            observer.region(region, Left::Closed);
        } else if self.rules & LIMITS != 0 && admission::is_full(limit, arrival, self.now) {
            self.met_full = true;
            observer.region(region, Left::Full);
        } else {
            return false;
        }
        self.leave(region);
        true
    }

    #[inline(always)]
    fn leave(&mut self, region: u32) {
        self.at = region.wrapping_add(1).wrapping_mul(Self::PER_REGION);
    }

    /// Takes an entry if it may have the packet; true where the search is over.
    #[inline(always)]
    fn consider<T: Tables + ?Sized, O: Observe>(
        &mut self,
        tables: &T,
        group: &Group,
        (rank, slot): (u16, u32),
        place: Place,
        observer: &mut O,
    ) -> bool {
        let Some(member) = member(tables, &group.head, rank) else { return false };
        let outcome = if self.rules & LAST_RESORT == 0 {
            judge(member, self.kind, slot)
        } else if member.is_last_resort() {
            Outcome::Chosen
        } else {
            Outcome::State
        };
        if outcome != Outcome::Chosen {
            observer.entry(place, rank, member, outcome);
            return false;
        }
        let Some(next_hop) = next_hop(tables, member) else {
            self.failure |= NOBODY_RESOLVED;
            observer.entry(place, rank, member, Outcome::NextHop);
            return false;
        };
        if self.rules & LIMITS != 0 {
            if !debit_member(tables, &group.head, (rank, member), self.now) {
                self.met_full = true;
                observer.entry(place, rank, member, Outcome::Full);
                return false;
            }
            if !debit_meter(tables, group.meter, self.now) {
                self.met_full = true;
                observer.region(place.region, Left::Full);
                self.leave(place.region);
                return false;
            }
        }
        observer.entry(place, rank, member, Outcome::Chosen);
        self.choice = Some(Choice { member, next_hop, region: place.region });
        true
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

/// Counts a connection against a member's own limit, if it has one.
#[inline(always)]
pub(super) fn debit_member<T: Tables + ?Sized>(
    tables: &T,
    head: &GroupHead,
    (rank, member): (u16, MemberWord),
    now: Nanoseconds,
) -> bool {
    if !member.is_limited() {
        return true;
    }
    let meter = tables.member_meter(head.members.wrapping_add(u32::from(rank)));
    meter.is_none_or(|meter| debit_meter(tables, meter, now))
}

/// Counts a connection against a meter's limit; a meter that is not there has none.
#[inline(always)]
pub(super) fn debit_meter<T: Tables + ?Sized>(tables: &T, meter: u32, now: Nanoseconds) -> bool {
    let Some((limit, _)) = tables.meter(meter) else { return true };
    let Some(arrival) = tables.arrival(meter) else { return true };
    match admission::debit(limit, arrival, now) {
        Debit::Admitted => true,
        Debit::Full => false,
        Debit::Contended => {
            tables.count(Event::LimitContended);
            false
        }
    }
}
