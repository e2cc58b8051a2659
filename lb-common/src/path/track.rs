//! A datagram of a service whose flows are tracked: each flow is remembered, wherever it is.

use super::{
    admit::{self, Budget},
    choose::{self, Choice, Memory, Observe},
    hosts,
    question::Ask,
    tables::Tables,
};
use crate::{
    abi::{clock::Coarse, event::Event, exception::ExceptionWord, verdict::Verdict},
    word::Word,
};

/// The member that has a datagram.
///
/// # Errors
/// The verdict of a datagram that no backend gets.
#[inline(always)]
pub(super) fn track<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if is_known(tables, ask, to, observer) {
        return Ok(());
    }
    if ask.is_quoted() {
        return choose::choose_apart(tables, ask, to, observer);
    }
    let now = tables.now();
    admit::admit(tables, ask, (Budget::None, now), to, observer)?;
    remember(tables, ask, to, Coarse::of(now));
    Ok(())
}

/// Whether a flow is known, not idle for too long, and its host lives.
#[inline(never)]
fn is_known<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let now = Coarse::of(tables.now());
    let Some(word) = tables.tracked(&ask.tracked_flow()) else { return false };
    let before = ExceptionWord(word.load());
    if before.idle(now) > ask.idle() {
        return false;
    }
    let Some(choice) = hosts::choice(tables, ask, before.placed()) else { return false };
    let after = before.seen(now);
    // An error about what a backend goes on to send says nothing of the client.
    if after != before && !ask.is_quoted() {
        let _ = word.exchange(before.0, after.0);
    }
    observer.remembered(Memory::Tracked, before.placed());
    *to = choice;
    true
}

/// Remembers where a flow goes.
#[inline(never)]
fn remember<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, choice: &Choice, now: Coarse) {
    let flow = ask.tracked_flow();
    let entry = ExceptionWord::new(choice.placed(), now);
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
