//! A new connection: where its SYN goes, and what is remembered of that.

use super::{
    Ask,
    admit::{self, Budget},
    choose::{self, Choice, Home, Memory, Observe, placed},
    hosts,
    parse::Kind,
    records::Line,
    tables::Tables,
};
use crate::{
    abi::{
        clock::Coarse, descriptor::LIMITED, event::Event, exception::ExceptionWord, verdict::Verdict,
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
    observer: &mut O,
) -> Result<Choice, Verdict> {
    let home = choose::home(tables, ask.descriptor, ask.hash)?;
    if ask.remembers_nothing() {
        if let Some(choice) = home.choice(tables, Kind::NewConnection) {
            home.tell(observer);
            admit::count(tables, ask, &choice, false);
            return Ok(choice);
        }
    }
    placed_anew(tables, *ask, home, observer)
}

/// The member that has a SYN which may have come before, or whose home has not got it.
///
/// # Errors
/// As [`connect`].
#[inline(never)]
fn placed_anew<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: Ask<'_>,
    home: Home,
    observer: &mut O,
) -> Result<Choice, Verdict> {
    let now = tables.now();
    let coarse = Coarse::of(now);
    let line = Line::of(ask.identity(), coarse);
    if let Some((cell, record)) = line.repeated(tables, ask.sequence())
        && let Some(choice) = hosts::choice(tables, record.placed())
    {
        let (placed, is_home) = (record.placed(), record.is_home());
        if !is_home {
            set_away(tables, &ask, coarse);
        }
        line.rewrite(tables, (cell, ask.sequence()), placed, is_home);
        tables.count(Event::SynRepeated);
        observer.remembered(Memory::Record, placed);
        return Ok(choice);
    }
    let choice = admit::admit(tables, &ask, (&home, Budget::Exceptions), now, observer)?;
    let decided = choice.placed();
    let is_home = decided == placed(home.member) && is_former_home(tables, &ask, &choice);
    if !is_home {
        set_away(tables, &ask, coarse);
    }
    line.write(tables, ask.sequence(), decided, is_home);
    if !ask.line.is_gate_closed()
        && let Some(word) = tables.exception(&ask.flow())
    {
        let exception = ExceptionWord(word.load());
        if exception.placed() != decided {
            word.store(exception.marked(coarse).0);
            tables.count(Event::ExceptionMarked);
        }
    }
    Ok(choice)
}

/// Stores that a connection is away from home, before its packet leaves.
#[inline(always)]
pub(super) fn set_away<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, now: Coarse) {
    if ask.line.last_away != now.0 {
        tables.set_last_away(ask.pool as u32, now);
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

impl Ask<'_> {
    /// Whether a SYN that goes home leaves no trace: the pool has no limits, no connection is away
    /// from home, and home means one thing.
    #[inline(always)]
    const fn remembers_nothing(&self) -> bool {
        self.descriptor.flags & LIMITED == 0
            && self.line.is_gate_closed()
            && self.line.versions().former() == 0
    }
}
