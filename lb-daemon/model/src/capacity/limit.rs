use std::num::NonZeroU32;

use lb_common::abi::{clock::Nanoseconds, limiter::LimitWord};

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
    pub fn of_group(self, capacity: Capacity) -> LimitWord {
        match capacity {
            Capacity::Unlimited => LimitWord::UNLIMITED,
            Capacity::Closed => LimitWord::CLOSED,
            Capacity::PerSecond(per_second) => self.of(per_second),
        }
    }

    /// This balancer's limit of a member.
    pub fn of_member(self, rate: Rate) -> LimitWord {
        self.of(rate.per_second())
    }

    fn of(self, per_second: f64) -> LimitWord {
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
