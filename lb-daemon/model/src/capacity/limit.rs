use std::num::NonZeroU32;

use lb_common::abi::{
    clock::{DISPLACED_LIFE, Nanoseconds},
    limiter::LimitWord,
};

use super::Capacity;
use crate::Rate;

/// Connections that may come at once, at least.
const LEAST_BURST: f64 = 10.0;
/// Time of the limit that may come at once, where that is more, seconds.
const BURST_SECONDS: f64 = 0.1;
const NANOSECONDS: f64 = 1e9;

/// What of every capacity is one balancer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Balancers that share the capacities.
    pub balancers: NonZeroU32,
    /// Steps that the packet path's clock goes in.
    pub tick: Nanoseconds,
}

impl Share {
    /// This balancer's limit of a group.
    pub fn group_limit(self, capacity: Capacity) -> LimitWord {
        match capacity {
            Capacity::Unlimited => LimitWord::UNLIMITED,
            Capacity::Closed => LimitWord::CLOSED,
            Capacity::PerSecond(per_second) => self.limit(per_second),
        }
    }

    /// This balancer's limit of a member.
    pub fn member_limit(self, rate: Rate) -> LimitWord {
        self.limit(rate.per_second())
    }

    fn limit(self, per_second: f64) -> LimitWord {
        let own = per_second / f64::from(self.balancers.get());
        let second = NANOSECONDS * LimitWord::PER_NANOSECOND as f64;
        // Rounded up, so that never more than the share is admitted.
        let interval = (second / own).ceil();
        // The clock may be a tick behind, in which a burst later a tick's worth more could come.
        let unseen = own * self.tick as f64 / NANOSECONDS;
        let burst = LEAST_BURST.max(own * BURST_SECONDS) - unseen;
        let parts = (burst * f64::from(LimitWord::PER_CONNECTION)).floor();
        LimitWord::in_parts(interval as u64, parts.max(0.0) as u32)
    }
}

/// Whether a limit admits less than another.
pub fn is_lower(limit: LimitWord, than: LimitWord) -> bool {
    let rank = |limit: LimitWord| match limit {
        _ if limit.is_closed() => (2, 0),
        _ if limit.is_unlimited() => (0, 0),
        _ => (1, limit.interval()),
    };
    rank(limit) > rank(than)
}

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
