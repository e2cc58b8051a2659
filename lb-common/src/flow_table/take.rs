//! Takes a cell for a flow.

use super::{CELLS, FlowCells, FlowKey, Owner, Place, Position, State, find::read, position};
use crate::abi::clock::Coarse;

/// How often a cell is chosen: again when another CPU has taken the chosen one first.
const ATTEMPTS: u32 = 3;

/// What a flow wants to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The flow.
    pub key: FlowKey,
    /// Whether it is of datagrams.
    pub datagrams: bool,
    /// The zone of its slot.
    pub zone: u16,
    /// Its state.
    pub state: State,
    /// Until when.
    pub until: Coarse,
    /// Where it is.
    pub place: Place,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has a cell.
    Cell(Position),
    /// Another CPU has taken one for the same SYN or datagram before, with this place: that one counts.
    Before(Place),
    /// Both buckets are full.
    Full,
}

/// Takes a cell. A half-open flow may take that of another half-open one, of one at home first, then the oldest; an open
/// flow may take that of any half-open one. Nobody takes the cell of an open flow.
#[inline(always)]
pub fn take<T: FlowCells + ?Sized>(cells: &T, wanted: &Wanted, now: Coarse) -> Taken {
    let owner = Owner::new(wanted.key, wanted.datagrams, wanted.zone, wanted.state, wanted.until);
    for _ in 0..ATTEMPTS {
        let Some((at, found)) = choose(cells, wanted.key, now) else { return Taken::Full };
        if cells.exchange_owner(at, found, Owner::BUSY) {
            cells.store_place(at, wanted.place);
            // Nobody changes a busy cell.
            cells.exchange_owner(at, Owner::BUSY, owner);
            return settle(cells, wanted, at, now);
        }
    }
    Taken::Full
}

/// Whether a flow that is half-open could have a cell now.
#[inline(always)]
pub fn has_room<T: FlowCells + ?Sized>(cells: &T, key: FlowKey, now: Coarse) -> bool {
    choose(cells, key, now).is_some()
}

/// The best cell of the bucket with more room.
#[inline(always)]
fn choose<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    now: Coarse,
) -> Option<(Position, Owner)> {
    let (mut best, mut worth) = (None, 0);
    for side in 0..2 {
        let (mut own, mut own_worth, mut room) = (None, 0, 0);
        for cell in 0..CELLS {
            let at = position(key, side * CELLS + cell, cells.mask());
            let Some(owner) = cells.load_owner(at) else { continue };
            let score = score(owner, now);
            room += (score >= FREE) as u64;
            if score > own_worth {
                (own, own_worth) = (Some((at, owner)), score);
            }
        }
        // Room counts before anything else; without any, the better one of the two.
        let side_worth = room << 40 | own_worth;
        if side_worth > worth {
            (best, worth) = (own, side_worth);
        }
    }
    best
}

/// The score of a cell that a flow may have because nobody needs it.
const FREE: u64 = 1 << 32;

/// How readily a cell is taken; 0: not at all.
#[inline(always)]
fn score(owner: Owner, now: Coarse) -> u64 {
    if owner.is_free(now) {
        return FREE;
    }
    if !owner.is_half_open() {
        return 0;
    }
    let age = 0x8000 - owner.left(now) as u64;
    1 + age + ((owner.is_at_home() as u64) << 20)
}

/// Of cells that two CPUs took for one SYN at the same time, the one at the lower place stays. Each CPU looks after it has
/// stored its own, so that at least one of them sees both.
#[inline(always)]
fn settle<T: FlowCells + ?Sized>(cells: &T, wanted: &Wanted, own: Position, now: Coarse) -> Taken {
    let mut kept = None;
    for number in 0..2 * CELLS {
        let at = position(wanted.key, number, cells.mask());
        let is_wanted =
            |owner: Owner| owner.is_of(wanted.key, wanted.datagrams) && owner.left(now) > 0;
        let Some(cell) = read(cells, at, is_wanted) else { continue };
        let is_same = wanted.datagrams || cell.place.sequence() == wanted.place.sequence();
        match kept {
            _ if !is_same => {}
            None => kept = Some(cell),
            // If it was changed meanwhile it is in use, and the next look settles it.
            Some(_) => drop_cell(cells, at, cell.owner),
        }
    }
    match kept {
        Some(cell) if cell.at != own => Taken::Before(cell.place),
        _ => Taken::Cell(own),
    }
}

#[inline(always)]
fn drop_cell<T: FlowCells + ?Sized>(cells: &T, at: Position, owner: Owner) {
    cells.exchange_owner(at, owner, Owner::NONE);
}
