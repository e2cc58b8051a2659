//! Regions, with what is asked of them and what they take, as messages.

use std::num::NonZeroU32;

use spillway_proto::v1;

use lb_config::message::duration;
use lb_control::command::{GroupStatus, Regions};
use lb_inspect::message::counters;
use lb_model::capacity::{self, Rates};

pub(in crate::api) fn regions(regions: &Regions) -> v1::RegionsResponse {
    v1::RegionsResponse {
        regions: regions.regions.iter().map(region).collect(),
        window: regions.window.map(duration),
        balancers: regions.balancers.map_or(0, NonZeroU32::get),
    }
}

pub(in crate::api) fn region(status: &GroupStatus) -> v1::GroupStatus {
    let reading = &status.reading;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    v1::GroupStatus {
        pool: status.pool.to_string(),
        region: status.region.to_string(),
        configured_per_second: reading.configured().per_second(),
        scaler: reading.settings.effective_scaler().share(),
        capacity_per_second: reading.capacity().per_second(),
        limit_per_second: capacity::per_second(reading.limit),
        backends_up: count(status.backends_up()),
        backends: count(reading.members.len()),
        backend_rate_per_second: reading.backend_rate(),
        counters: Some(counters(reading.counters.into())),
        rates: status.rates.map(rates),
        utilisation: status.utilisation(),
        missing_backends: status.missing_backends(),
        marked_out: status.marked_out,
    }
}

pub(in crate::api) fn rates(rates: Rates) -> v1::GroupRates {
    let Rates { offered, admitted, overflow_in, overflow_out, refused, over_capacity } = rates;
    v1::GroupRates { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
}
