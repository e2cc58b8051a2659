//! Takes a cell for a flow.

use super::{
    Bucket, CELLS, Cell, FlowCells, FlowKey, Owner, Place, Position, find::read, owner_word,
    place_word,
};
use crate::abi::clock::Coarse;

/// How often a cell is chosen: again when another CPU has taken the chosen one first.
const ATTEMPTS: u32 = 3;

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
pub fn take<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    (owner, place): (Owner, Place),
    now: Coarse,
) -> Taken {
    let Some(at) = write(cells, key, (owner, place), now) else { return Taken::Full };
    cells.settle(key, Cell { at, owner, place, ..Cell::NONE }, now)
}

/// Writes the best cell; returns where it is.
#[inline(always)]
fn write<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    (owner, place): (Owner, Place),
    now: Coarse,
) -> Option<Position> {
    for _ in 0..ATTEMPTS {
        let (at, found) = cells.choose(key, now)?;
        let bucket = cells.bucket(at.bucket())?;
        let (first, second) = (owner_word(at.cell()), place_word(at.cell()));
        if bucket.exchange(first, found.0, Owner::BUSY.0) {
            bucket.store(second, place.0);
            // Nobody changes a busy cell.
            bucket.exchange(first, Owner::BUSY.0, owner.0);
            return Some(at);
        }
    }
    None
}

/// The best cell of the bucket with more room.
#[inline(always)]
pub fn choose<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    now: Coarse,
) -> Option<(Position, Owner)> {
    let mask = cells.mask()?;
    let (mut best, mut best_owner, mut worth) = (Position(0), Owner::NONE, 0);
    for side in 0..2 {
        let number = key.bucket(side, mask);
        let bucket = cells.bucket(number)?;
        let (mut own, mut own_owner, mut own_worth, mut room) = (0, Owner::NONE, 0, 0);
        for cell in 0..CELLS {
            let owner = Owner(bucket.load(owner_word(cell)));
            let score = score(owner, now);
            room += (score >= FREE) as u64;
            if score > own_worth {
                (own, own_owner, own_worth) = (cell, owner, score);
            }
        }
        // Room counts before anything else; without any, the better one of the two.
        let side_worth = room << 40 | own_worth;
        if side_worth > worth {
            (best, best_owner, worth) = (Position::new(number, own), own_owner, side_worth);
        }
    }
    (worth > 0).then_some((best, best_owner))
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
pub fn settle<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    Cell { at: own, owner, place, .. }: Cell,
    now: Coarse,
) -> Taken {
    // Not an `Option`, whose other half would be unset: the kernel's verifier reads it as a fault.
    let (mut is_kept, mut kept, mut kept_at) = (false, place, own);
    let Some(mask) = cells.mask() else { return Taken::Full };
    for side in 0..2 {
        let number = key.bucket(side, mask);
        let Some(bucket) = cells.bucket(number) else { return Taken::Full };
        for cell in 0..CELLS {
            let is_wanted = |other: Owner| other.is_same_flow(owner) && other.left(now) > 0;
            let Some((other, at)) = read(bucket, cell, is_wanted) else { continue };
            if !owner.is_of_datagrams() && at.sequence() != place.sequence() {
                continue;
            }
            if !is_kept {
                (is_kept, kept, kept_at) = (true, at, Position::new(number, cell));
            } else {
                // If it was changed meanwhile it is in use, and the next look settles it.
                bucket.exchange(owner_word(cell), other.0, Owner::NONE.0);
            }
        }
    }
    if kept_at == own { Taken::Cell(own) } else { Taken::Before(kept) }
}
