//! Selection: from a flow's hash to a member. The first entry of the slot's list in the first region is home, which
//! is all that the fast path looks at; everything else is [`Search`](super::Search), out of line.

use super::{
    homes,
    parse::Kind,
    query::{Query, VersionedQuery},
    search::SearchRequest,
    tables::Tables,
};
use crate::{
    abi::{
        connection::Placement,
        member::{Accepts, FULL_RAMP, MemberWord},
        next_hop::NextHopWord,
        pool::{Descriptor, GroupHead},
        slot::{RANKS_PER_SLOT, TableRef},
        verdict::Verdict,
    },
    flow_hash::FlowHash,
};

/// The member that gets the packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its word.
    pub member: MemberWord,
    /// Its next hop, resolved.
    pub next_hop: NextHopWord,
    /// Position of its group in the pool's order of regions; [`REMEMBERED`] if a cell or a remap named it.
    pub region: u32,
}

/// The region of a choice that a cell or a remap led to, without a search.
pub const REMEMBERED: u32 = u32::MAX;

impl Choice {
    /// No member.
    pub const NONE: Self =
        Self { member: MemberWord(0), next_hop: NextHopWord::UNRESOLVED, region: REMEMBERED };

    /// Where the connection is then.
    #[inline(always)]
    pub const fn placement(&self) -> Placement {
        placement(self.member)
    }
}

/// Where a member's connections are.
#[inline(always)]
pub const fn placement(member: MemberWord) -> Placement {
    Placement { backend: member.backend(), incarnation: member.incarnation() }
}

/// Where in the order of a search an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Position of the group in the pool's order of regions.
    pub region: u32,
    /// Slot of its table, or `None` for a standby.
    pub slot: Option<u32>,
    /// Position in the slot's list, 0 for the owner; for a standby its number.
    pub entry: u32,
}

/// What the search made of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gets the packet.
    Chosen,
    /// Its state forbids it.
    State,
    /// Its ramp gives new connections of this slot away.
    Ramp,
    /// Its next hop is not resolved.
    NextHop,
    /// Its next hop was lost a moment ago, so packets of its open connections are dropped.
    Awaited,
    /// Its own limit is reached.
    Full,
}

/// Why a region does not get the packet, or gets it although it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionSkip {
    /// Its limit is reached.
    Full,
    /// It is drained, or has no capacity because no member there is healthy.
    Closed,
    /// It is full, but the flow table has no room for a connection elsewhere.
    Held,
    /// It is full, as all others are, and serves all the same.
    OverCapacity,
}

/// What named a packet's backend instead of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The cell of the connection's SYN.
    Handshake,
    /// The cell of an open connection.
    Displaced,
    /// The cell of a tracked flow of datagrams.
    Tracked,
    /// The home that a remap moves it from.
    PreviousHome,
}

/// Observes the search. In a packet program this is empty and compiles to nothing.
pub trait Observe {
    /// Whether it wants to see each entry that cannot have the packet, also where nobody can.
    const SEES_ALL: bool = true;
    /// An entry was looked at.
    fn entry(&mut self, place: Position, rank: u16, member: MemberWord, outcome: Outcome);
    /// A region was left, or kept although it is full.
    #[inline(always)]
    fn region(&mut self, _region: u32, _why: RegionSkip) {}
    /// What is remembered of its flow named the packet's backend.
    #[inline(always)]
    fn remembered(&mut self, _by: Memory, _placed: Placement) {}
}

/// Observes nothing.
pub struct Unobserved;

impl Observe for Unobserved {
    const SEES_ALL: bool = false;

    #[inline(always)]
    fn entry(&mut self, _: Position, _: u16, _: MemberWord, _: Outcome) {}
}

/// Home: the entry that the tables alone name, for a connection without a cell.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    /// Its slot.
    pub slot: u32,
    /// Its index in the slot's list.
    pub entry: u16,
    /// Its rank there.
    pub rank: u16,
    /// Its member; one that accepts nothing if the group has none of that rank.
    pub member: MemberWord,
}

