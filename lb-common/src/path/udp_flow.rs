//! Datagrams of services that track flows: each flow has a cell, wherever it is.

use super::{
    admit, backend_state, homes, known,
    query::VersionedQuery,
    select::{self, Choice, Memory, Observe},
    tables::Tables,
};
use crate::{
    abi::{clock::Coarse, counter::Event, verdict::Verdict},
    flow_table::{self, State},
};

/// The member that gets a datagram.
///
/// # Errors
/// The verdict of a datagram that no backend gets.
#[inline(always)]
pub(super) fn resolve<'t, T: Tables + ?Sized, O: Observe>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let now = tables.now();
    let coarse = Coarse::from_nanoseconds(now);
    if try_known(tables, query, coarse, to, observer) {
        return Ok(());
    }
    let placing = &homes::placing(tables, query);
    if query.is_quoted() {
        return select::select_out_of_line(tables, placing, to, observer);
    }
    // A flow without a cell goes by the tables, each datagram again.
    admit::admit(tables, placing, (true, now), to, observer)?;
    let done = known::remember(tables, query, (to.placement(), State::HalfOpen), coarse);
    tables.count(if done { Event::FlowTaken } else { Event::FlowNoRoom });
    Ok(())
}

/// Finds a flow's backend by its cell, unless that no longer accepts it; returns whether it did.
#[inline(never)]
fn try_known<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let Some(cell) = known::datagrams(tables, query, now) else { return false };
    let placed = cell.place.placement();
    let Some(choice) = backend_state::choose(tables, query, placed) else { return false };
    // An ICMP error about a backend's packet does not show that the client is alive.
    if !query.is_quoted() {
        flow_table::touch_datagrams(tables, &cell, query.idle(), now);
    }
    observer.remembered(Memory::Tracked, placed);
    *to = choice;
    true
}
