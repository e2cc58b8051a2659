//! Datagrams of services that track flows: each flow has a cell, wherever it is.

use super::{
    admit, backend_state, homes,
    known::{self, Flow, Kept},
    query::{Query, VersionedQuery},
    select::{self, Choice, Memory, Observe},
    tables::Tables,
};
use crate::{
    abi::verdict::Verdict,
    flow_table::{self, Cell},
};

/// The member that gets a datagram.
///
/// # Errors
/// The verdict of a datagram that no backend gets.
#[inline(never)]
pub(super) fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &Query,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let mut query = VersionedQuery::new(tables, query)?;
    let mut flow = Flow::new(tables, &query);
    if try_known(tables, &query, &mut flow, to, observer)? {
        return Ok(());
    }
    let mut home = select::home(tables, query.descriptor, query.hash)?;
    homes::place_by_next(tables, &mut query, &mut home);
    if query.is_quoted() {
        return select::select_from_home(tables, &query, &home, to, observer);
    }
    admit::admit(tables, &query, &home, &flow, to, observer)?;
    known::remember(tables, &query, Kept::Datagrams, to, &mut flow);
    Ok(())
}

/// Finds a flow's backend by its cell, unless that no longer accepts it; returns whether it did.
///
/// # Errors
/// [`Verdict::NextHopUnresolved`]: it is a flow of several datagrams, and its backend's next hop is awaited.
#[inline(never)]
fn try_known<T: Tables + ?Sized, O: Observe>(
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
    let placed = cell.place.placement();
    let Some(choice) = backend_state::choose(tables, query, placed) else {
        if cell.owner.is_half_open() {
            return Ok(false);
        }
        return known::moves(tables, query, (Memory::Tracked, placed), observer);
    };
    // An ICMP error about a backend's packet does not show that the client is alive.
    if !query.is_quoted() {
        let may_open = known::may_open(tables, query, &cell);
        let how = (query.idle(), may_open);
        let is_opened = flow_table::touch_datagrams(tables, &cell, how, flow.now());
        if is_opened {
            known::count_opened(tables, query);
        }
    }
    observer.remembered(Memory::Tracked, placed);
    *to = choice;
    Ok(true)
}
