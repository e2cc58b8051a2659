//! The flow table: where flows are that are not where the tables of backends put them.
//!
//! A flow's cell is in one of two buckets of four cells, a cache line each, whichever has more room when it is taken. Two
//! words make a cell. Each change of one is an exchange of what was read, so that a change that comes too late changes
//! nothing; both are of one flow when the first one is the same before and after the second one was read.

mod cell;
mod find;
mod take;
#[cfg(test)]
mod tests;
mod touch;

pub use cell::{FlowKey, Owner, Place, State};
pub use find::{Cell, last_syn, nearest, youngest};
pub use take::{Packets, Survey, settle, survey, take};
pub use touch::{
    HALF_OPEN, LIFE, LINGER, STEP, Segment, is_fresh, is_fresh_of_datagrams, is_near, touch,
    touch_datagrams,
};

use crate::abi::clock::Coarse;

/// Cells of a bucket.
pub const CELLS: u32 = 4;

/// The memory of the table.
pub trait FlowCells {
    /// A bucket's words.
    type Bucket<'c>: Bucket
    where
        Self: 'c;

    /// The number of buckets, a power of two, less one. `None`: there is no table.
    fn mask(&self) -> Option<u32>;
    /// A bucket. `None`: there is no such one.
    fn bucket(&self, number: u32) -> Option<Self::Bucket<'_>>;

    /// Begins to read both buckets of a flow: their cache lines come while the packet goes on with other work.
    #[inline(always)]
    fn fetch(&self, key: FlowKey) {
        let Some(mask) = self.mask() else { return };
        for side in 0..2 {
            self.bucket(key.bucket(side, mask)).map(|bucket| bucket.load(0));
        }
    }

    // What follows is the same for all memories. A packet program overrides it with global functions, which the kernel
    // verifies once each.

    /// [`find::nearest`].
    #[inline(always)]
    fn nearest(
        &self,
        key: FlowKey,
        segment: Segment,
        now: Coarse,
        found: &mut Cell,
    ) -> (bool, bool) {
        nearest(self, key, segment, now, found)
    }
    /// [`find::last_syn`].
    #[inline(always)]
    fn last_syn(&self, key: FlowKey, units: i64, now: Coarse, found: &mut Cell) -> bool {
        last_syn(self, key, units, now, found)
    }
    /// [`find::youngest`].
    #[inline(always)]
    fn youngest(&self, key: FlowKey, datagrams: bool, now: Coarse, found: &mut Cell) -> bool {
        youngest(self, key, datagrams, now, found)
    }
    /// [`take::survey`].
    #[inline(always)]
    fn survey(&self, key: FlowKey, of: Packets, now: Coarse, cell: &mut Cell) -> Survey {
        survey(self, key, of, now, cell)
    }
    /// [`take::settle`].
    #[inline(always)]
    fn settle(&self, key: FlowKey, of: Packets, own: Position, now: Coarse) -> Option<Position> {
        settle(self, key, of, own, now)
    }
    /// Stores a cell's first word where what was read is still there; returns whether it was.
    #[inline(always)]
    fn exchange_owner(&self, cell: &Cell, to: Owner) -> bool {
        let bucket = self.bucket(cell.at.bucket());
        bucket.is_some_and(|bucket| bucket.exchange(owner_word(cell.at.cell()), cell.owner.0, to.0))
    }
    /// Stores a cell's second word where what was read is still there; returns whether it was.
    #[inline(always)]
    fn exchange_place(&self, cell: &Cell, to: Place) -> bool {
        let bucket = self.bucket(cell.at.bucket());
        bucket.is_some_and(|bucket| bucket.exchange(place_word(cell.at.cell()), cell.place.0, to.0))
    }
}

/// A bucket: a cache line of eight words, two a cell.
pub trait Bucket: Copy {
    /// A word.
    fn load(self, word: u32) -> u64;
    /// A word, not before the one that `earlier` was read from.
    #[inline(always)]
    fn load_after(self, word: u32, _earlier: u64) -> u64 {
        self.load(word)
    }
    /// Stores a word where `from` is; returns whether it was.
    fn exchange(self, word: u32, from: u64, to: u64) -> bool;
    /// Stores a word.
    fn store(self, word: u32, to: u64);
}

/// Where a cell is: `{bucket 32, cell in it 32}` from the low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// From its parts.
    #[inline(always)]
    pub const fn new(bucket: u32, cell: u32) -> Self {
        Self(bucket as u64 | (cell as u64) << 32)
    }

    /// The bucket.
    #[inline(always)]
    pub const fn bucket(self) -> u32 {
        self.0 as u32
    }

    /// The cell in it.
    #[inline(always)]
    pub const fn cell(self) -> u32 {
        (self.0 >> 32) as u32 % CELLS
    }
}

/// The word of a cell's owner in its bucket.
#[inline(always)]
const fn owner_word(cell: u32) -> u32 {
    2 * cell
}

/// The word of a cell's place in its bucket.
#[inline(always)]
const fn place_word(cell: u32) -> u32 {
    2 * cell + 1
}
