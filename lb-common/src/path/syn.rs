//! New connections: where a SYN goes, and its cell.

use super::{
    admit::{self, HomeAdmission},
    homes::{self, Homes},
    known,
    parse::Kind,
    query::VersionedQuery,
    select::{self, Choice, Memory, Observe, REMEMBERED, placement},
    tables::Tables,
};
use crate::{
    abi::{
        clock::{Coarse, Nanoseconds},
        counter::Event,
        pool::LIMITED,
        verdict::Verdict,
    },
    flow_table::State,
};

/// The member that gets a SYN.
///
/// # Errors
/// The verdict of a SYN that no backend gets.
#[inline(always)]
pub(super) fn resolve<'t, T: Tables + ?Sized, O: Observe>(
    tables: &'t T,
    query: &VersionedQuery<'t>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if try_home(tables, query, to, observer)? {
        return Ok(());
    }
    let now = tables.now();
    let coarse = Coarse::from_nanoseconds(now);
    if let Some(choice) = known::try_repeated(tables, query, coarse, observer) {
        *to = choice;
        return Ok(());
    }
    let home = select::home(tables, query.descriptor, query.hash)?;
    let homes = Homes::new(tables, query, home);
    let has_room = known::has_room(tables, query, coarse);
    if !try_hold(tables, query, (&homes, has_room, now), to, observer)? {
        admit::admit(tables, &homes::placing(tables, query), (has_room, now), to, observer)?;
    }
    remember(tables, query, &homes, to, coarse);
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
    (homes, has_room, now): (&Homes, bool, Nanoseconds),
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    if has_room || !homes.differ() {
        return Ok(false);
    }
    let Some(choice) = homes.now.choice(tables, Kind::NewConnection) else { return Ok(false) };
    let entered = admit::admit_home(tables, query, &homes.now, now);
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

/// Takes a cell for a SYN, before it leaves: of one that goes home only so that a repeat of it goes home too, and, where
/// the flow has the cell of another connection, so that its packets are told from that one's.
#[inline(never)]
fn remember<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    homes: &Homes,
    choice: &Choice,
    now: Coarse,
) {
    let placed = choice.placement();
    let state = if !homes.are_at(placed) || known::has_any(tables, query, now) {
        State::HalfOpen
    } else if query.descriptor.flags & LIMITED != 0 {
        State::HalfOpenAtHome
    } else {
        return;
    };
    let done = known::remember(tables, query, (placed, state), now);
    tables.count(if done { Event::FlowTaken } else { Event::FlowNoRoom });
    if !done && placed != placement(homes.now.member) {
        tables.count(Event::DisplacedWithoutCell);
    }
}
