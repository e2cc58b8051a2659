//! Takes a cell for a flow.

use super::{
    Bucket, CELLS, FlowCells, FlowKey, Owner, Place, Position, find::read, owner_word,
    place_word,
};
use crate::abi::clock::Coarse;

/// How often a cell is chosen: again when another CPU has taken the chosen one first.
const ATTEMPTS: u32 = 3;

/// Takes a cell. A half-open flow may take that of another half-open one, of one at home first, then the oldest; an open
/// flow may take that of any half-open one. Nobody takes the cell of an open flow. Returns where the flow's cell is: another
/// CPU may have taken one for the same SYN or datagram before, and that one counts. `None`: both buckets are full.
#[inline(always)]
pub fn take<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    (owner, place): (Owner, Place),
    now: Coarse,
) -> Option<Position> {
    let at = write(cells, key, (owner, place), now)?;
    let of = if owner.is_of_datagrams() { Packets::Datagrams } else { Packets::Syn(place.sequence()) };
    cells.settle(key, of, at, now)
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
        let at = cells.choose(key, now)?;
        let bucket = cells.bucket(at.bucket())?;
        let (first, second) = (owner_word(at.cell()), place_word(at.cell()));
        let found = Owner(bucket.load(first));
        if score(found, now) > 0 && bucket.exchange(first, found.0, Owner::BUSY.0) {
            bucket.store(second, place.0);
            // Nobody changes a busy cell.
            bucket.exchange(first, Owner::BUSY.0, owner.0);
            return Some(at);
        }
    }
    None
}

/// The best cell of the bucket with more room, if a flow may have it.
#[inline(always)]
pub fn choose<T: FlowCells + ?Sized>(cells: &T, key: FlowKey, now: Coarse) -> Option<Position> {
    let mask = cells.mask()?;
    // Below a score is which of both buckets' cells it is, counted down, so that of equals the first is taken.
    let mut best = 0;
    for side in 0..2 {
        let bucket = cells.bucket(key.bucket(side, mask))?;
        let (mut own, mut room) = (0, 0);
        for cell in 0..CELLS {
            let score = score(Owner(bucket.load(owner_word(cell))), now);
            own = own.max(score << 3 | u64::from(2 * CELLS - 1 - (side * CELLS + cell)));
            room += u64::from(score >= FREE);
        }
        // Room counts before anything else; without any, the better one of the two.
        best = best.max(room << 40 | own);
    }
    let at = 2 * CELLS - 1 - best as u32 % (2 * CELLS);
    (best >> 3 > 0).then_some(Position::new(key.bucket(at / CELLS, mask), at % CELLS))
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

/// What a cell is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// A SYN with this number, or a packet of an open connection with it.
    Syn(u32),
    /// Datagrams.
    Datagrams,
}

/// Of cells that two CPUs took for one SYN at the same time, the one at the lower place stays; returns where it is. Each CPU
/// looks after it has stored its own at `own`, so that at least one of them sees both.
#[inline(always)]
pub fn settle<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    of: Packets,
    own: Position,
    now: Coarse,
) -> Option<Position> {
    // Not an `Option`, whose other half would be unset: the kernel's verifier reads it as a fault.
    let (mut is_kept, mut kept) = (false, own);
    let mask = cells.mask()?;
    for side in 0..2 {
        let number = key.bucket(side, mask);
        let bucket = cells.bucket(number)?;
        for cell in 0..CELLS {
            let is_wanted =
                |other: Owner| other.is_of(key, of == Packets::Datagrams) && other.left(now) > 0;
            let Some((other, place)) = read(bucket, cell, is_wanted) else { continue };
            if let Packets::Syn(number) = of
                && place.sequence() != number
            {
                continue;
            }
            if !is_kept {
                (is_kept, kept) = (true, Position::new(number, cell));
            } else {
                // If it was changed meanwhile it is in use, and the next look settles it.
                bucket.exchange(owner_word(cell), other.0, Owner::NONE.0);
            }
        }
    }
    Some(kept)
}
