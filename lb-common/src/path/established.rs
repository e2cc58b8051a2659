//! Packets of open connections.

use super::{
    homes::Homes,
    known::{self, Flow, Kept},
    query::{Query, VersionedQuery},
    select::{self, Choice, Memory, Observe, placement},
    tables::Tables,
};
use crate::{abi::verdict::Verdict, wire::tcp};

/// The member that gets a packet of an open connection: where its cell says, else home by the version that is in force.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(never)]
pub(super) fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &Query,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let query = &VersionedQuery::new(tables, query)?;
    let home = select::home(tables, query.descriptor, query.hash)?;
    let homes = &Homes::new(tables, query, home);
    let mut flow = Flow::new(tables, query);
    if query.may_have_cell(tables) && known::try_open(tables, query, homes, &flow, to, observer)? {
        return Ok(());
    }
    select::select_from_home(tables, query, &homes.now, to, observer)?;
    // The remap moves its home: it takes a cell now, if there is room.
    let is_at_home = to.placement() == placement(homes.now.member);
    if homes.differ && is_at_home {
        observer.remembered(Memory::PreviousHome, to.placement());
    }
    let stays_open = !query.is_quoted() && !query.tcp_has(tcp::FIN | tcp::RST);
    if homes.differ && is_at_home && stays_open {
        known::remember(tables, query, Kept::Moving, to, &mut flow);
    }
    Ok(())
}
