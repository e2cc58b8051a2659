//! A look at the counters and limits of groups: in the pinned maps, or as the daemon tells them.

use std::time::Instant;

use lb_common::abi::{counter::GroupCounter, meter::LimitWord};
use lb_daemon::{capacity, dataplane::PinnedMaps};
use spillway_proto::v1;

use crate::{failure::Failure, names::Names, pinned};

/// What the maps say at one moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// By pool, nearest region first.
    pub(super) groups: Vec<Group>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) pool: String,
    pub(super) region: String,
    /// Index of its meter: another one counts from 0 again. `None`: the daemon does not tell it.
    pub(super) meter: Option<u32>,
    /// Limit a second; `None`: there is none.
    pub(super) limit: Option<f64>,
    pub(super) counters: GroupCounter,
}

impl Look {
    /// Looks at the groups of one pool, or of all.
    ///
    /// # Errors
    /// The maps cannot be read, or no pool has the name.
    pub(super) fn take(
        maps: &PinnedMaps,
        names: &Names,
        pool: Option<&str>,
    ) -> Result<Self, Failure> {
        let (at, mut groups) = (Instant::now(), Vec::new());
        for index in pinned::pools(maps, names, pool)? {
            let name = names.pool(index);
            let members = maps.pool_members(index).map_err(|error| pinned::failure(&error))?;
            for (_, group) in members.into_iter().flat_map(|members| members.groups) {
                let limit = maps.meter(group.meter).map_or(0, |meter| meter.limit);
                let counters = maps.group_connections(group.meter);
                groups.push(Group {
                    pool: name.clone(),
                    region: names.region(group.region),
                    meter: Some(group.meter),
                    limit: capacity::per_second(LimitWord(limit)),
                    counters: counters.map_err(|error| pinned::failure(&error))?,
                });
            }
        }
        Ok(Self { at, groups })
    }

    /// The look that the daemon took for an answer.
    pub(super) fn told(at: Instant, answer: &v1::RegionsResponse) -> Self {
        let group = |region: &v1::RegionStatus| Group {
            pool: region.pool.clone(),
            region: region.region.clone(),
            meter: None,
            limit: region.limit_per_second,
            counters: counters(region.counters.unwrap_or_default()),
        };
        Self { at, groups: answer.regions.iter().map(group).collect() }
    }
}

fn counters(counted: v1::RegionCounters) -> GroupCounter {
    let v1::RegionCounters { offered, admitted, spilled_in, spilled_out, refused, overrun } =
        counted;
    GroupCounter { offered, admitted, spilled_in, spilled_out, refused, overrun }
}
