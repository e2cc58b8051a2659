//! Regions, with what is asked of them and what they take, as messages.

use std::num::NonZeroU32;

use spillway_proto::v1;

use super::message::duration;
use crate::{
    capacity::{self, Connections, Rates},
    command::{RegionStatus, Regions},
};

impl From<&Regions> for v1::RegionsResponse {
    fn from(regions: &Regions) -> Self {
        Self {
            regions: regions.regions.iter().map(Into::into).collect(),
            window: regions.window.map(duration),
            balancers: regions.balancers.map_or(0, NonZeroU32::get),
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
            configured_per_second: reading.configured().per_second(),
            scaler: reading.settings.in_use().share(),
            capacity_per_second: reading.capacity().per_second(),
            limit_per_second: capacity::per_second(reading.limit),
            backends_up: count(status.backends_up()),
            backends: count(reading.members.len()),
            backend_rate_per_second: reading.backend_rate(),
            counters: Some(Connections::from(reading.counters).into()),
            rates: status.rates.map(Into::into),
            utilisation: status.utilisation(),
            missing_backends: status.missing_backends(),
            out_of_home: status.out_of_home,
        }
    }
}

impl From<Connections<u64>> for v1::RegionCounters {
    fn from(counted: Connections<u64>) -> Self {
        let Connections { offered, admitted, spilled_in, spilled_out, refused, overrun } = counted;
        Self { offered, admitted, spilled_in, spilled_out, refused, overrun }
    }
}

impl From<v1::RegionCounters> for Connections<u64> {
    fn from(counted: v1::RegionCounters) -> Self {
        let v1::RegionCounters { offered, admitted, spilled_in, spilled_out, refused, overrun } =
            counted;
        Self { offered, admitted, spilled_in, spilled_out, refused, overrun }
    }
}

impl From<Rates> for v1::RegionRates {
    fn from(rates: Rates) -> Self {
        let Rates { offered, admitted, spilled_in, spilled_out, refused, overrun } = rates;
        Self { offered, admitted, spilled_in, spilled_out, refused, overrun }
    }
}
