//! What the flow table knows of a packet's flow.

use super::{
    backend_state,
    homes::Homes,
    query::{Query, VersionedQuery},
    select::{Choice, Memory, Observe},
    tables::Tables,
};
use crate::{
    abi::{
        clock::{Coarse, Nanoseconds},
        connection::Placement,
        counter::Event,
        member::Accepts,
        pool::LIMITED,
        verdict::Verdict,
    },
    flow_hash::FlowHash,
    flow_table::{self, CELLS, Cell, FlowKey, HALF_OPEN, Owner, Packets, Place, State, Survey},
    word::Word,
};

/// Index of the count of all pools' cells that are not half-open. No pool has it.
pub(super) const ALL_POOLS: u32 = 0;

/// For how long after its SYN a connection's backend may be what a RST answers, in coarse units, the first of them begun:
/// longer than a round trip.
const ANSWERED: u64 = 2;

/// A packet's flow, as the table is asked for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// What it is identified by.
    pub(super) key: FlowKey,
    /// When the packet came.
    pub(super) time: Nanoseconds,
    /// Whether it may take a half-open cell; false until [`Self::look`].
    pub(super) has_room: bool,
    /// What the table says of it before it takes a cell.
    survey: Survey,
}

impl Flow {
    /// Of a query; the table is not looked at.
    #[inline(always)]
    pub(super) fn new<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> Self {
        #[inline(never)]
        fn out_of_line<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> FlowKey {
            key(tables, query)
        }
        let key = out_of_line(tables, query);
        tables.fetch(key);
        Self { key, time: tables.now(), has_room: false, survey: Survey::NONE }
    }

    /// Looks at the table, for a cell of the same SYN or of the flow of datagrams, and for room; returns whether there is
    /// that cell.
    #[inline(always)]
    pub(super) fn look<T: Tables + ?Sized>(
        &mut self,
        tables: &T,
        query: &VersionedQuery<'_>,
        cell: &mut Cell,
    ) -> bool {
        let of = if query.is_tcp() { Packets::Tcp(query.sequence()) } else { Packets::Datagrams };
        self.survey = tables.survey(self.key, of, self.now(), cell);
        self.has_room = self.survey.has_room() && is_within_share(tables, query);
        self.survey.is_found()
    }

    /// When the packet came.
    #[inline(always)]
    pub(super) const fn now(&self) -> Coarse {
        Coarse::from_nanoseconds(self.time)
    }
}

/// The flow's key in the table.
#[inline(always)]
pub fn key<T: Tables + ?Sized>(tables: &T, query: &Query) -> FlowKey {
    let flow = if query.is_tcp() { query.flow() } else { query.tracked_flow() };
    FlowKey(FlowHash::new(&flow, &tables.flow_secret()).0)
}

/// Sends a packet of an open connection that has a cell to its backend, unless that takes none of its packets. Returns
/// whether it did.
///
/// # Errors
/// [`Verdict::NextHopUnresolved`]: the backend's next hop is awaited.
#[inline(never)]
pub(super) fn try_open<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    homes: &Homes,
    flow: &Flow,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    let (key, now) = (flow.key, flow.now());
    let mut cell = Cell::NONE;
    let found = if query.is_quoted() {
        // What it quotes has a sequence number of the other direction.
        tables.youngest(key, false, now, &mut cell)
    } else {
        let (found, dropped) = tables.nearest(key, query.segment(), now, &mut cell);
        if dropped {
            tables.count(Event::SynDropped);
        }
        found
    };
    if !found {
        return Ok(false);
    }
    if is_answer_to_last_syn(query, &cell) {
        tables.last_syn(key, (HALF_OPEN - ANSWERED) as i64, now, &mut cell);
    }
    let placed = cell.place.placement();
    let by = if cell.owner.is_of_syn() { Memory::Handshake } else { Memory::Displaced };
    let Some(choice) = backend_state::choose(tables, query, placed) else {
        return moves(tables, query, (by, placed), observer);
    };
    if !query.is_quoted() && !query.is_answering_reset() {
        if homes.are_at(placed) && !cell.has_others() && !cell.owner.is_half_open() {
            tables.exchange_owner(&cell, Owner::NONE);
        } else {
            if cell.owner.zone() != query.zone() {
                note(tables, query, State::Open, now);
            }
            let packet = (query.zone(), query.segment());
            let may_open = may_open(tables, query, &cell);
            let is_opened = flow_table::touch(tables, &cell, packet, may_open, now);
            if is_opened {
                count_opened(tables, query);
            }
        }
    }
    observer.remembered(by, placed);
    *to = choice;
    Ok(true)
}

/// That a remembered connection goes elsewhere (false), unless its backend has only lost its next hop.
///
/// # Errors
/// [`Verdict::NextHopUnresolved`].
#[inline(always)]
pub(super) fn moves<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    (by, placed): (Memory, Placement),
    observer: &mut O,
) -> Result<bool, Verdict> {
    if backend_state::is_awaited(tables, query, placed) {
        observer.remembered(by, placed);
        Err(Verdict::NextHopUnresolved)
    } else {
        Ok(false)
    }
}

/// Whether a RST that met this cell may be the answer to a packet of the backend of the flow's last SYN, if that came a
/// moment ago: a backend that has a still earlier connection in TIME_WAIT answers the SYN by an ACK of that one (RFC 9293,
/// 3.10.7.4), and does so again until it gets the RST.
#[inline(always)]
fn is_answer_to_last_syn(query: &VersionedQuery<'_>, cell: &Cell) -> bool {
    let beyond = query.sequence().wrapping_sub(cell.place.sequence());
    let is_its = cell.owner.is_of_syn() || beyond < flow_table::STEP;
    !query.is_quoted() && query.is_answering_reset() && !is_its && cell.has_others()
}

