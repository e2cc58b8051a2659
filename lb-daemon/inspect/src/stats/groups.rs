use serde::Serialize;

use crate::names::Names;
use lb_maps::{MapsError, PinnedMaps};
use lb_model::capacity::Connections;

/// New connections of a group: a pool's backends in one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupStats {
    /// Pool.
    pub pool: String,
    /// Region.
    pub region: String,
    /// What was counted since the group was made.
    #[serde(flatten)]
    pub connections: Connections<u64>,
}

pub(super) fn groups(maps: &PinnedMaps, names: &Names) -> Result<Vec<GroupStats>, MapsError> {
    let mut groups = Vec::new();
    for pool in names.pools(maps) {
        let name = names.pool(pool);
        for (_, group) in maps.pool_members(pool)?.unwrap_or_default().groups {
            groups.push(GroupStats {
                pool: name.clone(),
                region: names.region(group.region),
                connections: maps.group_connections(group.limiter)?.into(),
            });
        }
    }
    Ok(groups)
}
