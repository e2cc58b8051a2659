//! A packet of an open connection: where the connection is.

use super::{
    choose::{self, Choice, Home, Memory, Observe, REMEMBERED, placed},
    connect::set_away,
    hosts,
    parse::Kind,
    question::Ask,
    records::{Found, Line, Segment},
    tables::Tables,
};
use crate::{
    abi::{
        clock::Coarse, event::Event, exception::ExceptionWord, meter, record::Placed,
        verdict::Verdict,
    },
    wire::tcp,
    word::Word,
};

/// The member that has a packet of an open connection.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub(super) fn open<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if !ask.is_settled() && is_remembered(tables, ask, to, observer) {
        return Ok(());
    }
    choose::choose_apart(tables, ask, to, observer)
}

/// Whether a connection is known to be away from home, or is at home by a former meaning of it.
#[inline(never)]
fn is_remembered<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let now = Coarse::of(tables.now());
    let mut choice = None;
    if !ask.line().is_gate_closed() {
        choice = away(tables, ask, now, observer);
    }
    if choice.is_none() {
        choice = at_former_home(tables, ask, now, observer);
    }
    if let Some(choice) = choice {
        *to = choice;
    }
    choice.is_some()
}

/// Where a connection is that is away from home, while its host lives.
#[inline(always)]
fn away<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    tables.count(Event::ExceptionLookup);
    let flow = ask.flow();
    let line = Line::of(ask.identity(), now);
    if let Some(word) = tables.exception(&flow) {
        let placed = if ask.is_quoted() {
            ExceptionWord(word.load()).placed()
        } else {
            by_exception(tables, ask, word, line)
        };
        let choice = hosts::choice(tables, ask, placed)?;
        tables.count(Event::ExceptionHit);
        observer.remembered(Memory::Exception, placed);
        return Some(choice);
    }
    // What is quoted has another direction's number, by which no record is found.
    if ask.is_quoted() {
        return None;
    }
    let found = handshake(tables, ask, line);
    if !found.is_handshake() || found.is_home() {
        return None;
    }
    let placed = found.placed();
    let choice = hosts::choice(tables, ask, placed)?;
    observer.remembered(Memory::Record, placed);
    if !ask.tcp_has(tcp::RST) {
        let v4 = ask.is_v4();
        let budget = if v4 { meter::EXCEPTIONS_V4 } else { meter::EXCEPTIONS_V6 };
        let done = insert(tables, ask, budget, (placed, found), now);
        tables.count(if done { Event::ExceptionInserted } else { Event::ExceptionRefused });
    }
    Some(choice)
}

/// Where an exception's connection is, with the exception made young, and replaced if its connection
/// ended and this packet belongs to the handshake of the next one.
///
/// The mark stays until then: what fits the record of the connection that ended is a late packet of it,
/// and a RST goes where it belongs and changes nothing.
#[inline(always)]
fn by_exception<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    word: impl Word,
    line: Line,
) -> Placed {
    let now = line.now;
    let before = ExceptionWord(word.load());
    let (mut after, mut is_replaced) = (before.seen(now), false);
    if before.is_marked(now) {
        let found = handshake(tables, ask, line);
        if found.is_handshake() && found.placed() != before.placed() {
            if ask.tcp_has(tcp::RST) {
                return found.placed();
            }
            after = entry(found.placed(), found, now);
            is_replaced = true;
        }
    } else if before.has_mark() {
        after = after.unmarked();
    }
    // Where the exchange is lost, another CPU was there, or another connection has the memory: it stays as it is.
    if after != before && word.exchange(before.0, after.0).is_ok() && is_replaced {
        tables.count(Event::ExceptionReplaced);
    }
    after.placed()
}

/// What records say of a packet.
#[inline(always)]
fn handshake<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, line: Line) -> Found {
    let ends = ask.tcp_has(tcp::FIN | tcp::RST);
    let found = tables.handshake(line, Segment::new(ask.sequence(), ends));
    if found.dropped() {
        tables.count(Event::RecordDropped);
    }
    found
}

/// The former home, during a change of home, unless it is dead.
#[inline(always)]
fn at_former_home<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    let (former, hash) = ask.former(tables)?;
    let home = choose::home(tables, former, hash).ok()?;
    let choice = home.choice(tables, Kind::OpenConnection)?;
    let choice = Choice { region: REMEMBERED, ..choice };
    observer.remembered(Memory::FormerHome, choice.placed());
    if ask.line().versions().is_adopting() {
        adopt(tables, ask, &home, now);
    }
    Some(choice)
}

/// Remembers a connection where it is, before its former home is forgotten.
#[inline(always)]
fn adopt<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, former: &Home, now: Coarse) {
    let Ok(home) = choose::home(tables, ask.descriptor, ask.hash) else { return };
    if placed(home.member) == placed(former.member) || ask.tcp_has(tcp::RST) {
        return;
    }
    set_away(tables, ask, now);
    let v4 = ask.is_v4();
    let budget = if v4 { meter::ADOPTIONS_V4 } else { meter::ADOPTIONS_V6 };
    let found = handshake(tables, ask, Line::of(ask.identity(), now));
    let done = insert(tables, ask, budget, (placed(former.member), found), now);
    tables.count(if done { Event::Adopted } else { Event::AdoptionRefused });
}

/// An exception that is made only now; with a mark, if the SYN that would have marked it came before.
#[inline(always)]
fn entry(placed: Placed, found: Found, now: Coarse) -> ExceptionWord {
    let word = ExceptionWord::new(placed, now);
    if found.is_superseded() { word.marked(now) } else { word }
}

/// Adds an exception, if there is budget for one.
#[inline(always)]
fn insert<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    budget: u32,
    (placed, found): (Placed, Found),
    now: Coarse,
) -> bool {
    tables.debit(budget, tables.now())
        && tables.insert_exception(&ask.flow(), entry(placed, found, now))
}
