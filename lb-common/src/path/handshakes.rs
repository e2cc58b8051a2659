//! Handshake entries: what a SYN decided, kept for its handshake.

use super::tables::Tables;
use crate::{
    abi::{
        clock::Coarse,
        connection::{CELLS_PER_LINE, HandshakeEntry, Placement},
        limits::HANDSHAKE_LINES,
    },
    flow_hash::FlowHash,
};

/// How far beyond its SYN a connection's packet may be and still belong to the handshake, bytes: the
/// first flight, of which the head may be lost.
pub const WINDOW: u32 = 16_384;
/// How far below a SYN's number a stream of the same flow is seen coming, bytes: more than one packet can hold, and
/// less than 65,537: so far beyond the last connection's end begins the next one that Linux opens out of TIME_WAIT
/// (`tcp_twsk_unique`), and late packets of the last one do not belong to it. The number itself is that of a keep-alive
/// (RFC 9293, 3.8.4), and does not count.
pub const APPROACH: u32 = 1 << 16;
/// For how long after its SYN a connection's backend may be what a RST answers, in coarse units, the first of them begun:
/// longer than a round trip.
const ANSWERED: u64 = 2;

/// How often a new SYN chooses a cell. It chooses again if another CPU changed the cell between its look at the line and
/// its exchange, some nanoseconds. If that happens each time, the SYN has no entry.
const WRITE_ATTEMPTS: u32 = 3;

/// A flow's line of handshake entries, at a time. In two words, because a packet program makes global functions of
/// its users, and those take only numbers.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Index of the line, and the flow's tag.
    pub flow: u64,
    /// The current time.
    pub now: Coarse,
}

impl Line {
    /// The line of a flow, by the hash of its addresses and ports.
    #[inline(always)]
    pub(super) const fn new(identity: FlowHash, now: Coarse) -> Self {
        Self { flow: identity.0, now }
    }

    #[inline(always)]
    const fn index(self) -> u32 {
        const { assert!(HANDSHAKE_LINES.is_power_of_two()) };
        self.flow as u32 % HANDSHAKE_LINES
    }

    #[inline(always)]
    const fn tag(self) -> u32 {
        (self.flow >> 32) as u32
    }

    /// A handshake entry in this line.
    #[inline(always)]
    pub(super) const fn entry(
        self,
        number: u32,
        placed: Placement,
        is_home: bool,
    ) -> HandshakeEntry {
        HandshakeEntry::new(number, self.tag(), placed, is_home, self.now)
    }
}

/// The handshake that a packet belongs to, in one word:
/// `{backend 23, home 1, incarnation 8, found 1, dropped 1, superseded 1, awaited 1}` from the low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeMatch(pub u64);

const FOUND: u64 = 1 << 32;
const DROPPED: u64 = 1 << 33;
const SUPERSEDED: u64 = 1 << 34;
const AWAITED: u64 = 1 << 35;

impl HandshakeMatch {
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// The handshake of one entry.
    #[inline(always)]
    const fn from_entry(entry: HandshakeEntry) -> Self {
        Self(entry.decision & 0xffff_ffff | FOUND)
    }

    /// No handshake, but a SYN a moment ago.
    #[inline(always)]
    const fn awaiting(entry: HandshakeEntry) -> Self {
        Self(entry.decision & 0xffff_ffff | AWAITED)
    }

    /// Whether the packet belongs to a handshake that has an entry.
    #[inline(always)]
    pub const fn is_handshake(self) -> bool {
        self.0 & FOUND != 0
    }

    /// Whether that SYN went home, or its connection has a displaced entry.
    #[inline(always)]
    pub const fn is_home(self) -> bool {
        HandshakeEntry { syn: 0, decision: self.0 }.is_home()
    }

    /// Where that SYN went, or the one whose answer is awaited.
    #[inline(always)]
    pub const fn placement(self) -> Placement {
        HandshakeEntry { syn: 0, decision: self.0 }.placement()
    }

