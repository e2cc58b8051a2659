//! Finds the cell of a flow.

use super::{
    Bucket, CELLS, FlowCells, FlowKey, Owner, Place, Position, Segment, is_near, owner_word,
    place_word,
};
use crate::abi::clock::Coarse;

/// How far beyond its SYN a connection's packet may be and still make it an open one, bytes: the first flight, of which
/// the head may be lost. A stream that goes on without a cell must not fall to the SYN of somebody else.
const FIRST_FLIGHT: u32 = 16_384;

/// How far below a SYN's number a stream of the same flow is seen coming, bytes: more than one packet can hold, and less
/// than 65,537: so far beyond the last connection's end begins the next one that Linux opens out of TIME_WAIT
/// (`tcp_twsk_unique`), and late packets of the last one do not belong to it. The number itself is that of a keep-alive
/// (RFC 9293, 3.8.4), and does not count.
const APPROACH: u32 = 1 << 16;

/// A cell as it was read. Made of whole words: a packet program keeps it on the stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Where it is.
    pub at: Position,
    /// Its first word.
    pub owner: Owner,
    /// How many cells the flow has, this one among them: others are of connections before or after this one.
    pub(super) count: u64,
    /// Its second word.
    pub place: Place,
}

impl Cell {
    /// No cell. Its words differ: of equal ones a packet program would call `memset`.
    pub const NONE: Self =
        Self { at: Position(u64::MAX), owner: Owner::NONE, count: 1, place: Place(0) };

    /// Whether the flow has other cells.
    #[inline(always)]
    pub const fn has_others(&self) -> bool {
        self.count > 1
    }
}

// Each gives its cell to `found` and returns whether there is one. The verifier refuses an `Option<Cell>`, whose bytes are
// not set if it is `None`.

/// The cell of a connection, by one of its packets: of those that apply to it the one whose number is nearest. Drops that of
/// a SYN whose number the packet's stream is about to pass, so that the SYN was not of this connection; whether it did is
/// returned, too.
#[inline(always)]
pub fn nearest<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    segment: Segment,
    now: Coarse,
    found: &mut Cell,
) -> (bool, bool) {
    let mut dropped = false;
    let is_found = best(cells, key, false, now, found, |cell| {
        let beyond = segment.sequence().wrapping_sub(cell.place.sequence());
        let is_passing = beyond.wrapping_neg().wrapping_sub(1) < APPROACH && !segment.ends();
        if cell.owner.is_of_syn() && is_passing {
            dropped |= cells.exchange_owner(cell, Owner::NONE);
            return None;
        }
        let applies = if cell.owner.is_of_syn() {
            beyond.wrapping_sub(1) < FIRST_FLIGHT
        } else {
            is_near(cell.place, segment.sequence())
        };
        applies.then(|| u64::from(u32::MAX - beyond.cast_signed().unsigned_abs()))
    });
    (is_found, dropped)
}

/// The cell of the flow's last SYN, if that came within `units`.
#[inline(always)]
pub fn last_syn<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    units: i64,
    now: Coarse,
    found: &mut Cell,
) -> bool {
    best(cells, key, false, now, found, |cell| {
        let left = cell.owner.left(now);
        (cell.owner.is_of_syn() && left > units).then(|| left.cast_unsigned())
    })
}

/// The cell of a flow that is not half-open before one that is; of those the one that lasts longest.
#[inline(always)]
pub fn youngest<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    datagrams: bool,
    now: Coarse,
    found: &mut Cell,
) -> bool {
    best(cells, key, datagrams, now, found, |cell| {
        let is_open = !cell.owner.is_half_open();
        Some(u64::from(is_open) << 16 | cell.owner.left(now).cast_unsigned())
    })
}

/// Of a flow's cells that are not over the one with the highest score.
#[inline(always)]
fn best<T: FlowCells + ?Sized>(
    cells: &T,
    key: FlowKey,
    datagrams: bool,
    now: Coarse,
    found: &mut Cell,
    mut score: impl FnMut(&Cell) -> Option<u64>,
) -> bool {
    let Some(mask) = cells.mask() else { return false };
    let mut worth = 0;
    found.count = 0;
    for side in 0..2 {
        let number = key.bucket(side, mask);
        let Some(bucket) = cells.bucket(number) else { return false };
        for cell in 0..CELLS {
            let is_its = |owner: Owner| owner.is_of(key, datagrams) && owner.left(now) > 0;
            let Some((owner, place)) = read(bucket, cell, is_its) else { continue };
            let cell = Cell { at: Position::new(number, cell), owner, count: 1, place };
            found.count += 1;
            // One more, so that any is better than none.
            let score = score(&cell).map_or(0, |score| score + 1);
            if score > worth {
                (found.at, found.owner, found.place, worth) = (cell.at, owner, place, score);
            }
        }
    }
    worth > 0
}

/// A cell whose first word `is_wanted`, if both words are of one flow.
#[inline(always)]
pub(super) fn read(
    bucket: impl Bucket,
    cell: u32,
    is_wanted: impl Fn(Owner) -> bool,
) -> Option<(Owner, Place)> {
    let owner = Owner(bucket.load(owner_word(cell)));
    if !is_wanted(owner) {
        return None;
    }
    let place = Place(bucket.load_after(place_word(cell), owner.0));
    // Its time may have been set meanwhile.
    let owner = Owner(bucket.load_after(owner_word(cell), place.0));
    is_wanted(owner).then_some((owner, place))
}
