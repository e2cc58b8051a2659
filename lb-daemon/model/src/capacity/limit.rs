use lb_common::abi::{clock::Nanoseconds, limiter::LimitWord};

use super::{Capacity, Portion};
use crate::Rate;

/// Smallest burst, connections.
const LEAST_BURST: f64 = 10.0;
/// Larger limits allow a burst of what they admit in this time, seconds.
const BURST_SECONDS: f64 = 0.1;
const NANOSECONDS: f64 = 1e9;

/// One balancer's share of a group's capacity, and of the limits of the group's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub portion: Portion,
    /// Resolution of the packet path's clock.
    pub tick: Nanoseconds,
}

impl Share {
    /// This balancer's limit of a group. A limit below what the slowest limiter can do is closed: a faster one would admit
    /// more than the share. An unlimited capacity stays unlimited, whatever the share.
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
        let own = per_second * self.portion.fraction();
        if own <= 0.0 {
            return LimitWord::CLOSED;
        }
        let second = NANOSECONDS * LimitWord::PER_NANOSECOND as f64;
        // Rounded up, so that never more than the share is admitted.
        let interval = (second / own).ceil();
        // The clock may be a tick late, so one tick's worth of connections could follow a full burst.
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
