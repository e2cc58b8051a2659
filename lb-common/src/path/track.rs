//! A datagram of a service whose flows are tracked: each flow is remembered, wherever it is.

use super::{
    Ask,
    admit::{self, Budget},
    choose::{self, Choice, Memory, Observe},
    hosts,
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
#[inline(never)]
pub(super) fn track<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: Ask<'_>,
    observer: &mut O,
) -> Result<Choice, Verdict> {
    let now = tables.now();
    let coarse = Coarse::of(now);
    let word = tables.tracked(&ask.tracked_flow());
    if let Some(word) = word {
        let before = ExceptionWord(word.load());
        if before.idle(coarse) <= ask.service_flags >> 16
            && let Some(choice) = hosts::choice(tables, before.placed())
        {
            let after = before.seen(coarse);
            if after != before {
                word.store(after.0);
            }
            observer.remembered(Memory::Tracked, before.placed());
            return Ok(choice);
        }
    }
    let home = choose::home(tables, ask.descriptor, ask.hash)?;
    let choice = admit::admit(tables, &ask, (&home, Budget::None), now, observer)?;
    let entry = ExceptionWord::new(choice.placed(), coarse);
    match word {
        Some(word) => {
            word.store(entry.0);
            tables.count(Event::FlowTracked);
        }
        None if tables.insert_tracked(&ask.tracked_flow(), entry) => tables.count(Event::FlowTracked),
        None => tables.count(Event::FlowRefused),
    }
    Ok(choice)
}
