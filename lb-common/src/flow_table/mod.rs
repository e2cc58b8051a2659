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
pub use find::{Cell, last_syn, nearest, of_syn, youngest};
pub use take::{Taken, Wanted, has_room, take};
pub use touch::{LIFE, LINGER, STEP, Segment, is_near, touch, touch_datagrams};

/// Cells of a bucket.
pub const CELLS: u32 = 4;

/// The memory of the table.
pub trait FlowCells {
    /// The number of buckets, a power of two, less one.
    fn mask(&self) -> u32;
    /// A cell's first word. `None`: there is no such cell.
    fn load_owner(&self, at: Position) -> Option<Owner>;
    /// A cell's second word, read after the first one.
    fn load_place(&self, at: Position) -> Option<Place>;
    /// Stores a first word where `from` is; false where it is not.
    fn exchange_owner(&self, at: Position, from: Owner, to: Owner) -> bool;
    /// Stores a second word where `from` is; false where it is not.
    fn exchange_place(&self, at: Position, from: Place, to: Place) -> bool;
    /// Stores a second word, of a cell that the caller has made busy.
    fn store_place(&self, at: Position, place: Place);
}

/// Where a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The bucket.
    pub bucket: u32,
    /// The cell in it.
    pub cell: u32,
}

/// The cells that may be a flow's.
#[inline(always)]
fn position(key: FlowKey, number: u32, mask: u32) -> Position {
    Position { bucket: key.bucket(number / CELLS, mask), cell: number % CELLS }
}
