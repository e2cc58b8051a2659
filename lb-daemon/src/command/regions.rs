use std::{num::NonZeroU32, time::Duration};

use crate::{
    capacity::{self, Rates, Reading},
    model::Name,
};

/// Demand against capacity, region by region.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Time that the rates are of, about the last second; `None`: the daemon has not looked twice yet.
    pub window: Option<Duration>,
    /// Balancers that share the capacities.
    pub balancers: NonZeroU32,
    /// By pool, and within a pool in the order in which they are asked.
    pub regions: Vec<RegionStatus>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionStatus {
    /// Pool.
    pub pool: Name,
    /// Region.
    pub region: Name,
    /// How the packet path has it.
    pub reading: Reading,
    /// Whether it was out of service for longer than the settle time, and so is asked last.
    pub out_of_home: bool,
    /// What was counted in the window, a second; `None`: the group is newer than that.
    pub rates: Option<Rates>,
}

impl RegionStatus {
    /// Share of the limit that was used in the window; `None`: that is not known, or no number.
    pub fn utilisation(&self) -> Option<f64> {
        capacity::utilisation(&self.rates?, self.reading.limit)
    }

    /// Backends that are missing for the demand in the window; `None`: that is not known.
    pub fn missing_backends(&self) -> Option<u32> {
        capacity::missing_backends(&self.rates?, self.reading.limit, self.reading.gain())
    }
}
