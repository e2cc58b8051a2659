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
    flow_table::{self, Cell, FlowKey, Owner, Place, State, Taken, Wanted},
};

/// How long a cell counts after the SYN or the first datagram that it is of, in coarse units: longer than a client repeats
/// a SYN.
const HALF_OPEN: u64 = Coarse::units(64);

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
    tables.count(Event::DisplacedLookup);
    let key = key(tables, query);
    let cell = if query.is_quoted() {
        // What it quotes has a sequence number of the other direction.
        flow_table::youngest(tables, (key, false), now)
    } else {
        flow_table::nearest(tables, key, query.segment(), now)
    }?;
    let placed = cell.place.placement();
    let choice = backend_state::choose(tables, query, placed)?;
    if !query.is_quoted() {
        if homes.are_at(placed) && !cell.has_others && !cell.owner.is_half_open() {
            tables.exchange_owner(cell.at, cell.owner, Owner::NONE);
        } else {
            flow_table::touch(tables, &cell, query.segment(), now);
        }
    }
    tables.count(Event::DisplacedHit);
    observer.remembered(Memory::Displaced, placed);
    Some(choice)
}

/// Where the same SYN went before, unless that backend takes nothing any more; renews its cell.
#[inline(always)]
pub(super) fn try_repeated<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    let cell = flow_table::of_syn(tables, key(tables, query), query.sequence(), now)?;
    let placed = cell.place.placement();
    let choice = backend_state::choose(tables, query, placed)?;
    let state = if cell.owner.is_at_home() { State::HalfOpenAtHome } else { State::HalfOpen };
    note(tables, query, now);
    tables.exchange_owner(cell.at, cell.owner, cell.owner.with(state, after(now, HALF_OPEN)));
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
        flow_table::of_syn(tables, key, query.sequence(), now)
    } else {
        flow_table::youngest(tables, (key, true), now)
    };
    if let Some(cell) = known {
        // The same SYN or flow, which goes to another backend now.
        return tables.exchange_place(cell.at, cell.place, place);
    }
    let wanted = Wanted {
        key,
        datagrams: !query.is_tcp(),
        zone: query.zone(),
        state,
        until: after(now, HALF_OPEN),
        place,
    };
    note(tables, query, now);
    flow_table::take(tables, &wanted, now) != Taken::Full
}

/// Whether a connection of the flow has a cell.
#[inline(always)]
pub(super) fn has_any<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
) -> bool {
    flow_table::youngest(tables, (key(tables, query), false), now).is_some()
}

/// The cell of a tracked flow of datagrams.
#[inline(always)]
pub(super) fn datagrams<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
) -> Option<Cell> {
    flow_table::youngest(tables, (key(tables, query), true), now)
}

/// Stores that a flow of this zone may have a cell, before it has one.
#[inline(always)]
fn note<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>, now: Coarse) {
    if !query.is_tcp() {
        return;
    }
    if query.line().last_displaced != now.0 {
        tables.set_last_displaced(query.pool(), now);
    }
    let zone = query.zone().into();
    if tables.zone(zone).is_none_or(|zone| zone.last_displaced != now.0) {
        tables.set_zone_displaced(zone, now);
    }
}

#[inline(always)]
const fn after(now: Coarse, units: u64) -> Coarse {
    Coarse(now.0.wrapping_add(units))
}
