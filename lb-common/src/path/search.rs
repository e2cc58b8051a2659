//! The slow search: region by region the slot's list, the lists of further slots, a standby.
//!
//! Region and member are one loop. A group whose limit is reached is skipped before its members are looked at. It
//! is debited last, once a member was found: so a group without a fit member spends nothing of its limit.

use super::{
    parse::Kind,
    select::{Choice, Observe, Outcome, Position, RegionSkip, judge, member, next_hop},
    tables::Tables,
};
use crate::{
    abi::{
        clock::Nanoseconds,
        counter::Event,
        limiter::LimitWord,
        limits::{MAX_REGIONS_PER_POOL, STANDBYS_PER_GROUP},
        member::MemberWord,
        pool::{Group, GroupHead},
        slot::{RANKS_PER_SLOT, TableRef},
        verdict::Verdict,
    },
    admission::{self, Debit},
    flow_hash::FlowHash,
};

/// Slots whose lists are searched beyond the first.
pub const FURTHER_SLOTS: u32 = 4;

/// Limits apply.
pub(super) const LIMITS: u32 = 1;
/// Regions without capacity are skipped, whatever other rules apply.
pub(super) const CLOSED: u32 = 2;
/// A region that is full is not left.
pub(super) const STAY: u32 = 4;
/// Only members that are a last resort.
pub(super) const LAST_RESORT: u32 = 8;

/// What is searched for, in words, because in a packet program a search is a global function.
#[derive(Clone, Copy, Debug)]
pub struct SearchRequest {
    /// The flow's hash.
    pub hash: FlowHash,
    /// `{descriptor 32, rules 8, kind 8, first entry 16}` from the low end.
    pub how: u64,
    /// The current time; 0 if limits do not apply.
    pub now: Nanoseconds,
}

impl SearchRequest {
    /// A member by a version of its pool, for a kind of packet, without limits, from the beginning.
    #[inline(always)]
    pub(super) const fn new(hash: FlowHash, descriptor: u32, kind: Kind) -> Self {
        let kind = match kind {
            Kind::NewConnection => 0,
            Kind::OpenConnection => 1,
            Kind::Datagram => 2,
        };
        Self { hash, how: descriptor as u64 | kind << 40, now: 0 }
    }

    /// The same by other rules, from entry `first` on.
    #[inline(always)]
    #[must_use]
    pub(super) const fn by(self, rules: u32, first: u32, now: Nanoseconds) -> Self {
        let how = self.how & 0xff00_ffff_ffff | (rules as u64) << 32 | (first as u64) << 48;
        Self { how, now, ..self }
    }

    #[inline(always)]
    const fn descriptor(self) -> u32 {
        self.how as u32
    }

    #[inline(always)]
    const fn rules(self) -> u32 {
        (self.how >> 32) as u32 & 0xff
    }

    #[inline(always)]
    const fn kind(self) -> Kind {
        match self.how >> 40 & 0xff {
            0 => Kind::NewConnection,
            1 => Kind::OpenConnection,
            _ => Kind::Datagram,
        }
    }
}

/// Result of a search: bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchEnd(pub u64);

const FOUND: u64 = 1;
const MET_FULL: u64 = 2;
const MET_UNRESOLVED: u64 = 4;

impl SearchEnd {
    /// Whether a member was found.
    #[inline(always)]
    pub const fn is_found(self) -> bool {
        self.0 & FOUND != 0
    }

    /// Whether a member or group was skipped only because its limit is reached.
    #[inline(always)]
    pub const fn met_full(self) -> bool {
        self.0 & MET_FULL != 0
    }

    /// Why no member was found, limits ignored.
    #[inline(always)]
    pub const fn verdict(self) -> Verdict {
        if self.0 & MET_UNRESOLVED != 0 { Verdict::NextHopUnresolved } else { Verdict::NoBackend }
    }
}

/// State of a search.
///
/// In this order two halves of a word that the compiler stores together are aligned, as the verifier requires.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Search {
    request: SearchRequest,
    ended: SearchEnd,
    choice: Choice,
    /// The entry that the first step looks at, counted through all regions; moved on where a region
    /// is left early.
    first: u64,
}

impl Search {
    /// Entries of the lists of a region; one standby comes after them.
    const LISTED: u32 = (1 + FURTHER_SLOTS) * RANKS_PER_SLOT as u32;
    /// Numbers kept for the entries of a region: a power of two, whose shift the verifier can follow. No step is taken for
    /// those that no entry has.
    pub(super) const PER_REGION: u32 = (Self::LISTED + 1).next_power_of_two();
    /// Steps of a whole search.
    pub const STEPS: u32 = Self::PER_REGION * MAX_REGIONS_PER_POOL as u32;

    /// A new search.
    #[inline(always)]
    pub const fn new(request: SearchRequest) -> Self {
        Self { request, ended: SearchEnd(0), choice: Choice::NONE, first: request.how >> 48 }
    }

    /// Its result, and the member that was found.
    #[inline(always)]
    pub const fn end(&self) -> (SearchEnd, Choice) {
        (self.ended, self.choice)
    }

