//! What a packet of a TCP connection does to its cell.

use super::{Cell, FlowCells, Owner, Place, State};
use crate::{abi::clock::Coarse, wire::tcp};

/// For how long a cell is set, in coarse units: a connection is known for at least 11 minutes after its last packet, of which
/// the documents promise 10.
pub const LIFE: u64 = Coarse::units(720);
/// How long a cell counts after the SYN or the first datagram that it is of, in coarse units: longer than a client repeats
/// a SYN.
pub const HALF_OPEN: u64 = Coarse::units(64);
/// How long the cell of a connection stays after a FIN or a RST, in coarse units.
pub const LINGER: u64 = Coarse::units(120);
/// A cell's end is moved when it comes by more than this, in coarse units, so that few packets write.
const SLACK: u64 = Coarse::units(60);
/// How far below the highest sequence number seen a packet of the connection may be, bytes.
const BELOW: u32 = 256 << 20;
/// How far above it, bytes.
const ABOVE: u32 = 16 << 20;
/// How far one packet moves the highest number, bytes; it is moved when a packet is half as far ahead.
pub const STEP: u32 = 1 << 20;

/// A packet of a connection, in one word: `{0 16, TCP control bits 8, 0 8, sequence number 32}` from the low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment(pub u64);

impl Segment {
    /// From its parts.
    #[inline(always)]
    pub const fn new(sequence: u32, control_bits: u8) -> Self {
        Self((control_bits as u64) << 16 | (sequence as u64) << 32)
    }

