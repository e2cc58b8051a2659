//! Packets of open connections.

use super::{
    backend_state,
    handshakes::{HandshakeMatch, Line, Segment},
    parse::Kind,
    query::VersionedQuery,
    select::{self, Choice, Home, Memory, Observe, REMEMBERED, placement},
    syn::note_displaced,
    tables::Tables,
};
use crate::{
    abi::{
        clock::Coarse,
        connection::{DisplacedWord, Placement},
        counter::Event,
        limiter,
        verdict::Verdict,
    },
    wire::tcp,
    word::Word,
};

/// The member that gets a packet of an open connection.
///
/// # Errors
/// The verdict of a packet that no backend gets.
#[inline(always)]
pub(super) fn resolve<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if !query.is_settled() && try_known(tables, query, to, observer) {
        return Ok(());
    }
    select::select_out_of_line(tables, query, to, observer)
}

/// Finds a connection that is displaced, or at its previous home; returns whether it did.
#[inline(never)]
fn try_known<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    to: &mut Choice,
    observer: &mut O,
) -> bool {
    let now = Coarse::from_nanoseconds(tables.now());
    let mut choice = None;
    if query.line().has_displaced() {
        choice = find_displaced(tables, query, now, observer);
    }
    if choice.is_none() {
        choice = find_at_previous_home(tables, query, now, observer);
    }
    if let Some(choice) = choice {
        *to = choice;
    }
    choice.is_some()
}

/// Where a displaced connection is, unless its backend accepts nothing any more.
#[inline(always)]
fn find_displaced<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    tables.count(Event::DisplacedLookup);
    let flow = query.flow();
    let line = Line::new(query.identity(), now);
    if let Some(word) = tables.displaced(&flow) {
        let placed = if query.is_quoted() {
            DisplacedWord(word.load()).placement()
        } else {
            follow_displaced_entry(tables, query, word, line)
        };
        let choice = backend_state::choose(tables, query, placed)?;
        tables.count(Event::DisplacedHit);
        observer.remembered(Memory::Displaced, placed);
        return Some(choice);
    }
    // A quoted packet has the other direction's sequence number, which matches no handshake entry.
    if query.is_quoted() {
        return None;
    }
    let found = find_handshake(tables, query, line);
    if !found.is_handshake() || found.is_home() {
        return None;
    }
    let placed = found.placement();
    let choice = backend_state::choose(tables, query, placed)?;
    observer.remembered(Memory::Handshake, placed);
    if !query.tcp_has(tcp::RST) {
        let v4 = query.is_v4();
        let budget = if v4 { limiter::DISPLACED_V4 } else { limiter::DISPLACED_V6 };
        let done = insert_entry(tables, query, budget, (placed, found), now);
        tables.count(if done { Event::DisplacedInserted } else { Event::DisplacedRefused });
        if done {
            tables.release_handshake(line, placed);
        }
    }
    Some(choice)
}

/// Where the connection of a displaced entry is. Refreshes the entry, and replaces it if its connection ended and
/// this packet belongs to the handshake of the next one.
///
/// Until then the entry stays contested: a packet that fits the handshake entry of the ended connection is a late
/// one of that connection, and a RST goes where it belongs and changes nothing. One that only answers something goes
/// to the backend of the next connection's SYN, if that came a moment ago and the RST fits no handshake entry: a backend
/// that has a still earlier connection in TIME_WAIT answers the SYN by an ACK of that one (RFC 9293, 3.10.7.4), and does
/// so again until it gets the RST.
#[inline(always)]
fn follow_displaced_entry<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    word: impl Word,
    line: Line,
) -> Placement {
    let now = line.now;
    let before = DisplacedWord(word.load());
    let (mut after, mut is_replaced) = (before.seen(now), false);
    if before.is_contested(now) {
        let found = find_handshake(tables, query, line);
        if found.is_handshake() && found.placement() != before.placement() {
            if query.tcp_has(tcp::RST) {
                return found.placement();
            }
            after = new_entry(found.placement(), found, now);
            is_replaced = true;
        } else if found.is_awaited() && query.is_answering_reset() {
            return found.placement();
        }
    } else if before.was_contested() {
        after = after.uncontested();
    }
    // If the exchange fails, another CPU changed the entry, or its memory now belongs to another connection.
    if after != before && word.exchange(before.0, after.0).is_ok() && is_replaced {
        tables.count(Event::DisplacedReplaced);
    }
    after.placement()
}

/// The handshake that a packet belongs to.
#[inline(always)]
fn find_handshake<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    line: Line,
) -> HandshakeMatch {
    let ends = query.tcp_has(tcp::FIN | tcp::RST);
    let found = tables.find_handshake(line, Segment::new(query.sequence(), ends));
    if found.dropped() {
        tables.count(Event::HandshakeDropped);
    }
    found
}

/// The previous home, during a remap, unless it accepts nothing.
#[inline(always)]
fn find_at_previous_home<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    now: Coarse,
    observer: &mut O,
) -> Option<Choice> {
    let (previous, hash) = query.previous(tables)?;
    let home = select::home(tables, previous, hash).ok()?;
    let choice = home.choice(tables, Kind::OpenConnection)?;
    let choice = Choice { region: REMEMBERED, ..choice };
    observer.remembered(Memory::PreviousHome, choice.placement());
    if query.line().versions().is_adopting() {
        adopt(tables, query, &home, now);
    }
    Some(choice)
}

/// Gives a connection at its previous home a displaced entry, before that home is forgotten.
#[inline(always)]
fn adopt<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>, previous: &Home, now: Coarse) {
    let Ok(home) = select::home(tables, query.descriptor, query.hash) else { return };
    if placement(home.member) == placement(previous.member) || query.tcp_has(tcp::RST) {
        return;
    }
    note_displaced(tables, query, now);
    let v4 = query.is_v4();
    let budget = if v4 { limiter::ADOPTIONS_V4 } else { limiter::ADOPTIONS_V6 };
    let found = find_handshake(tables, query, Line::new(query.identity(), now));
    let done = insert_entry(tables, query, budget, (placement(previous.member), found), now);
    tables.count(if done { Event::Adopted } else { Event::AdoptionRefused });
}

/// A new displaced entry, contested if the SYN that contests it came before.
#[inline(always)]
fn new_entry(placed: Placement, found: HandshakeMatch, now: Coarse) -> DisplacedWord {
    let word = DisplacedWord::new(placed, now);
    if found.is_superseded() { word.contested(now) } else { word }
}

/// Adds a displaced entry, if the budget allows one.
#[inline(always)]
fn insert_entry<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    budget: u32,
    (placed, found): (Placement, HandshakeMatch),
    now: Coarse,
) -> bool {
    tables.debit(budget, tables.now())
        && tables.insert_displaced(&query.flow(), new_entry(placed, found, now))
}
