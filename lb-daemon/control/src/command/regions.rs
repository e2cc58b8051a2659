use std::{num::NonZeroU32, time::Duration};

use lb_common::abi::limiter::LimitWord;

use lb_model::{
    Name,
    capacity::{self, Capacity, GroupReading, Rates},
};

/// Demand against capacity, region by region.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Time that the rates are of, about the last second; `None`: the daemon has not looked twice yet.
    pub window: Option<Duration>,
    /// Balancers that share the capacities; `None`: the stored configuration cannot be used.
    pub balancers: Option<NonZeroU32>,
    /// By pool, and within a pool in the order in which they are asked.
    pub regions: Vec<GroupStatus>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupStatus {
    /// Pool.
    pub pool: Name,
    /// Region.
    pub region: Name,
    /// How the packet path has it.
    pub reading: GroupReading,
    /// Whether it was out of service for longer than the settle time, and so is asked last.
    pub marked_out: bool,
    /// What was counted in the window, a second; `None`: the group is newer than that.
    pub rates: Option<Rates>,
}

/// What a region can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Its capacity, over all balancers.
    pub capacity: Capacity,
    /// This balancer's limit.
    pub limit: LimitWord,
    /// Backends that can have new connections.
    pub backends_up: usize,
    /// Whether it is asked last.
    pub marked_out: bool,
}

impl GroupStatus {
    /// What it can take now.
    pub fn offer(&self) -> Offer {
        Offer {
            capacity: self.reading.capacity(),
            limit: self.reading.limit,
            backends_up: self.backends_up(),
            marked_out: self.marked_out,
        }
    }

    /// Backends that can have new connections: healthy, of some weight.
    pub fn backends_up(&self) -> usize {
        self.reading.members.iter().filter(|member| member.weighted && member.healthy).count()
    }

    /// Share of the limit that was used in the window; `None`: that is not known, or no number.
    pub fn utilisation(&self) -> Option<f64> {
        capacity::utilisation(&self.rates?, self.limit())
    }

    /// Backends that are missing for the demand in the window; `None`: that is not known.
    pub fn missing_backends(&self) -> Option<u32> {
        capacity::missing_backends(&self.rates?, self.limit(), self.reading.gain())
    }

    /// This balancer's limit a second; `None`: there is none.
    fn limit(&self) -> Option<f64> {
        capacity::per_second(self.reading.limit)
    }
}
