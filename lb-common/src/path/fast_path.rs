//! The fast path: the packet goes home, or by a cell that it leaves as it is. It writes nothing of connections, but drops the
//! cell of a SYN that a stream is about to pass.

use super::{
    admit, backend_state, homes, known,
    parse::Kind,
    query::{Query, VersionedQuery},
    select::{self, Choice, placement},
    tables::Tables,
};
use crate::{
    abi::{
        clock::Coarse, counter::Event, pool::LIMITED, service::SERVICE_TRACKED, verdict::Verdict,
    },
    flow_table::{self, Cell},
};

/// The member that gets a packet, if the fast path can decide; `None`: the slow path must.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub(super) fn resolve<T: Tables + ?Sized>(
    tables: &T,
    query: &Query,
    kind: Kind,
) -> Result<Option<Choice>, Verdict> {
    let query = &VersionedQuery::new(tables, query)?;
    let is_fast = match kind {
        Kind::OpenConnection if query.may_have_cell(tables) && query.is_quoted() => false,
        Kind::OpenConnection if query.may_have_cell(tables) => match try_known(tables, query) {
            Known::No => true,
            Known::At(choice) => return Ok(Some(choice)),
            Known::Changed => false,
        },
        Kind::OpenConnection => true,
        Kind::NewConnection => query.is_stateless(),
        Kind::Datagram if query.service_has(SERVICE_TRACKED) => {
            return Ok(try_tracked(tables, query));
        }
        Kind::Datagram => true,
    };
    if !is_fast {
        // The first member's word says it of all; home is for the slow path to find. A cell may be of an open connection, and
        // this a late copy of its SYN.
        if kind == Kind::NewConnection
            && let Some(first) = tables.member(query.descriptor.home.members)
            && select::nobody_takes(first, kind)
            && !query.may_have_cell(tables)
        {
            return Err(Verdict::NoBackend);
        }
        return Ok(None);
    }
    resolve_home(tables, query, kind)
}

/// The same of a packet whose cell, if there is one, the slow path finds.
///
/// # Errors
/// As [`resolve`].
#[inline(always)]
pub(super) fn resolve_at_home<T: Tables + ?Sized>(
    tables: &T,
    query: &Query,
    kind: Kind,
) -> Result<Option<Choice>, Verdict> {
    let query = &VersionedQuery::new(tables, query)?;
    let is_at_home = match kind {
        Kind::OpenConnection => !query.may_have_cell(tables),
        Kind::NewConnection => query.is_stateless(),
        Kind::Datagram => !query.service_has(SERVICE_TRACKED),
    };
    if is_at_home { resolve_home(tables, query, kind) } else { Ok(None) }
}

/// The member that has a packet at home, if it takes it and the packet needs no cell.
#[inline(always)]
fn resolve_home<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    kind: Kind,
) -> Result<Option<Choice>, Verdict> {
    // Datagrams of flows that are not tracked move at once.
    let next = if kind == Kind::Datagram { query.next(tables) } else { None };
    let (descriptor, hash) = match next {
        Some(next) => (next.descriptor, next.hash),
        None => (query.descriptor, query.hash),
    };
    let home = select::home(tables, descriptor, hash)?;
    if kind == Kind::OpenConnection && homes::is_moved(tables, query, placement(home.member)) {
        return Ok(None);
    }
    let choice = home.choice(tables, kind);
    match &choice {
        Some(choice) if kind == Kind::NewConnection => admit::count(tables, query, choice, false),
        None if select::nobody_takes(home.member, kind) => return Err(Verdict::NoBackend),
        _ => {}
    }
    Ok(choice)
}

/// What the flow table has of a packet of an open connection.
enum Known {
    /// Nothing.
    No,
    /// A cell that the packet leaves as it is, at a backend that takes its packets.
    At(Choice),
    /// What it changes, or what needs a closer look.
    Changed,
}

#[inline(always)]
fn try_known<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> Known {
    let now = Coarse::from_nanoseconds(tables.now());
    let mut cell = Cell::NONE;
    let key = known::key(tables, query);
    let (found, dropped) = tables.nearest(key, query.segment(), now, &mut cell);
    if dropped {
        tables.count(Event::SynDropped);
        return Known::Changed;
    }
    if !found {
        return Known::No;
    }
    if cell.has_others() || !flow_table::is_fresh(&cell, (query.zone(), query.segment()), now) {
        return Known::Changed;
    }
    match backend_state::choose(tables, query, cell.place.placement()) {
        Some(choice) => Known::At(choice),
        None => Known::Changed,
    }
}

/// The backend of a tracked flow that has a cell for long enough.
#[inline(always)]
fn try_tracked<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> Option<Choice> {
    let now = Coarse::from_nanoseconds(tables.now());
    let mut cell = Cell::NONE;
    let is_found = tables.youngest(known::key(tables, query), true, now, &mut cell);
    if !is_found || !flow_table::is_fresh_of_datagrams(&cell, query.idle(), now) {
        return None;
    }
    backend_state::choose(tables, query, cell.place.placement())
}

impl VersionedQuery<'_> {
    /// Whether a SYN that goes home needs no cell.
    #[inline(always)]
    pub(super) fn is_stateless(&self) -> bool {
        let line = self.line();
        !line.has_displaced() && line.versions().next() == 0 && self.descriptor.flags & LIMITED == 0
    }
}
