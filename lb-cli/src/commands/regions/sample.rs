//! Samples of the counters and limits of groups, and the rows that two samples make.

use std::time::{Duration, Instant};

use lb_common::abi::{counter::GroupCounter, limiter::LimitWord};
use lb_inspect::names::Names;
use lb_maps::PinnedMaps;
use lb_model::capacity::{self, Connections, Rates};
use serde::Serialize;
use spillway_proto::v1;

use crate::{failure::Failure, pinned};

/// The daemon's answer, or why there is none.
pub(super) type DaemonAnswer = Result<v1::RegionsResponse, String>;

#[derive(Serialize)]
pub(super) struct RegionsReport {
    /// Time between the two samples; `null`: there is one sample, and totals instead of rates.
    pub(super) interval_seconds: Option<f64>,
    /// Why the daemon does not answer; `null`: it does.
    pub(super) daemon: Option<String>,
    /// Balancers that share the capacities, as configured; `null`: the daemon does not answer.
    pub(super) balancers: Option<u32>,
    pub(super) pools: Vec<PoolRows>,
}

#[derive(Serialize)]
pub(super) struct PoolRows {
    pub(super) pool: String,
    /// In the order in which the pool uses them.
    pub(super) regions: Vec<RegionRow>,
}

/// A region of a pool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RegionRow {
    pub(super) region: String,
    /// Only the daemon knows it; `null`: it does not answer.
    pub(super) capacity: Option<Capacity>,
    /// This balancer's part of the capacity, 0 to 1. Only the daemon knows it; `null`: it does not answer.
    pub(super) portion: Option<f64>,
    /// This balancer's share of the capacity; `null`: no limit.
    pub(super) limit_per_second: Option<f64>,
    /// Since the region was created.
    pub(super) totals: Connections<u64>,
    /// Between two samples; `null`: this is the first.
    pub(super) per_second: Option<Rates>,
    /// Admitted as a share of the limit; `null`: no rates, or no limit above 0.
    pub(super) utilisation: Option<f64>,
    /// How many more backends with the mean max_connection_rate are needed; `null`: unknown.
    pub(super) missing_backends: Option<u32>,
}

/// The capacity of a region, over all balancers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::commands) struct Capacity {
    /// With all backends healthy and a scaler of 1; `null`: unlimited.
    pub(super) configured_per_second: Option<f64>,
    pub(super) scaler: f64,
    /// Now; `null`: unlimited.
    pub(super) per_second: Option<f64>,
    pub(super) backends_up: u32,
    pub(super) backends: u32,
    /// Mean max_connection_rate of its backends; `null`: none has one.
    pub(super) backend_rate_per_second: Option<f64>,
    /// Whether it is marked out: out of service for so long that it is used last.
    pub(super) marked_out: bool,
}

impl RegionsReport {
    /// Rates between two samples, or the totals of one.
    pub(super) fn new(now: &Sample, before: Option<&Sample>, answer: &DaemonAnswer) -> Self {
        let elapsed = before.map(|before| now.at.duration_since(before.at));
        let mut pools: Vec<PoolRows> = Vec::new();
        for group in &now.groups {
            let (name, region) = (&group.pool, &group.region);
            let mut earlier = before.iter().flat_map(|before| &before.groups);
            let earlier = earlier.find(|g| g.pool == *name && g.region == *region).zip(elapsed);
            let status = answer.as_ref().ok().and_then(|answer| {
                let mut regions = answer.regions.iter();
                regions.find(|r| r.pool == *name && r.region == *region)
            });
            let region = RegionRow::new(group, earlier, status);
            match pools.last_mut().filter(|pool| pool.pool == *name) {
                Some(pool) => pool.regions.push(region),
                None => pools.push(PoolRows { pool: name.clone(), regions: vec![region] }),
            }
        }
        Self {
            interval_seconds: elapsed.map(|elapsed| elapsed.as_secs_f64()),
            daemon: answer.as_ref().err().cloned(),
            balancers: answer
                .as_ref()
                .ok()
                .map(|answer| answer.balancers)
                .filter(|number| *number != 0),
            pools,
        }
    }
}

