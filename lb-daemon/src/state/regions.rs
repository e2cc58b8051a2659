//! Demand against capacity, region by region.

use std::{collections::HashMap, time::Instant};

use super::{PacketPath, State};
use crate::{
    causes,
    command::{Refusal, RegionStatus, Regions},
    model::Name,
};

impl<P: PacketPath> State<P> {
    /// Looks at the counters: once a second.
    pub(super) fn look(&mut self) {
        match self.path.readings() {
            Ok(readings) => self.demand.look(&readings, Instant::now()),
            Err(error) => {
                tracing::warn!(error = causes::of(&error), "the counters of groups");
                self.demand.lose();
            }
        }
    }

    /// The regions of one pool, or of all.
    pub(super) fn regions(&self, pool: Option<&str>) -> Result<Regions, Refusal> {
        let configuration = self.configuration();
        if let Some(pool) = pool
            && !configuration.pools.keys().any(|name| name.as_str() == pool)
        {
            return Err(Refusal::NoPool(pool.to_owned()));
        }
        let pools: HashMap<u32, &Name> = self.ids.pools().map(|(name, at)| (at, name)).collect();
        let regions: HashMap<u32, &Name> =
            self.ids.regions().map(|(name, at)| (at, name)).collect();
        let readings = self.path.readings().map_err(Refusal::Unreadable)?;
        let named = readings.into_iter().filter_map(|reading| {
            let name = *pools.get(&reading.pool)?;
            let wanted = pool.is_none_or(|pool| name.as_str() == pool);
            let region = *regions.get(&reading.region)?;
            let rates = self.demand.rates(&reading);
            wanted.then(|| RegionStatus {
                pool: name.clone(),
                region: region.clone(),
                reading,
                out_of_home: self.homes.absences.is_region_out(name, region),
                rates,
            })
        });
        let mut regions: Vec<_> = named.collect();
        // Numbers are given out in any order; within a pool the order of its regions stays.
        regions.sort_by(|one, other| one.pool.cmp(&other.pool));
        Ok(Regions { window: self.demand.window(), balancers: configuration.balancers, regions })
    }
}
