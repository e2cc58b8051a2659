use lb_common::abi::{clock::DISPLACED_LIFE, limiter::LimitWord};

/// Bits of a coarse unit in nanoseconds ([`lb_common::abi::clock::Coarse`]).
const COARSE_BITS: u32 = 30;

/// Entries that fit a table with `room` for so many displaced entries: those of new connections placed away
/// from home, and those of open ones that are adopted during a remap. New ones come whenever a
/// region is full, adoptions only with a change, which waits for them: three to one. Together they are
/// never more than the table holds.
pub fn shares(room: u32) -> [u32; 2] {
    let adoptions = room / 4;
    [room - adoptions, adoptions]
}

/// How fast displaced entries may be added to a table with `room` for so many: so that within
/// [`DISPLACED_LIFE`] never more are than the table holds, and none that was used within that time has
/// to go. Half of them may come at once, as when a region fills up, the others over that time. For less
/// than 20 it is closed: no limiter is as slow.
pub fn budget(room: u32) -> LimitWord {
    if room < 20 {
        return LimitWord::CLOSED;
    }
    let half = room / 2;
    let life = (DISPLACED_LIFE << COARSE_BITS) * LimitWord::PER_NANOSECOND;
    LimitWord::new(life.div_ceil(u64::from(half)), half)
}