impl RegionRow {
    /// A row from the last sample, the one before and the daemon's status of the region.
    pub(super) fn new(
        now: &GroupSample,
        before: Option<(&GroupSample, Duration)>,
        status: Option<&v1::GroupStatus>,
    ) -> Self {
        let same = before.filter(|(before, _)| before.limiter == now.limiter);
        let rates = same
            .and_then(|(before, elapsed)| Rates::between(&before.counters, &now.counters, elapsed));
        let gain = status.and_then(|status| {
            Some(status.backend_rate_per_second? * status.scaler * status.portion)
        });
        Self {
            region: now.region.clone(),
            capacity: status.map(Capacity::new),
            portion: status.map(|status| status.portion),
            limit_per_second: now.limit,
            totals: now.counters.into(),
            utilisation: rates.and_then(|rates| capacity::utilisation(&rates, now.limit)),
            missing_backends: rates
                .and_then(|rates| capacity::missing_backends(&rates, now.limit, gain)),
            per_second: rates,
        }
    }

    /// This balancer's portion, if it is another one than that of each of so many balancers, as in a fleet.
    pub(super) fn own_portion(&self, balancers: Option<u32>) -> Option<f64> {
        let equal = 1.0 / f64::from(balancers?);
        // The daemon may have rounded.
        self.portion.filter(|portion| (portion - equal).abs() > 1e-9)
    }

    /// Rates or totals; `None`: there are no rates yet.
    pub(super) fn shown(&self, rates: bool) -> Option<Rates> {
        if rates { self.per_second } else { Some(self.totals.map(|count| count as f64)) }
    }
}

impl Capacity {
    pub(in crate::commands) fn new(status: &v1::GroupStatus) -> Self {
        Self {
            configured_per_second: status.configured_per_second,
            scaler: status.scaler,
            per_second: status.capacity_per_second,
            backends_up: status.backends_up,
            backends: status.backends,
            backend_rate_per_second: status.backend_rate_per_second,
            marked_out: status.marked_out,
        }
    }
}

/// Counters and limits at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    /// By pool, nearest region first.
    pub(super) groups: Vec<GroupSample>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupSample {
    pub(super) pool: String,
    pub(super) region: String,
    /// Index of its limiter: a new limiter counts from 0 again. `None`: the daemon does not report it.
    pub(super) limiter: Option<u32>,
    /// Limit a second; `None`: no limit.
    pub(super) limit: Option<f64>,
    pub(super) counters: GroupCounter,
}

impl Sample {
    /// Reads the groups of one pool, or of all.
    ///
    /// # Errors
    /// The maps cannot be read, or no pool has the name.
    pub(super) fn read(
        maps: &PinnedMaps,
        names: &Names,
        pool: Option<&str>,
    ) -> Result<Self, Failure> {
        let (at, mut groups) = (Instant::now(), Vec::new());
        for index in pinned::pools(maps, names, pool)? {
            let name = names.pool(index);
            let members = maps.pool_members(index).map_err(|error| pinned::maps_failure(&error))?;
            for (_, group) in members.into_iter().flat_map(|members| members.groups) {
                let limit = maps.limiter(group.limiter).map_or(0, |limiter| limiter.limit);
                let counters = maps.group_connections(group.limiter);
                groups.push(GroupSample {
                    pool: name.clone(),
                    region: names.region(group.region),
                    limiter: Some(group.limiter),
                    limit: capacity::per_second(LimitWord(limit)),
                    counters: counters.map_err(|error| pinned::maps_failure(&error))?,
                });
            }
        }
        Ok(Self { at, groups })
    }

    /// The counters and limits in a daemon's answer.
    pub(super) fn from_response(at: Instant, answer: &v1::RegionsResponse) -> Self {
        let group = |region: &v1::GroupStatus| GroupSample {
            pool: region.pool.clone(),
            region: region.region.clone(),
            limiter: None,
            limit: region.limit_per_second,
            counters: counters(region.counters.unwrap_or_default()),
        };
        Self { at, groups: answer.regions.iter().map(group).collect() }
    }
}

fn counters(counted: v1::GroupCounters) -> GroupCounter {
    let v1::GroupCounters { offered, admitted, overflow_in, overflow_out, refused, over_capacity } =
        counted;
    GroupCounter { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
}