    /// Whether the packet belongs to no handshake that has an entry, and the flow's last SYN came a moment ago: its
    /// backend may have answered by what made the client send the packet.
    #[inline(always)]
    pub const fn is_awaited(self) -> bool {
        self.0 & AWAITED != 0
    }

    /// Whether a handshake entry was dropped: the packet is close below its number, so its stream is about to pass
    /// that number, and the SYN was not of this connection.
    #[inline(always)]
    pub const fn dropped(self) -> bool {
        self.0 & DROPPED != 0
    }

    /// Whether the flow has a handshake entry, later than the one found, to which the packet does not belong: that
    /// of a connection that may replace this one.
    #[inline(always)]
    pub const fn is_superseded(self) -> bool {
        self.0 & SUPERSEDED != 0
    }
}

/// What the SYN with this number decided before; refreshes its entry.
#[inline(always)]
pub fn find_repeated_syn<T: Tables + ?Sized>(
    tables: &T,
    line: Line,
    number: u32,
) -> HandshakeMatch {
    for cell in 0..CELLS_PER_LINE {
        let Some(entry) = tables.handshake_entry(line.index(), cell) else { break };
        if entry.counts(line.tag(), line.now) && entry.number() == number {
            let again = line.entry(number, entry.placement(), entry.is_home());
            tables.exchange_handshake_entry(line.index(), cell, entry, again);
            return HandshakeMatch::from_entry(entry);
        }
    }
    HandshakeMatch::NONE
}

/// Writes what a new SYN decided: over what the same SYN decided before, so that there is one decision
/// of each number; else into an expired cell, over the oldest of a connection at home, or over the oldest.
#[inline(always)]
pub fn write<T: Tables + ?Sized>(tables: &T, line: Line, new: HandshakeEntry) {
    for _ in 0..WRITE_ATTEMPTS {
        let Some((cell, entry)) = choose(tables, line, new.syn) else { return };
        if tables.exchange_handshake_entry(line.index(), cell, entry, new) {
            return;
        }
    }
}

/// The cell that the entry of a new SYN gets, and what it has.
#[inline(always)]
fn choose<T: Tables + ?Sized>(tables: &T, line: Line, syn: u64) -> Option<(u32, HandshakeEntry)> {
    let (mut best, mut worth) = ((0, HandshakeEntry::NONE), 0);
    for cell in 0..CELLS_PER_LINE {
        let entry = tables.handshake_entry(line.index(), cell)?;
        let same = u64::from(entry.syn == syn) << 19;
        let expired = u64::from(entry.is_expired(line.now)) << 18;
        let at_home = u64::from(entry.is_home()) << 17;
        // One more than its age, so that the first cell is as good as any.
        let score = (same | expired | at_home | entry.age(line.now)) + 1;
        // One that is being written has the words of two SYNs for a moment.
        let is_settled = entry.is_whole() || entry.is_expired(line.now) || entry.age(line.now) > 0;
        if is_settled && score > worth {
            (best, worth) = ((cell, entry), score);
        }
    }
    Some(best)
}

/// Marks what SYNs of a flow decided, if they went to this backend, as decisions for home: the flow has a displaced entry
/// that says the same, so that the next SYN of this line that needs a cell may take theirs. Without that, SYNs which come
/// within one coarse unit would overwrite each other before their handshakes are over.
#[inline(always)]
pub fn release<T: Tables + ?Sized>(tables: &T, line: Line, placed: Placement) {
    for cell in 0..CELLS_PER_LINE {
        let Some(entry) = tables.handshake_entry(line.index(), cell) else { break };
        if entry.counts(line.tag(), line.now) && entry.placement() == placed {
            tables.exchange_handshake_entry(line.index(), cell, entry, entry.released());
        }
    }
}

/// A packet of an open connection, as matching needs it: `{sequence number 32, ends 1}` from the
/// low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment(pub u64);

impl Segment {
    /// A segment; `ends` says that it has FIN or RST, so that its stream comes no further.
    #[inline(always)]
    pub(super) const fn new(sequence: u32, ends: bool) -> Self {
        Self(sequence as u64 | (ends as u64) << 32)
    }

