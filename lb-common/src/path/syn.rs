//! New connections: where a SYN goes, and its cell.

use super::{
    admit::{self, HomeAdmission},
    homes::{self, Homes},
    known::{self, Flow, Kept},
    parse::Kind,
    query::{Query, VersionedQuery},
    select::{self, Choice, Memory, Observe, REMEMBERED, placement},
    tables::Tables,
};
use crate::abi::{counter::Event, verdict::Verdict};

/// The member that gets a SYN.
///
/// # Errors
/// The verdict of a SYN that no backend gets.
#[inline(never)]
pub(super) fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &Query,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let mut query = VersionedQuery::new(tables, query)?;
    if try_home(tables, &query, to, observer)? {
        return Ok(());
    }
    let mut flow = Flow::new(tables, &query);
    let home = select::home(tables, query.descriptor, query.hash)?;
    let mut homes = Homes::new(tables, &query, home);
    let at_home = placement(homes.now.member);
    if known::try_repeated(tables, &query, &mut flow, to, observer)? {
        return Ok(());
    }
    if flow.has_room || !try_hold_in_remap(tables, &query, &homes, &flow, to, observer)? {
        homes::place_by_next(tables, &mut query, &mut homes.now);
        admit::admit(tables, &query, &homes.now, &flow, to, observer)?;
    }
    let kept = if to.placement() != at_home {
        Kept::Away
    } else if homes.differ {
        Kept::AtHomeNow
    } else {
        Kept::AtHome
    };
    if !known::remember(tables, &query, kept, to, &mut flow) && kept == Kept::Away {
        tables.count(Event::DisplacedWithoutCell);
    }
    Ok(())
}

/// Sends a SYN home if that needs no cell; returns whether it did.
#[inline(never)]
fn try_home<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    if !query.is_stateless() {
        return Ok(false);
    }
    let home = select::home(tables, query.descriptor, query.hash)?;
    let Some(choice) = home.choice(tables, Kind::NewConnection) else { return Ok(false) };
    home.report_chosen(observer);
    admit::count(tables, query, &choice, false);
    *to = choice;
    Ok(true)
}

/// During a remap a new connection without room for a cell goes to the home that the remap moves it from; returns whether it
/// does.
///
/// # Errors
/// [`Verdict::RegionsFull`].
#[inline(never)]
fn try_hold_in_remap<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    homes: &Homes,
    flow: &Flow,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    if !homes.differ {
        return Ok(false);
    }
    let Some(choice) = homes.now.choice(tables, Kind::NewConnection) else { return Ok(false) };
    let entered = admit::admit_home(tables, query, &homes.now, flow.time);
    if entered == HomeAdmission::RegionClosed {
        return Ok(false);
    }
    tables.count(Event::HeldAtHome);
    observer.remembered(Memory::PreviousHome, choice.placement());
    *to = choice;
    admit::hold(tables, query, (entered, flow.time), to, observer)?;
    to.region = REMEMBERED;
    Ok(true)
}
