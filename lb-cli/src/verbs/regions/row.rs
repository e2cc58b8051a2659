//! One region: what was asked of it, and what it can take.

use std::time::Duration;

use lb_daemon::capacity::{self, Connections, Rates};
use serde::Serialize;
use spillway_proto::v1;

use super::look::Group;

/// A region of a pool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Region {
    pub(super) region: String,
    /// What only the daemon knows; `null`: it does not answer.
    pub(super) capacity: Option<Capacity>,
    /// This balancer's share of the capacity; `null`: no limit.
    pub(super) limit_per_second: Option<f64>,
    /// Since the region was made.
    pub(super) totals: Connections<u64>,
    /// Between two looks; `null`: this is the first.
    pub(super) per_second: Option<Rates>,
    /// Admitted as a share of the limit; `null`: no rates, or no limit above 0.
    pub(super) utilisation: Option<f64>,
    /// Backends of the mean max_connection_rate that are missing; `null`: unknown.
    pub(super) missing_backends: Option<u32>,
}

/// What a region can take, over all balancers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::verbs) struct Capacity {
    /// With everybody healthy and the scaler at 1; `null`: unlimited.
    pub(super) configured_per_second: Option<f64>,
    pub(super) scaler: f64,
    /// Now; `null`: unlimited.
    pub(super) per_second: Option<f64>,
    pub(super) backends_up: u32,
    pub(super) backends: u32,
    /// Mean max_connection_rate of its backends; `null`: none has one.
    pub(super) backend_rate_per_second: Option<f64>,
    /// All of it was out of service for so long that it is asked last.
    pub(super) out_of_home: bool,
}

impl Region {
    /// A region by its last look and the one before, and what the daemon says of it; capacities are
    /// shared by so many balancers; 0: not known.
    pub(super) fn new(
        now: &Group,
        before: Option<(&Group, Duration)>,
        told: Option<(&v1::RegionStatus, u32)>,
    ) -> Self {
        let same = before.filter(|(before, _)| before.meter == now.meter);
        let rates = same
            .and_then(|(before, elapsed)| Rates::between(&before.counters, &now.counters, elapsed));
        let gain = told.and_then(|(told, balancers)| {
            let share = (balancers != 0).then(|| told.scaler / f64::from(balancers))?;
            Some(told.backend_rate_per_second? * share)
        });
        Self {
            region: now.region.clone(),
            capacity: told.map(|(told, _)| Capacity::new(told)),
            limit_per_second: now.limit,
            totals: now.counters.into(),
            utilisation: rates.and_then(|rates| capacity::utilisation(&rates, now.limit)),
            missing_backends: rates
                .and_then(|rates| capacity::missing_backends(&rates, now.limit, gain)),
            per_second: rates,
        }
    }

    /// What is shown, rates or totals; `None`: it has no rates yet.
    pub(super) fn shown(&self, rates: bool) -> Option<Rates> {
        if rates { self.per_second } else { Some(self.totals.map(|count| count as f64)) }
    }
}

impl Capacity {
    pub(in crate::verbs) fn new(told: &v1::RegionStatus) -> Self {
        Self {
            configured_per_second: told.configured_per_second,
            scaler: told.scaler,
            per_second: told.capacity_per_second,
            backends_up: told.backends_up,
            backends: told.backends,
            backend_rate_per_second: told.backend_rate_per_second,
            out_of_home: told.out_of_home,
        }
    }
}
