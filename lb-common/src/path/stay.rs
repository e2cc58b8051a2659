//! A new connection during a change of home, when no exception can be had: it stays at its former home.
//!
//! Away from there it would be lost once its handshake is over, for by then nothing says where it is;
//! at its former home it needs nothing until connections there are adopted, out of another budget.

use super::{
    admit::{self, Entered},
    choose::{self, Choice, Memory, Observe, REMEMBERED, placed},
    parse::Kind,
    question::Ask,
    tables::Tables,
};
use crate::abi::{clock::Nanoseconds, event::Event, verdict::Verdict};

/// Whether a SYN stays at its former home.
///
/// # Errors
/// [`Verdict::RegionsFull`].
#[inline(never)]
pub(super) fn stays<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    now: Nanoseconds,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    let Some((former, hash)) = ask.former(tables) else { return Ok(false) };
    if !admit::is_spent(tables, ask, now) {
        return Ok(false);
    }
    let current = choose::home(tables, ask.descriptor, ask.hash)?;
    let Ok(home) = choose::home(tables, former, hash) else { return Ok(false) };
    if placed(home.member) == placed(current.member) {
        return Ok(false);
    }
    let Some(choice) = home.choice(tables, Kind::NewConnection) else { return Ok(false) };
    // Its limits and counters are those of that home.
    let ask = &ask.by(former);
    let entered = admit::enter(tables, ask, &home, now);
    if entered == Entered::RegionClosed {
        return Ok(false);
    }
    tables.count(Event::HeldAtHome);
    observer.remembered(Memory::FormerHome, choice.placed());
    *to = choice;
    if entered == Entered::Yes {
        admit::count(tables, ask, to, false);
    } else {
        admit::over_the_limit(tables, ask, to, observer)?;
    }
    to.region = REMEMBERED;
    Ok(true)
}