/// The owner of a flow's slot in the first group, which nearly always is its home.
///
/// # Errors
/// As [`home`].
#[inline(always)]
pub(super) fn owner<T: Tables + ?Sized>(
    tables: &T,
    descriptor: &Descriptor,
    hash: FlowHash,
) -> Result<Home, Verdict> {
    if descriptor.home.slots == 0 {
        return Err(Verdict::NoBackend);
    }
    let head = &descriptor.home;
    let slot = hash.slot(head.slots);
    let rank = tables.owner(head, slot).ok_or(Verdict::Inconsistent)?;
    let member = member(tables, head, rank).unwrap_or(MemberWord(0));
    Ok(Home { slot, entry: 0, rank, member })
}

/// Home of a flow, health ignored: the first of its slot's list that is not marked out.
///
/// # Errors
/// [`Verdict::NoBackend`] where the pool has no members, [`Verdict::Inconsistent`] where the home
/// group has no table.
#[inline(always)]
pub fn home<T: Tables + ?Sized>(
    tables: &T,
    descriptor: &Descriptor,
    hash: FlowHash,
) -> Result<Home, Verdict> {
    let owner = owner(tables, descriptor, hash)?;
    if !owner.member.is_marked_out() {
        return Ok(owner);
    }
    let head = &descriptor.home;
    let entry = tables.stand_in(head, owner.slot);
    let word = tables.slot(TableRef(head.table), owner.slot).ok_or(Verdict::Inconsistent)?;
    let rank = word.rank(entry);
    let member = member(tables, head, rank).unwrap_or(MemberWord(0));
    Ok(Home { entry: entry as u16, rank, member, ..owner })
}

/// Position in a slot's list of the first that is not marked out; the owner's if there is none.
#[inline(always)]
pub fn stand_in<T: Tables + ?Sized>(tables: &T, head: &GroupHead, slot: u32) -> u32 {
    let Some(word) = tables.slot(TableRef(head.table), slot) else { return 0 };
    let is_in = |&entry: &u32| {
        member(tables, head, word.rank(entry)).is_some_and(|member| !member.is_marked_out())
    };
    (1..RANKS_PER_SLOT as u32).find(is_in).unwrap_or(0)
}

impl Home {
    /// Of a pool without members.
    pub(super) const NOBODY: Self = Self { slot: 0, entry: 0, rank: 0, member: MemberWord(0) };

    /// Its position in the order of a search.
    #[inline(always)]
    const fn place(&self) -> Position {
        Position { region: 0, slot: Some(self.slot), entry: self.entry as u32 }
    }

    /// The choice of home if its state allows the packet; limits are not checked.
    #[inline(always)]
    pub fn choice<T: Tables + ?Sized>(&self, tables: &T, kind: Kind) -> Option<Choice> {
        if judge(self.member, kind, (self.slot, self.rank)) != Outcome::Chosen {
            return None;
        }
        let next_hop = next_hop(tables, self.member)?;
        Some(Choice { member: self.member, next_hop, region: 0 })
    }

    /// Whether home keeps the packet's connection, although it lost its next hop a moment ago.
    #[inline(always)]
    fn is_awaited<O: Observe>(&self, kind: Kind, observer: &mut O) -> bool {
        let is_awaited = kind == Kind::OpenConnection
            && self.member.awaits_next_hop()
            && judge(self.member, kind, (self.slot, self.rank)) == Outcome::Chosen;
        if is_awaited {
            observer.entry(self.place(), self.rank, self.member, Outcome::Awaited);
        }
        is_awaited
    }

    /// The choice of home for a new connection of a slot that it gives away for now.
    #[inline(always)]
    pub(super) fn choice_despite_ramp<T: Tables + ?Sized>(&self, tables: &T) -> Option<Choice> {
        // A ramp keeps open connections, but so does a member that accepts no new ones.
        let is_up = self.member.accepts() == Accepts::All;
        if is_up { self.choice(tables, Kind::OpenConnection) } else { None }
    }

    /// Reports that home gets the packet.
    #[inline(always)]
    pub fn report_chosen<O: Observe>(&self, observer: &mut O) {
        observer.entry(self.place(), self.rank, self.member, Outcome::Chosen);
    }