/// Sends a SYN where the same one went before, unless that backend takes no new connections any more: it may never answer,
/// and the repeat is the client's only chance. Renews its cell. Returns whether it did.
///
/// # Errors
/// [`Verdict::NextHopUnresolved`]: it is a late copy of an open connection's, whose backend's next hop is awaited.
#[inline(never)]
pub(super) fn try_repeated<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    flow: &mut Flow,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    let mut cell = Cell::NONE;
    if !flow.look(tables, query, &mut cell) {
        return Ok(false);
    }
    let now = flow.now();
    let placed = cell.place.placement();
    let is_of_syn = cell.owner.is_of_syn();
    let Some(choice) = backend_state::choose(tables, query, placed) else {
        if is_of_syn {
            return Ok(false);
        }
        return moves(tables, query, (Memory::Displaced, placed), observer);
    };
    if is_of_syn {
        if choice.member.accepts() != Accepts::All {
            return Ok(false);
        }
        let state = if cell.owner.is_at_home() { State::HalfOpenAtHome } else { State::HalfOpen };
        note(tables, query, state, now);
        tables.exchange_owner(&cell, cell.owner.with(state, after(now, HALF_OPEN)));
    }
    tables.count(Event::SynRepeated);
    observer.remembered(Memory::Handshake, placed);
    *to = choice;
    Ok(true)
}

/// What the table must know of a flow whose backend was just chosen, before the packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// A SYN that went home, now and next.
    AtHome,
    /// A SYN that went home, where the remap moves its flow from.
    AtHomeNow,
    /// A SYN that went elsewhere.
    Away,
    /// An open connection at home, where the remap moves its flow from.
    Moving,
    /// A tracked flow of datagrams.
    Datagrams,
}

/// Has a flow remembered from its first packet on, half-open. A SYN that goes home gets a cell for two reasons: a repeat of
/// it must go home too, and its packets must be told from those of the flow's other connection. Returns whether the flow has a
/// cell or needs none.
#[inline(never)]
pub(super) fn remember<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    kept: Kept,
    choice: &Choice,
    flow: &mut Flow,
) -> bool {
    let now = flow.now();
    // One packet of an open connection may be all that comes of it for a while.
    let (state, life) = match kept {
        Kept::Moving => (State::SeenOnce, flow_table::LIFE),
        Kept::AtHome if !flow.survey.has_any() => {
            if query.descriptor.flags & LIMITED == 0 {
                return true;
            }
            (State::HalfOpenAtHome, HALF_OPEN)
        }
        _ => (State::HalfOpen, HALF_OPEN),
    };
    note(tables, query, state, now);
    // A flow that has this very cell goes to another backend now.
    let mut cell = Cell::NONE;
    let has_cell =
        (kept == Kept::Moving || flow.survey.is_found()) && flow.look(tables, query, &mut cell);
    let place = Place::new(choice.placement(), query.sequence());
    let done = if has_cell {
        let owner = cell.owner.with(state, after(now, life));
        tables.exchange_place(&cell, place) && tables.exchange_owner(&cell, owner)
    } else {
        let owner = Owner::new(flow.key, !query.is_tcp(), query.zone(), state, after(now, life));
        let words = (owner, place);
        flow.has_room
            && flow_table::take(tables, flow.key, flow.survey, words, now, &mut cell).is_some()
    };
    let (taken, no_room) = match kept {
        Kept::Moving => (Event::RemapTaken, Event::RemapNoRoom),
        _ => (Event::FlowTaken, Event::FlowNoRoom),
    };
    if done {
        tables.count(taken);
    } else if !has_cell {
        // A cell that another CPU has just changed is no lack of room.
        tables.count(no_room);
    }
    done
}

/// Counts a cell that nobody else may take any more. The daemon's walk sets the counts right when cells end.
#[inline(always)]
pub(super) fn count_opened<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) {
    for counted in [query.pool(), ALL_POOLS] {
        tables.flow_count(counted).map(|count| count.add(1));
    }
}

/// Whether a flow may have its cell for itself from its second packet on. Checked then, too: half-open cells do not count, so
/// a forger could have any number of them first, and open all of them at once.
#[inline(always)]
pub(super) fn may_open<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    cell: &Cell,
) -> bool {
    cell.owner.is_half_open() && is_within_share(tables, query)
}

/// Above half of the table a pool with more than an eighth of it takes no more, so that forged connections of one pool leave
/// room for the others. It refuses that pool's honest flows too. Half-open flows do not count: anybody may take their cells.
#[inline(always)]
fn is_within_share<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> bool {
    let count = |pool| tables.flow_count(pool).map_or(0, Word::load);
    let room = tables.mask().map_or(0, |mask| (u64::from(mask) + 1) * u64::from(CELLS));
    count(ALL_POOLS) <= room / 2 || count(query.pool()) <= room / 8
}

/// Stores that a flow of this zone may have a cell, before it has one.
#[inline(always)]
fn note<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>, state: State, now: Coarse) {
    if !query.is_tcp() || state == State::HalfOpenAtHome {
        return;
    }
    // It may be later than now: after an upgrade all checks stay on for as long as cells from before it live.
    if query.line().last_displaced < now.0 {
        tables.set_last_displaced(query.pool(), now);
    }
    let zone = query.zone().into();
    if tables.zone(zone).is_none_or(|zone| zone.last_displaced < now.0) {
        tables.set_zone_displaced(zone, now);
    }
}

#[inline(always)]
const fn after(now: Coarse, units: u64) -> Coarse {
    Coarse(now.0.wrapping_add(units))
}
