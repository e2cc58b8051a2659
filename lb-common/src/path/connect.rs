//! A new connection: where its SYN goes, and what is remembered of that.

use super::{
    admit::{self, Budget},
    choose::{self, Choice, Memory, Observe, placed},
    hosts,
    parse::Kind,
    question::Ask,
    records::Line,
    stay,
    tables::Tables,
};
use crate::{
    abi::{
        clock::Coarse, event::Event, exception::ExceptionWord, record::Placed, verdict::Verdict,
    },
    word::Word,
};

/// The member that has a SYN.
///
/// # Errors
/// The verdict of a SYN that no backend gets.
#[inline(always)]
pub(super) fn connect<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if goes_home(tables, ask, to, observer)? {
        return Ok(());
    }
    let now = tables.now();
    // While every connection is at home no SYN was recorded elsewhere in the life of a record.
    if !ask.remembers_nothing() && is_repeated(tables, ask, to, observer) {
        return Ok(());
    }
    if !stay::stays(tables, ask, now, to, observer)? {
        admit::admit(tables, ask, (Budget::Exceptions, now), to, observer)?;
    }
    remember(tables, ask, to, Coarse::of(now))
}

/// Whether a SYN goes home and leaves no trace there.
#[inline(never)]
fn goes_home<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<bool, Verdict> {
    if !ask.remembers_nothing() {
        return Ok(false);
    }
    let home = choose::home(tables, ask.descriptor, ask.hash)?;
    let Some(choice) = home.choice(tables, Kind::NewConnection) else { return Ok(false) };
    home.tell(observer);
    admit::count(tables, ask, &choice, false);
    *to = choice;
    Ok(true)
}

/// Whether a SYN is repeated, and goes where it went before because that host lives.
#[inline(never)]
fn is_repeated<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let now = Coarse::of(tables.now());
    let before = tables.repeated(Line::of(ask.identity(), now), ask.sequence());
    if !before.is_handshake() {
        return false;
    }
    let Some(choice) = hosts::choice(tables, ask, before.placed()) else { return false };
    if !before.is_home() {
        set_away(tables, ask, now);
    }
    // A mark is to last as long as the record it is for.
    mark(tables, ask, before.placed(), now);
    tables.count(Event::SynRepeated);
    observer.remembered(Memory::Record, before.placed());
    *to = choice;
    true
}

/// Remembers where a SYN goes, before it leaves.
///
/// # Errors
/// [`Verdict::Inconsistent`].
#[inline(never)]
fn remember<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    choice: &Choice,
    now: Coarse,
) -> Result<(), Verdict> {
    let home = choose::home(tables, ask.descriptor, ask.hash)?;
    let decided = choice.placed();
    let is_home = decided == placed(home.member) && is_former_home(tables, ask, choice);
    if !is_home {
        set_away(tables, ask, now);
    }
    let line = Line::of(ask.identity(), now);
    tables.write_record(line, line.record(ask.sequence(), decided, is_home));
    mark(tables, ask, decided, now);
    Ok(())
}

/// Marks the exception of an earlier connection that was elsewhere.
#[inline(always)]
fn mark<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, decided: Placed, now: Coarse) {
    if ask.line().is_gate_closed() {
        return;
    }
    let Some(word) = tables.exception(&ask.flow()) else { return };
    let mut exception = ExceptionWord(word.load());
    let elsewhere = exception.placed();
    // Once more if a packet of the earlier connection came in between: each changes its entry once a second.
    for _ in 0..2 {
        if exception.placed() == decided || exception.placed() != elsewhere {
            return;
        }
        match word.exchange(exception.0, exception.marked(now).0) {
            Ok(()) => return tables.count(Event::ExceptionMarked),
            Err(found) => exception = ExceptionWord(found),
        }
    }
}

/// Stores that a connection is away from home, before its packet leaves.
#[inline(always)]
pub(super) fn set_away<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, now: Coarse) {
    if ask.line().last_away != now.0 {
        tables.set_last_away(ask.pool(), now);
    }
}

/// Whether a choice is home under the former version too, if there is one.
#[inline(always)]
fn is_former_home<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, choice: &Choice) -> bool {
    match ask.former(tables) {
        None => true,
        Some((former, hash)) => choose::home(tables, former, hash)
            .is_ok_and(|home| placed(home.member) == choice.placed()),
    }
}
