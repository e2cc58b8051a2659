//! During a remap, a new connection that could not get a displaced entry stays at its previous home.
//!
//! Anywhere else it would be lost once its handshake entry expires. At its previous home it needs no entry until
//! connections there are adopted, out of another budget.

use super::{
    admit::{self, HomeAdmission},
    parse::Kind,
    query::VersionedQuery,
    select::{self, Choice, Memory, Observe, REMEMBERED, placement},
    tables::Tables,
};
use crate::abi::{clock::Nanoseconds, counter::Event, verdict::Verdict};

/// Places a SYN at its previous home if the budget of displaced entries is used up; returns whether it did.
///
/// # Errors
/// [`Verdict::RegionsFull`].
#[inline(never)]
pub(super) fn try_hold<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Nanoseconds,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    let Some((previous, hash)) = query.previous(tables) else { return Ok(false) };
    if !admit::is_budget_spent(tables, query, now) {
        return Ok(false);
    }
    let current = select::home(tables, query.descriptor, query.hash)?;
    let Ok(home) = select::home(tables, previous, hash) else { return Ok(false) };
    if placement(home.member) == placement(current.member) {
        return Ok(false);
    }
    let Some(choice) = home.choice(tables, Kind::NewConnection) else { return Ok(false) };
    // Its limits and counters are those of that home.
    let query = &query.by(previous);
    let entered = admit::admit_home(tables, query, &home, now);
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
