//! Datagrams of services that track flows: each flow has an entry, wherever it is.

use super::{
    admit::{self, Budget},
    backend_state,
    query::VersionedQuery,
    select::{self, Choice, Memory, Observe},
    tables::Tables,
};
use crate::{
    abi::{clock::Coarse, connection::DisplacedWord, counter::Event, verdict::Verdict},
    word::Word,
};

/// The member that gets a datagram.
///
/// # Errors
/// The verdict of a datagram that no backend gets.
#[inline(always)]
pub(super) fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if try_known(tables, query, to, observer) {
        return Ok(());
    }
    if query.is_quoted() {
        return select::select_out_of_line(tables, query, to, observer);
    }
    let now = tables.now();
    admit::admit(tables, query, (Budget::None, now), to, observer)?;
    remember(tables, query, to, Coarse::from_nanoseconds(now));
    Ok(())
}

/// Finds a flow's backend by its entry, unless the flow was idle for too long or the backend no longer accepts it; returns
/// whether it did.
#[inline(never)]
fn try_known<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let now = Coarse::from_nanoseconds(tables.now());
    let Some(word) = tables.tracked(&query.tracked_flow()) else { return false };
    let before = DisplacedWord(word.load());
    if before.idle(now) > query.idle() {
        return false;
    }
    let Some(choice) = backend_state::choose(tables, query, before.placement()) else {
        return false;
    };
    let after = before.seen(now);
    // An ICMP error about a backend's packet does not show that the client is alive.
    if after != before && !query.is_quoted() {
        let _ = word.exchange(before.0, after.0);
    }
    observer.remembered(Memory::Tracked, before.placement());
    *to = choice;
    true
}

/// Writes the flow's entry.
#[inline(never)]
fn remember<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    choice: &Choice,
    now: Coarse,
) {
    let flow = query.tracked_flow();
    let entry = DisplacedWord::new(choice.placement(), now);
    if let Some(word) = tables.tracked(&flow) {
        if word.exchange(word.load(), entry.0).is_ok() {
            tables.count(Event::FlowTracked);
        }
    } else if tables.insert_tracked(&flow, entry) {
        tables.count(Event::FlowTracked);
    } else {
        tables.count(Event::FlowRefused);
    }
}