    /// Its sequence number.
    #[inline(always)]
    pub const fn sequence(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Whether it has one of some TCP control bits.
    #[inline(always)]
    pub const fn has(self, control_bits: u8) -> bool {
        (self.0 >> 16) as u8 & control_bits != 0
    }

    /// Whether it has FIN or RST.
    #[inline(always)]
    pub const fn ends(self) -> bool {
        self.has(tcp::FIN | tcp::RST)
    }
}

/// Whether a cell with this place applies to a packet with this sequence number.
#[inline(always)]
pub const fn is_near(place: Place, sequence: u32) -> bool {
    sequence.wrapping_sub(place.sequence()).wrapping_add(BELOW) <= BELOW + ABOVE
}

/// Changes a cell by a packet that it applies to, of a flow that has this zone now. If another CPU has changed the cell since
/// it was read, nothing happens. A half-open cell stays one that others may take unless it `may_open`. Returns whether it is
/// no longer half-open by this.
#[inline(always)]
pub fn touch<T: FlowCells + ?Sized>(
    cells: &T,
    cell: &Cell,
    (zone, segment): (u16, Segment),
    may_open: bool,
    now: Coarse,
) -> bool {
    let (owner, place) = after(cell, segment, may_open, now);
    let owner = owner.in_zone(zone);
    let is_set = owner != cell.owner && cells.exchange_owner(cell, owner);
    if place != cell.place {
        cells.exchange_place(cell, place);
    }
    is_set && cell.owner.is_half_open() && !owner.is_half_open()
}

/// Whether [`touch`] would change nothing.
#[inline(always)]
pub fn is_fresh(cell: &Cell, (zone, segment): (u16, Segment), now: Coarse) -> bool {
    let (owner, place) = after(cell, segment, true, now);
    (owner.in_zone(zone), place) == (cell.owner, cell.place)
}

/// Both words after a packet.
#[inline(always)]
fn after(cell: &Cell, segment: Segment, may_open: bool, now: Coarse) -> (Owner, Place) {
    // The end of a stream is no earlier than what came of it before: else it is that of an earlier connection.
    let is_end = segment.sequence().wrapping_sub(cell.place.sequence()) <= ABOVE;
    let owner = owner_after(cell.owner, segment, (is_end, may_open), now);
    (owner, place_after(cell.place, segment.sequence()))
}

/// Changes the cell of a flow of datagrams by one of them; `idle`: coarse units after which the flow is forgotten. Its second
/// datagram makes the cell one that no other flow may take, if it `may_open`; returns whether this one did.
#[inline(always)]
pub fn touch_datagrams<T: FlowCells + ?Sized>(
    cells: &T,
    cell: &Cell,
    (idle, may_open): (u64, bool),
    now: Coarse,
) -> bool {
    if is_fresh_of_datagrams(cell, idle, now) {
        return false;
    }
    let is_half_open = cell.owner.is_half_open();
    let is_opened = is_half_open && may_open;
    let (state, life) = if is_half_open && !may_open {
        (State::HalfOpen, HALF_OPEN)
    } else {
        (State::Open, idle + SLACK.min(idle / 8))
    };
    let until = Coarse(now.0.wrapping_add(life));
    cells.exchange_owner(cell, cell.owner.with(state, until)) && is_opened
}

/// Whether [`touch_datagrams`] would change nothing.
#[inline(always)]
pub fn is_fresh_of_datagrams(cell: &Cell, idle: u64, now: Coarse) -> bool {
    !cell.owner.is_half_open() && cell.owner.left(now) >= idle as i64
}

/// The first word after a packet; `may_end`: whether it can be the end of the connection.
#[inline(always)]
const fn owner_after(
    owner: Owner,
    segment: Segment,
    (may_end, may_open): (bool, bool),
    now: Coarse,
) -> Owner {
    // A RST shows no connection that was made.
    if owner.is_at_home() || owner.is_half_open() && segment.has(tcp::RST) {
        return owner;
    }
    // A packet with data nearly always has PSH, or is followed by one that has.
    let ends = segment.ends() && may_end || owner.is_closing() && !segment.has(tcp::PSH);
    let (state, life) = if ends { (State::Closing, LINGER) } else { (State::Open, LIFE) };
    let state = if owner.is_half_open() && !may_open { State::SeenOnce } else { state };
    let after = owner.with(state, Coarse(now.0.wrapping_add(life)));
    let is_same_state = ends == owner.is_closing() && !owner.is_half_open();
    // Few packets follow a FIN.
    let slack = if ends { LINGER / 16 } else { SLACK };
    if is_same_state && owner.left(now) >= (life - slack) as i64 { owner } else { after }
}

/// The second word after a packet.
#[inline(always)]
const fn place_after(place: Place, sequence: u32) -> Place {
    let ahead = sequence.wrapping_sub(place.sequence());
    if ahead > ABOVE || ahead < STEP / 2 {
        return place;
    }
    let step = if ahead < STEP { ahead } else { STEP };
    Place::new(place.placement(), place.sequence().wrapping_add(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{abi::connection::Placement, flow_table::FlowKey};

    const NOW: Coarse = Coarse(0x1_2345);

    fn owner(state: State, left: u64) -> Owner {
        Owner::new(FlowKey(99), false, 7, state, Coarse(NOW.0 + left))
    }

    fn place(sequence: u32) -> Place {
        Place::new(Placement { backend: 5, incarnation: 6 }, sequence)
    }

    /// Units that a cell has left after a packet, and whether it is still half-open.
    fn after(before: Owner, ends: bool, has_data: bool) -> (i64, bool) {
        let bits = if ends { tcp::FIN } else { 0 } | if has_data { tcp::PSH } else { 0 };
        let owner = owner_after(before, Segment::new(1, bits), (true, true), NOW);
        (owner.left(NOW), owner.is_closing())
    }

    #[test]
    fn packets_renew_a_cell_and_its_end_is_near_after_a_fin() {
        // A unit is 1.07 s: 720 s are 671 of them, 120 s are 112, and 60 s are 56.
        let (open, closing) = (|left| owner(State::Open, left), |left| owner(State::Closing, left));
        for (before, ends, has_data, expected) in [
            (open(671), false, false, (671, false)),
            (open(615), false, true, (615, false)),
            (open(614), false, false, (671, false)),
            (open(1), false, false, (671, false)),
            (open(671), true, false, (112, true)),
            (open(1), true, false, (112, true)),
            (closing(105), false, false, (105, true)),
            (closing(104), false, false, (112, true)),
            (closing(105), true, true, (105, true)),
            (closing(100), false, true, (671, false)),
        ] {
            assert_eq!(after(before, ends, has_data), expected, "{before:?} {ends} {has_data}");
        }
    }

    #[test]
    fn the_second_packet_opens_a_cell_but_not_one_at_home() {
        for state in [State::HalfOpen, State::SeenOnce] {
            let half = owner(state, 40);
            assert_eq!(after(half, false, false), (671, false));
            assert_eq!(after(half, true, false), (112, true));
            assert_eq!(owner_after(half, Segment::new(1, tcp::RST), (true, true), NOW), half);
        }
        let home = owner(State::HalfOpenAtHome, 40);
        assert_eq!(after(home, false, true), (40, false));
        assert_eq!(after(home, true, false), (40, false));
    }

    #[test]
    fn without_room_a_cell_lasts_but_stays_one_that_others_may_take() {
        for (bits, left) in [(tcp::PSH, 671), (0, 671), (tcp::FIN, 112)] {
            for state in [State::HalfOpen, State::SeenOnce] {
                let segment = Segment::new(1, bits);
                let kept = owner_after(owner(state, 40), segment, (true, false), NOW);
                assert!(kept.state() == Some(State::SeenOnce) && kept.left(NOW) == left);
                let opened = owner_after(kept, Segment::new(1, tcp::PSH), (true, true), NOW);
                assert_eq!(opened.state(), Some(State::Open));
            }
            let open = owner(State::Open, 40);
            let after = |may_open| owner_after(open, Segment::new(1, bits), (true, may_open), NOW);
            assert_eq!(after(false), after(true), "an open cell stays one");
        }
    }

    #[test]
    fn a_cell_applies_near_its_number_around_zero_too() {
        for highest in [0, 7, 1 << 31, u32::MAX] {
            let near = |off: i64| is_near(place(highest), (i64::from(highest) + off) as u32);
            assert!(near(0) && near(16 << 20) && near(-(256 << 20)));
            assert!(!near((16 << 20) + 1) && !near(-(256 << 20) - 1) && !near(1 << 31));
        }
    }

    #[test]
    fn the_highest_number_moves_forward_by_small_steps() {
        for (ahead, moved) in [
            (0, 0),
            ((1 << 19) - 1, 0),
            (1 << 19, 1 << 19),
            (1 << 20, 1 << 20),
            (16 << 20, 1 << 20),
            ((16 << 20) + 1, 0),
            (u32::MAX, 0),
            (1 << 31, 0),
        ] {
            let before = place(u32::MAX - 5);
            let after = place_after(before, before.sequence().wrapping_add(ahead));
            assert_eq!(after, place((u32::MAX - 5).wrapping_add(moved)), "{ahead}");
        }
    }
}