    /// Reports that home's own limit is reached.
    #[inline(always)]
    pub fn report_full<O: Observe>(&self, observer: &mut O) {
        observer.entry(self.place(), self.rank, self.member, Outcome::Full);
    }
}

/// Whether no member of the pool takes a packet, as the word of any of them says: then nobody has to be asked.
#[inline(always)]
pub(super) fn nobody_takes(member: MemberWord, kind: Kind) -> bool {
    let most = member.pool_accepts();
    most == Accepts::Nothing || most == Accepts::OpenOnly && kind != Kind::OpenConnection
}

/// A member of a group, by its rank.
#[inline(always)]
pub(super) fn member<T: Tables + ?Sized>(
    tables: &T,
    head: &GroupHead,
    rank: u16,
) -> Option<MemberWord> {
    if u32::from(rank) >= head.member_count {
        return None;
    }
    tables.member(head.members.wrapping_add(u32::from(rank)))
}

/// A member's next hop, if it is resolved.
#[inline(always)]
pub(super) fn next_hop<T: Tables + ?Sized>(tables: &T, member: MemberWord) -> Option<NextHopWord> {
    tables.next_hop(u32::from(member.next_hop())).filter(|hop| hop.is_resolved())
}

/// Whether a member may have a packet; its next hop and limits are not checked.
#[inline(always)]
pub(super) fn judge(member: MemberWord, kind: Kind, (slot, rank): (u32, u16)) -> Outcome {
    match (member.accepts(), kind) {
        (Accepts::All, Kind::NewConnection | Kind::Datagram) => {
            let ramp = member.ramp();
            if ramp == FULL_RAMP || FlowHash::ramp_threshold(slot, rank) < ramp {
                Outcome::Chosen
            } else {
                Outcome::Ramp
            }
        }
        (Accepts::All | Accepts::OpenOnly, Kind::OpenConnection) => Outcome::Chosen,
        _ => Outcome::State,
    }
}

/// The member that gets a flow's packet, by tables and states alone, without limits.
///
/// # Errors
/// [`Verdict::NoBackend`], [`Verdict::NextHopUnresolved`], or [`Verdict::Inconsistent`] where the home
/// group has no table.
#[inline(always)]
pub fn select_member<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    (index, descriptor): (u32, &Descriptor),
    hash: FlowHash,
    kind: Kind,
    observer: &mut O,
) -> Result<Choice, Verdict> {
    let home = home(tables, descriptor, hash)?;
    if let Some(choice) = home.choice(tables, kind) {
        home.report_chosen(observer);
        return Ok(choice);
    }
    if home.is_awaited(kind, observer) {
        return Err(Verdict::NextHopUnresolved);
    }
    let mut choice = Choice::NONE;
    let ended = tables.search(SearchRequest::new(hash, index, kind), &mut choice, observer);
    if ended.is_found() { Ok(choice) } else { Err(ended.verdict()) }
}

/// As [`select_member`], as a function of its own, by the version by which new flows are placed: those of datagrams that are
/// not tracked move at once.
///
/// # Errors
/// As [`select_member`].
#[inline(never)]
pub(super) fn select_out_of_line<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &Query,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let mut query = VersionedQuery::new(tables, query)?;
    let mut home = home(tables, query.descriptor, query.hash)?;
    homes::place_by_next(tables, &mut query, &mut home);
    select_from_home(tables, &query, &home, to, observer)
}

/// The same where home is known.
///
/// # Errors
/// As [`select_member`].
#[inline(never)]
pub(super) fn select_from_home<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    home: &Home,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if let Some(choice) = home.choice(tables, query.kind()) {
        home.report_chosen(observer);
        *to = choice;
        return Ok(());
    }
    if home.is_awaited(query.kind(), observer) {
        return Err(Verdict::NextHopUnresolved);
    }
    if !O::SEES_ALL && nobody_takes(home.member, query.kind()) {
        return Err(Verdict::NoBackend);
    }
    let request = SearchRequest::new(query.hash, query.version, query.kind());
    let ended = tables.search(request, to, observer);
    if ended.is_found() { Ok(()) } else { Err(ended.verdict()) }
}
