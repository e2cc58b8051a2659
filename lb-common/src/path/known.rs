//! What the flow table knows of a packet's flow.

use super::{
    backend_state,
    homes::Homes,
    query::VersionedQuery,
    select::{Choice, Memory, Observe},
    tables::Tables,
};
use crate::{
    abi::{clock::Coarse, connection::Placement, counter::Event},
    flow_hash::FlowHash,
    flow_table::{self, CELLS, Cell, FlowKey, Owner, Place, State, Taken},
    word::Word,
};

/// Where the cells of all pools together are counted: no pool has this index.
pub(super) const ALL_POOLS: u32 = 0;

/// How long a cell counts after the SYN or the first datagram that it is of, in coarse units: longer than a client repeats
/// a SYN.
const HALF_OPEN: u64 = Coarse::units(64);

/// For how long after its SYN a connection's backend may be what a RST answers, in coarse units, the first of them begun:
/// longer than a round trip.
const ANSWERED: u64 = 2;

/// The flow's key in the table.
#[inline(always)]
pub(super) fn key<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> FlowKey {
    let flow = if query.is_tcp() { query.flow() } else { query.tracked_flow() };
    FlowKey(FlowHash::new(&flow, &tables.flow_secret()).0)
}

/// Where an open connection is that has a cell, unless its backend takes none of its packets.
#[inline(always)]
pub(super) fn try_open<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    homes: &Homes,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    tables.count(Event::FlowLookup);
    let key = key(tables, query);
    let cell = if query.is_quoted() {
        // What it quotes has a sequence number of the other direction.
        tables.youngest(key, false, now)
    } else {
        let (cell, dropped) = tables.nearest(key, query.segment(), now);
        if dropped {
            tables.count(Event::SynDropped);
        }
        cell
    }?;
    let cell = awaited(tables, query, (key, cell), now);
    let placed = cell.place.placement();
    let choice = backend_state::choose(tables, query, placed)?;
    if !query.is_quoted() && !query.is_answering_reset() {
        if homes.are_at(placed) && !cell.has_others() && !cell.owner.is_half_open() {
            tables.exchange_owner(&cell, Owner::NONE);
        } else {
            flow_table::touch(tables, &cell, query.segment(), now);
        }
    }
    tables.count(Event::FlowHit);
    observer.remembered(Memory::Displaced, placed);
    Some(choice)
}

/// Of a RST that answers a packet of a backend, and belongs to no SYN that has a cell, the cell of the last SYN, if that came a
/// moment ago: a backend that has a still earlier connection in TIME_WAIT answers the SYN by an ACK of that one (RFC 9293,
/// 3.10.7.4), and does so again until it gets the RST.
#[inline(always)]
fn awaited<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    (key, cell): (FlowKey, Cell),
    now: Coarse,
) -> Cell {
    let beyond = query.sequence().wrapping_sub(cell.place.sequence());
    let is_its = cell.owner.is_of_syn() || beyond < flow_table::STEP;
    if query.is_quoted() || !query.is_answering_reset() || is_its || !cell.has_others() {
        return cell;
    }
    tables.last_syn(key, (HALF_OPEN - ANSWERED) as i64, now).unwrap_or(cell)
}

/// Where the same SYN went before, unless that backend takes nothing any more; renews its cell.
#[inline(always)]
pub(super) fn try_repeated<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    let cell = tables.of_syn(key(tables, query), query.sequence(), now)?;
    let placed = cell.place.placement();
    let choice = backend_state::choose(tables, query, placed)?;
    let state = if cell.owner.is_at_home() { State::HalfOpenAtHome } else { State::HalfOpen };
    note(tables, query, state, now);
    tables.exchange_owner(&cell, cell.owner.with(state, after(now, HALF_OPEN)));
    tables.count(Event::SynRepeated);
    observer.remembered(Memory::Handshake, placed);
    Some(choice)
}

/// Has a flow remembered from its first packet on, half-open. Returns whether it has a cell; another CPU may have taken it
/// for the same packet a moment before.
#[inline(always)]
pub(super) fn remember<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    (at, state): (Placement, State),
    now: Coarse,
) -> bool {
    let key = key(tables, query);
    let place = Place::new(at, query.sequence());
    let known = if query.is_tcp() {
        tables.of_syn(key, query.sequence(), now)
    } else {
        tables.youngest(key, true, now)
    };
    note(tables, query, state, now);
    // One packet of an open connection may be all that comes of it for a while.
    let life = if state == State::SeenOnce { flow_table::LIFE } else { HALF_OPEN };
    let until = after(now, life);
    if let Some(cell) = known {
        // The same SYN or flow, which goes to another backend now.
        return tables.exchange_place(&cell, place)
            && tables.exchange_owner(&cell, cell.owner.with(state, until));
    }
    let owner = Owner::new(key, !query.is_tcp(), query.zone(), state, until);
    let has_cell =
        is_within_share(tables, query) && tables.take(key, owner, place, now) != Taken::Full;
    if has_cell {
        for counted in [query.pool(), ALL_POOLS] {
            tables.flow_count(counted).map(|count| count.add(1));
        }
    }
    has_cell
}

/// Whether a flow could have a cell now, if it is half-open.
#[inline(always)]
pub(super) fn has_room<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
) -> bool {
    is_within_share(tables, query) && tables.has_room(key(tables, query), now)
}

/// Above half of the table a pool with more than an eighth of it takes no more, so that a flood at one leaves room for the
/// others. It refuses that pool's honest flows too.
#[inline(always)]
fn is_within_share<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> bool {
    let count = |pool| tables.flow_count(pool).map_or(0, Word::load);
    let room = tables.mask().map_or(0, |mask| (u64::from(mask) + 1) * u64::from(CELLS));
    count(ALL_POOLS) <= room / 2 || count(query.pool()) <= room / 8
}

/// Whether a connection of the flow has a cell.
#[inline(always)]
pub(super) fn has_any<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
) -> bool {
    tables.youngest(key(tables, query), false, now).is_some()
}

/// The cell of a tracked flow of datagrams.
#[inline(always)]
pub(super) fn datagrams<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
) -> Option<Cell> {
    tables.youngest(key(tables, query), true, now)
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
