//! A look at the counters and limits of groups, in the pinned maps.

use std::time::Instant;

use lb_common::abi::{counter::GroupCounter, meter::LimitWord};
use lb_daemon::dataplane::PinnedMaps;

use crate::{failure::Failure, names::Names, pinned};

/// What the maps say at one moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// By pool, nearest region first.
    pub(super) groups: Vec<Group>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) pool: String,
    pub(super) region: String,
    /// Index of its meter: another one counts from 0 again.
    pub(super) meter: u32,
    pub(super) limit: LimitWord,
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
                    meter: group.meter,
                    limit: LimitWord(limit),
                    counters: counters.map_err(|error| pinned::failure(&error))?,
                });
            }
        }
        Ok(Self { at, groups })
    }
}
