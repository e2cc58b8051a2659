//! Regions, with what is asked of them and what they take, as messages.

use lb_common::abi::counter::GroupCounter;
use spillway_proto::v1;

use super::message::duration;
use crate::{
    capacity::{self, Capacity, Rates},
    command::{RegionStatus, Regions},
};

impl From<&Regions> for v1::RegionsResponse {
    fn from(regions: &Regions) -> Self {
        Self {
            regions: regions.regions.iter().map(Into::into).collect(),
            window: regions.window.map(duration),
            balancers: regions.balancers.get(),
        }
    }
}

impl From<&RegionStatus> for v1::RegionStatus {
    fn from(status: &RegionStatus) -> Self {
        let reading = &status.reading;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            pool: status.pool.to_string(),
            region: status.region.to_string(),
            configured_per_second: per_second(reading.configured()),
            scaler: reading.settings.scaler.share(),
            capacity_per_second: per_second(reading.capacity()),
            limit_per_second: capacity::per_second(reading.limit),
            backends_up: count(status.backends_up()),
            backends: count(reading.members.len()),
            backend_rate_per_second: reading.backend_rate(),
            counters: Some(counters(&reading.counters)),
            rates: status.rates.as_ref().map(rates),
            utilisation: status.utilisation(),
            missing_backends: status.missing_backends(),
            out_of_home: status.out_of_home,
        }
    }
}

/// `None` where it is unlimited.
fn per_second(capacity: Capacity) -> Option<f64> {
    match capacity {
        Capacity::Unlimited => None,
        Capacity::PerSecond(per_second) => Some(per_second),
        Capacity::Closed => Some(0.0),
    }
}

fn counters(counted: &GroupCounter) -> v1::RegionCounters {
    let GroupCounter { offered, admitted, spilled_in, spilled_out, refused, overrun } = *counted;
    v1::RegionCounters { offered, admitted, spilled_in, spilled_out, refused, overrun }
}

fn rates(rates: &Rates) -> v1::RegionRates {
    let Rates { offered, admitted, spilled_in, spilled_out, refused, overrun } = *rates;
    v1::RegionRates { offered, admitted, spilled_in, spilled_out, refused, overrun }
}
