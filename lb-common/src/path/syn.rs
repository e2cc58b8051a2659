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
    if known::try_repeated(tables, &query, &flow, to, observer) {
        return Ok(());
    }
    let home = select::home(tables, query.descriptor, query.hash)?;
    let homes = Homes::new(tables, &query, home);
    flow.has_room = known::has_room(tables, &query, &flow);
    if !try_hold(tables, &query, &homes, &flow, to, observer)? {
        let mut home = home;
        homes::place_by_next(tables, &mut query, &mut home);
        admit::admit(tables, &query, &home, &flow, to, observer)?;
    }
    let placed = to.placement();
    let kept = if homes.are_at(placed) {
        Kept::AtHome
    } else if placement(homes.now.member) == placed {
        Kept::AtFormerHome
    } else {
        Kept::Away
    };
    known::remember(tables, &query, kept, to, &flow);
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

/// Without a cell a connection that a remap moves stays where its flow is at home until then; returns whether it does.
///
/// # Errors
/// [`Verdict::RegionsFull`].
#[inline(never)]
fn try_hold<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    homes: &Homes,
    flow: &Flow,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    if flow.has_room || !homes.differ {
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
    if entered == HomeAdmission::Yes {
        admit::count(tables, query, to, false);
    } else {
        admit::admit_over_capacity(tables, query, to, observer)?;
    }
    to.region = REMEMBERED;
    Ok(true)
}
