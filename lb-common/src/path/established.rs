//! Packets of open connections.

use super::{
    homes::Homes,
    known,
    query::VersionedQuery,
    select::{self, Choice, Observe, placement},
    tables::Tables,
};
use crate::{
    abi::{clock::Coarse, counter::Event, verdict::Verdict},
    flow_table::State,
    wire::tcp,
};

/// The member that gets a packet of an open connection: where its cell says, else home by the version that is in force.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub(super) fn resolve<'t, T: Tables + ?Sized, O: Observe>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let home = select::home(tables, query.descriptor, query.hash)?;
    let homes = Homes::new(tables, query, home);
    let now = Coarse::from_nanoseconds(tables.now());
    if query.may_have_cell(tables)
        && let Some(choice) = known::try_open(tables, query, &homes, now, observer)
    {
        *to = choice;
        return Ok(());
    }
    // It has a cell by the time at which home is elsewhere.
    if homes.differ() && !query.is_quoted() && !query.tcp_has(tcp::FIN | tcp::RST) {
        let at = placement(homes.now.member);
        let done = known::remember(tables, query, (at, State::SeenOnce), now);
        tables.count(if done { Event::RemapTaken } else { Event::RemapNoRoom });
    }
    select::select_from_home(tables, query, &homes.now, to, observer)
}