    #[inline(always)]
    const fn sequence(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    const fn ends(self) -> bool {
        self.0 >> 32 != 0
    }
}

/// The youngest handshake entry of a flow, whatever its number; changes nothing.
pub fn youngest<T: Tables + ?Sized>(
    tables: &T,
    identity: FlowHash,
    now: Coarse,
) -> Option<HandshakeEntry> {
    let line = Line::new(identity, now);
    let entries = (0..CELLS_PER_LINE).filter_map(|cell| tables.handshake_entry(line.index(), cell));
    entries.filter(|entry| entry.counts(line.tag(), now)).min_by_key(|entry| entry.age(now))
}

/// What the SYN decided to whose handshake a packet belongs: the youngest, if there are several, and of
/// those of one unit of time the one just before the packet, as numbers of one client rise (RFC 6528).
#[inline(always)]
pub fn find_handshake<T: Tables + ?Sized>(
    tables: &T,
    line: Line,
    segment: Segment,
) -> HandshakeMatch {
    let (mut found, mut nearest) = (HandshakeMatch::NONE, u64::MAX);
    let (mut dropped, mut youngest_other) = (0, u64::MAX);
    let mut awaited = HandshakeMatch::NONE;
    for cell in 0..CELLS_PER_LINE {
        let Some(entry) = tables.handshake_entry(line.index(), cell) else { break };
        if !entry.counts(line.tag(), line.now) {
            continue;
        }
        let beyond = segment.sequence().wrapping_sub(entry.number());
        if beyond.wrapping_sub(1) < WINDOW {
            let distance = entry.age(line.now) << 32 | beyond as u64;
            if distance < nearest {
                nearest = distance;
                found = HandshakeMatch::from_entry(entry);
            }
        } else if !segment.ends() && beyond.wrapping_neg().wrapping_sub(1) < APPROACH {
            tables.exchange_handshake_entry(line.index(), cell, entry, entry.dropped());
            dropped = DROPPED;
        } else {
            // Of one age, one whose number is still ahead of the packet is the later one.
            let other = entry.age(line.now) << 1 | (beyond >> 31 ^ 1) as u64;
            if other < youngest_other {
                youngest_other = other;
                awaited = HandshakeMatch::awaiting(entry);
            }
        }
    }
    if !found.is_handshake() && youngest_other >> 1 < ANSWERED {
        found = awaited;
    }
    let superseded = if youngest_other < (nearest >> 31 | 1) { SUPERSEDED } else { 0 };
    HandshakeMatch(found.0 | dropped | superseded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        abi::service::{IPV4, IPV6, address_words},
        flow_hash::FlowTuple,
    };
    use std::{collections::HashSet, net::IpAddr};

    /// Lines of 10,000 flows of one client, told apart by its port.
    fn lines(client: &str, vip: &str, key: [u64; 2]) -> usize {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let flow = |port: u16| FlowTuple {
            client: address_words(address(client)),
            vip: address_words(address(vip)),
            client_port: port.to_be(),
            service_port: 80_u16.to_be(),
            protocol: 6,
            version: if address(client).is_ipv4() { IPV4 } else { IPV6 },
        };
        let line = |port| Line::new(FlowHash::new(&flow(port), &key), Coarse(0)).index();
        (32_768..42_768).map(line).collect::<HashSet<_>>().len()
    }

    /// Thrown at random, 10,000 of them fill 131,072 * (1 - e^(-10,000 / 131,072)) = 9,628 lines.
    #[test]
    fn the_flows_of_one_client_spread_over_the_lines() {
        for key in [[0, 0], [3, 4], [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]] {
            for (client, vip) in
                [("192.0.2.9", "198.51.100.1"), ("2001:db8:c::9", "2001:db8:80::1")]
            {
                let lines = lines(client, vip, key);
                assert!((9_400..=9_999).contains(&lines), "{client}: {lines} lines");
            }
        }
    }
}
