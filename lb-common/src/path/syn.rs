//! New connections: where a SYN goes, and its handshake entry.

use super::{
    admit::{self, Budget},
    backend_state,
    handshakes::Line,
    hold_previous,
    parse::Kind,
    query::VersionedQuery,
    select::{self, Choice, Memory, Observe, placement},
    tables::Tables,
};
use crate::{
    abi::{
        clock::Coarse,
        connection::{DisplacedWord, Placement},
        counter::Event,
        verdict::Verdict,
    },
    word::Word,
};

/// The member that gets a SYN.
///
/// # Errors
/// The verdict of a SYN that no backend gets.
#[inline(always)]
pub(super) fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if try_home(tables, query, to, observer)? {
        return Ok(());
    }
    let now = tables.now();
    // While every connection is at home no SYN went elsewhere in the life of a handshake entry.
    if !query.is_stateless() && try_repeated(tables, query, to, observer) {
        return Ok(());
    }
    if !hold_previous::try_hold(tables, query, now, to, observer)? {
        admit::admit(tables, query, (Budget::Displaced, now), to, observer)?;
    }
    remember(tables, query, to, Coarse::from_nanoseconds(now))
}

/// Sends a SYN home if that needs no handshake entry; returns whether it did.
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

/// Sends a repeated SYN where the first one went, unless that backend accepts nothing any more; returns whether it
/// did.
#[inline(never)]
fn try_repeated<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let now = Coarse::from_nanoseconds(tables.now());
    let before = tables.find_repeated_syn(Line::new(query.identity(), now), query.sequence());
    if !before.is_handshake() {
        return false;
    }
    let Some(choice) = backend_state::choose(tables, query, before.placement()) else {
        return false;
    };
    if !before.is_home() {
        note_displaced(tables, query, now);
    }
    // The entry must stay contested for as long as the handshake entry counts.
    contest(tables, query, before.placement(), now);
    tables.count(Event::SynRepeated);
    observer.remembered(Memory::Handshake, before.placement());
    *to = choice;
    true
}

/// Writes the handshake entry of a SYN, before it leaves.
///
/// # Errors
/// [`Verdict::Inconsistent`].
#[inline(never)]
fn remember<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    choice: &Choice,
    now: Coarse,
) -> Result<(), Verdict> {
    let home = select::home(tables, query.descriptor, query.hash)?;
    let decided = choice.placement();
    let is_home = decided == placement(home.member) && is_previous_home(tables, query, choice);
    if !is_home {
        note_displaced(tables, query, now);
    }
    let line = Line::new(query.identity(), now);
    tables.write_handshake(line, line.entry(query.sequence(), decided, is_home));
    contest(tables, query, decided, now);
    Ok(())
}

/// Marks the entry of an earlier connection of this flow as contested, if that one was elsewhere.
#[inline(always)]
fn contest<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    decided: Placement,
    now: Coarse,
) {
    if !query.line().has_displaced() {
        return;
    }
    let Some(word) = tables.displaced(&query.flow()) else { return };
    let mut displaced = DisplacedWord(word.load());
    let elsewhere = displaced.placement();
    // Once more if a packet of the earlier connection came in between: each changes its entry once a second.
    for _ in 0..2 {
        if displaced.placement() == decided || displaced.placement() != elsewhere {
            return;
        }
        match word.exchange(displaced.0, displaced.contested(now).0) {
            Ok(()) => return tables.count(Event::DisplacedContested),
            Err(found) => displaced = DisplacedWord(found),
        }
    }
}

/// Stores that a connection is displaced, before its packet leaves.
#[inline(always)]
pub(super) fn note_displaced<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
) {
    if query.line().last_displaced != now.0 {
        tables.set_last_displaced(query.pool(), now);
    }
}

/// Whether a choice is home in the previous version too, if there is one.
#[inline(always)]
fn is_previous_home<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    choice: &Choice,
) -> bool {
    match query.previous(tables) {
        None => true,
        Some((previous, hash)) => select::home(tables, previous, hash)
            .is_ok_and(|home| placement(home.member) == choice.placement()),
    }
}