    /// Looks at the entry of one step; true where the search is over.
    ///
    /// A step takes from those before only what they changed, so that the verifier does not walk a state for each step.
    #[inline(always)]
    pub fn step<T: Tables + ?Sized, O: Observe>(
        &mut self,
        step: u32,
        tables: &T,
        observer: &mut O,
    ) -> bool {
        let at = (self.first as u32).wrapping_add(step);
        let (region, entry) = (at / Self::PER_REGION, at % Self::PER_REGION);
        let Some(descriptor) = tables.descriptor(self.request.descriptor()) else { return true };
        if region >= descriptor.group_count || region >= MAX_REGIONS_PER_POOL as u32 {
            return true;
        }
        // A mask, not a bounds check: the verifier keeps track of it on this very register.
        let index = descriptor.groups[region as usize % MAX_REGIONS_PER_POOL];
        let Some(group) = tables.group(index) else { return false };
        if entry == 0 && self.request.rules() & (LIMITS | CLOSED) != 0 {
            if self.ended.met_full() && self.request.rules() & STAY != 0 {
                return true;
            }
            if self.passes_over(tables, group, (region, step), observer) {
                return false;
            }
        }
        if entry == Self::LISTED {
            // Nothing follows it.
            self.leave(region, step);
        }
        let Some((rank, place, slot)) = self.entry(tables, (region, index), &group.head, entry)
        else {
            return false;
        };
        self.consider(tables, group, (rank, slot, step), place, observer)
    }

    /// Leaves a region that has no room; returns whether it did.
    #[inline(always)]
    fn passes_over<T: Tables + ?Sized, O: Observe>(
        &mut self,
        tables: &T,
        group: &Group,
        (region, step): (u32, u32),
        observer: &mut O,
    ) -> bool {
        let Some((limit, _)) = tables.limiter(group.limiter) else { return false };
        if limit.is_closed() {
            observer.region(region, RegionSkip::Closed);
        } else if self.request.rules() & LIMITS != 0
            && tables.is_full(group.limiter, self.request.now)
        {
            self.ended.0 |= MET_FULL;
            observer.region(region, RegionSkip::Full);
        } else {
            return false;
        }
        self.leave(region, step);
        true
    }

    #[inline(always)]
    fn leave(&mut self, region: u32, step: u32) {
        let next = region.wrapping_add(1).wrapping_mul(Self::PER_REGION);
        self.first = u64::from(next.wrapping_sub(step).wrapping_sub(1));
    }

    /// Takes an entry if it may have the packet; true where the search is over.
    #[inline(always)]
    fn consider<T: Tables + ?Sized, O: Observe>(
        &mut self,
        tables: &T,
        group: &Group,
        (rank, slot, step): (u16, u32, u32),
        place: Position,
        observer: &mut O,
    ) -> bool {
        let Some(member) = member(tables, &group.head, rank) else { return false };
        let outcome = if self.request.rules() & LAST_RESORT == 0 {
            judge(member, self.request.kind(), (slot, rank))
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
            self.ended.0 |= MET_UNRESOLVED;
            // Nobody else gets packets of the connections that it has.
            let is_awaited =
                self.request.kind() == Kind::OpenConnection && member.awaits_next_hop();
            let outcome = if is_awaited { Outcome::Awaited } else { Outcome::NextHop };
            observer.entry(place, rank, member, outcome);
            return is_awaited;
        };
        if self.request.rules() & LIMITS != 0 {
            if !debit_member(tables, &group.head, (rank, member), self.request.now) {
                self.ended.0 |= MET_FULL;
                observer.entry(place, rank, member, Outcome::Full);
                return false;
            }
            if !tables.debit(group.limiter, self.request.now) {
                self.ended.0 |= MET_FULL;
                observer.region(place.region, RegionSkip::Full);
                self.leave(place.region, step);
                return false;
            }
        }
        observer.entry(place, rank, member, Outcome::Chosen);
        self.choice = Choice { member, next_hop, region: place.region };
        self.ended.0 |= FOUND;
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
    ) -> Option<(u16, Position, u32)> {
        if step > Self::LISTED {
            return None;
        }
        let (attempt, entry) = (step / RANKS_PER_SLOT as u32, step % RANKS_PER_SLOT as u32);
        if step == Self::LISTED {
            let entry = self.request.hash.standby();
            let index = index.wrapping_mul(STANDBYS_PER_GROUP).wrapping_add(entry);
            let rank = tables.standby(index)?.rank()?;
            return Some((
                rank,
                Position { region, slot: None, entry },
                self.request.hash.slot(head.slots),
            ));
        }
        let hash = if attempt == 0 { self.request.hash } else { self.request.hash.again(attempt) };
        let slot = hash.slot(head.slots);
        let word = tables.slot(TableRef(head.table), slot)?;
        Some((word.rank(entry), Position { region, slot: Some(slot), entry }, slot))
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
    let limiter = tables.member_limiter(head.members.wrapping_add(u32::from(rank)));
    limiter.is_none_or(|limiter| tables.debit(limiter, now))
}

/// Counts a connection against a limiter's limit; a limiter that is not there has none.
#[inline(always)]
pub fn debit<T: Tables + ?Sized>(tables: &T, limiter: u32, now: Nanoseconds) -> bool {
    let Some(arrival) = tables.arrival(limiter) else { return true };
    let limit = || tables.limiter(limiter).map_or(LimitWord::UNLIMITED, |(limit, _)| limit);
    match admission::debit(limit, arrival, now) {
        Debit::Admitted => true,
        Debit::Full => false,
        Debit::Contended => {
            tables.count(Event::LimitContended);
            false
        }
    }
}

/// Whether a limiter's limit is reached.
#[inline(always)]
pub fn is_full<T: Tables + ?Sized>(tables: &T, limiter: u32, now: Nanoseconds) -> bool {
    let full = |(limit, arrival)| admission::is_full(limit, arrival, now);
    tables.limiter(limiter).is_some_and(full)
}
