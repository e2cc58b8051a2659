use lb_common::abi::limiter::NO_LIMITER;

use super::{Reconciler, words::reading_members};
use lb_maps::MapsError;
use lb_model::capacity::GroupReading;

impl Reconciler {
    /// The groups of each pool, nearest first, with their counters. Groups that no plan has described yet are
    /// left out.
    pub fn readings(&self) -> Result<Vec<GroupReading>, MapsError> {
        let mut readings = Vec::new();
        for (&pool, published) in &self.published.pools {
            let groups =
                published.current.groups().iter().filter_map(|at| self.published.groups.get(at));
            for group in groups.filter(|group| group.group.limiter != NO_LIMITER) {
                let Some(terms) = group.terms else { continue };
                readings.push(GroupReading {
                    pool,
                    region: group.group.region,
                    settings: terms.settings,
                    balancers: terms.balancers,
                    members: reading_members(&self.maps, group),
                    limit: self.maps.limit(group.group.limiter),
                    counters: self.maps.group_connections(group.group.limiter)?,
                });
            }
        }
        Ok(readings)
    }
}
