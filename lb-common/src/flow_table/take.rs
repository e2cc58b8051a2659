//! Takes a cell for a flow.

use super::{
    Bucket, CELLS, Cell, FlowCells, FlowKey, Owner, Place, Position, cell::FREE, find::read,
    owner_word, place_word,
};
use crate::abi::clock::Coarse;

/// How often a cell is chosen: again when another CPU has taken the chosen one first.
const ATTEMPTS: u32 = 3;

/// What a cell is looked for and taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// A SYN with this number, or an open connection's packet with it.
    Tcp(u32),
    /// Datagrams.
    Datagrams,
}

/// What both buckets of a flow say before it takes a cell; bits of a word, because in a packet program a survey is a
/// global function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey(pub u64);

const FOUND: u64 = 1;
const HAS_ANY: u64 = 2;
/// Where the best cell begins, below whose readiness is its index.
const BEST: u32 = 2;
/// Where its readiness begins.
const READINESS: u32 = BEST + INDEX_BITS;
/// Bits for the index of a cell of two buckets.
const INDEX_BITS: u32 = (2 * CELLS).ilog2();

impl Survey {
    /// Nothing is known.
    pub const NONE: Self = Self(0);

    /// Whether there is the cell of the same SYN, or of the flow of datagrams.
    #[inline(always)]
    pub const fn is_found(self) -> bool {
        self.0 & FOUND != 0
    }

    /// Whether the flow has any cell.
    #[inline(always)]
    pub const fn has_any(self) -> bool {
        self.0 & HAS_ANY != 0
    }

    /// Whether a flow may have a cell.
    #[inline(always)]
    pub const fn has_room(self) -> bool {
        self.0 >> READINESS != 0
    }

    /// How readily the best cell is taken.
    #[inline(always)]
    const fn readiness(self) -> u64 {
        self.0 >> READINESS & (2 * FREE - 1)
    }

    /// The best cell that the flow may take.
    #[inline(always)]
    const fn position(self, key: FlowKey, mask: u32) -> Position {
        let index = !(self.0 >> BEST) as u32 % (2 * CELLS);
        Position::new(key.bucket(index / CELLS, mask), index % CELLS)
    }
}

/// Looks at both buckets of a flow once. Gives `cell` the cell of the same SYN or flow of datagrams, and finds the best cell
/// that the flow may take:
/// 1. in the bucket with more cells that nobody needs, one of those;
/// 2. if no bucket has any, one of the flow's own connections that were ended;
/// 3. one of a half-open flow that is at home;
/// 4. one of another half-open flow.
///
/// Of equals the oldest.
#[inline(always)]
pub fn survey<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    of: Packets,
    now: Coarse,
    cell: &mut Cell,
) -> Survey {
    let Some(mask) = cells.mask() else { return Survey::NONE };
    let (mut seen, mut best) = (0, 0);
    // Downwards, so that of two cells of one SYN the lower counts.
    for side in [1, 0] {
        let number = key.bucket(side, mask);
        let Some(bucket) = cells.bucket(number) else { return Survey::NONE };
        let (mut own, mut room) = (0, 0);
        for down in 0..CELLS {
            let index = CELLS - 1 - down;
            let first = Owner(bucket.load(owner_word(index)));
            let readiness = first.readiness(key, of == Packets::Datagrams, now);
            // The lower of two equals.
            let rest = u64::from(2 * CELLS - 1 - (side * CELLS + index));
            own = max(own, readiness << INDEX_BITS | rest);
            room += readiness / FREE;
            let is_its =
                |owner: Owner| owner.is_of(key, of == Packets::Datagrams) && owner.left(now) > 0;
            if !is_its(first) {
                continue;
            }
            let Some((owner, place)) = read(bucket, index, is_its) else { continue };
            seen |= HAS_ANY;
            let is_same = match of {
                // Of an open connection too: the network may deliver a copy of its SYN late.
                Packets::Tcp(number) => place.sequence() == number,
                Packets::Datagrams => true,
            };
            if is_same {
                seen |= FOUND;
                *cell = Cell { at: Position::new(number, index), owner, count: 1, place };
            }
        }
        // Room counts before anything else; without any, the better one of the two.
        best = max(best, room << 40 | own);
    }
    Survey(seen | best << BEST)
}

/// The larger of two numbers below 2^63: BPF has no conditional moves, and a CPU could not foresee a branch.
#[inline(always)]
const fn max(a: u64, b: u64) -> u64 {
    let is_less = (a.wrapping_sub(b).cast_signed() >> 63).cast_unsigned();
    a ^ ((a ^ b) & is_less)
}

/// Takes a cell, by the survey of a moment ago. A half-open flow may take that of another half-open one, and so may an open
/// flow. Nobody takes the cell of an open flow. Returns where the flow's cell is: another CPU may have taken one for the same
/// SYN or datagram before, and that one counts. `None`: both buckets are full. `scratch`: anything.
#[inline(always)]
pub fn take<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    mut survey: Survey,
    (owner, place): (Owner, Place),
    now: Coarse,
    scratch: &mut Cell,
) -> Option<Position> {
    let of =
        if owner.is_of_datagrams() { Packets::Datagrams } else { Packets::Tcp(place.sequence()) };
    for _ in 0..ATTEMPTS {
        if !survey.has_room() {
            return None;
        }
        let at = survey.position(key, cells.mask()?);
        let bucket = cells.bucket(at.bucket())?;
        let (first, second) = (owner_word(at.cell()), place_word(at.cell()));
        let found = Owner(bucket.load(first));
        // Less ready: another CPU has just taken it.
        let is_as_ready = found.readiness(key, owner.is_of_datagrams(), now) >= survey.readiness();
        if is_as_ready && bucket.exchange(first, found.0, Owner::BUSY.0) {
            bucket.store(second, place.0);
            // Nobody changes a busy cell.
            bucket.exchange(first, Owner::BUSY.0, owner.0);
            return cells.settle(key, of, at, now);
        }
        survey = cells.survey(key, of, now, scratch);
    }
    None
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
            if let Packets::Tcp(number) = of
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
