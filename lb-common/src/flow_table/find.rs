//! Finds the cell of a flow.

use super::{CELLS, FlowCells, FlowKey, Owner, Place, Position, position};
use crate::abi::clock::Coarse;

/// A cell as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Where it is.
    pub at: Position,
    /// Its first word.
    pub owner: Owner,
    /// Its second word.
    pub place: Place,
}

/// The first cell of a flow that is not over and that `applies`.
#[inline(always)]
pub fn find<T: FlowCells + ?Sized>(
    cells: &T,
    (key, datagrams): (FlowKey, bool),
    now: Coarse,
    applies: impl Fn(Owner, Place) -> bool,
) -> Option<Cell> {
    for number in 0..2 * CELLS {
        let at = position(key, number, cells.mask());
        let Some(cell) = read(cells, at, |owner| owner.is_of(key, datagrams)) else { continue };
        if cell.owner.left(now) > 0 && applies(cell.owner, cell.place) {
            return Some(cell);
        }
    }
    None
}

/// A cell whose first word `is_wanted`, if both words are of one flow.
#[inline(always)]
pub(super) fn read<T: FlowCells + ?Sized>(
    cells: &T,
    at: Position,
    is_wanted: impl Fn(Owner) -> bool,
) -> Option<Cell> {
    let owner = cells.owner(at)?;
    if !is_wanted(owner) {
        return None;
    }
    let place = cells.place(at)?;
    // Its time may have been set meanwhile.
    let again = cells.owner(at)?;
    is_wanted(again).then_some(Cell { at, owner: again, place })
}
