use lb_common::abi::counter::GroupCounter;
use serde::Serialize;

use crate::{
    dataplane::{MapsError, PinnedMaps},
    names::Names,
};

/// New connections of a group: a pool's backends in one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStats {
    /// Pool.
    pub pool: String,
    /// Region.
    pub region: String,
    /// Those it was asked for: the sum of admitted, spilled out and refused.
    pub offered: u64,
    /// Those it took.
    pub admitted: u64,
    /// Of those it took, the ones that a nearer group was asked for first.
    pub spilled_in: u64,
    /// Those that another group took.
    pub spilled_out: u64,
    /// Those that were dropped because every group was full, counted at the first one asked.
    pub refused: u64,
    /// Of those it took, the ones beyond its limit.
    pub overrun: u64,
}

pub(super) fn groups(maps: &PinnedMaps, names: &Names) -> Result<Vec<GroupStats>, MapsError> {
    let mut groups = Vec::new();
    for pool in names.pools(maps) {
        let name = names.pool(pool);
        for (_, group) in maps.pool_members(pool)?.unwrap_or_default().groups {
            let GroupCounter { offered, admitted, spilled_in, spilled_out, refused, overrun } =
                maps.group_connections(group.meter)?;
            let (pool, region) = (name.clone(), names.region(group.region));
            groups.push(GroupStats {
                pool,
                region,
                offered,
                admitted,
                spilled_in,
                spilled_out,
                refused,
                overrun,
            });
        }
    }
    Ok(groups)
}
