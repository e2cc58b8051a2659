//! Demand against capacity, region by region.

use std::{collections::HashMap, time::Instant};

use super::{PacketPath, State};
use crate::command::{Event, GroupStatus, Refusal, Regions};
use lb_base::error_chain;
use lb_model::{Name, capacity::GroupReading};

impl<P: PacketPath> State<P> {
    /// Looks at the counters: once a second.
    pub(super) fn look(&mut self) {
        match self.path.readings() {
            Ok(readings) => {
                self.demand.look(&readings, Instant::now());
                self.announce_regions(readings);
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain::message(&error),
                    "the counters of groups cannot be read"
                );
                self.demand.lose();
            }
        }
    }

    /// The regions of one pool, or of all.
    pub(super) fn regions(&self, pool: Option<&str>) -> Result<Regions, Refusal> {
        let configuration = self.configuration();
        if pool.is_some() {
            self.is_known()?;
        }
        if let Some(pool) = pool
            && !configuration.pools.keys().any(|name| name.as_str() == pool)
        {
            return Err(Refusal::NoPool(pool.to_owned()));
        }
        let readings = self.path.readings().map_err(Refusal::Unreadable)?;
        let mut regions = self.named(readings);
        regions.retain(|region| pool.is_none_or(|pool| region.pool.as_str() == pool));
        // Numbers are given out in any order; within a pool the order of its regions stays.
        regions.sort_by(|one, other| one.pool.cmp(&other.pool));
        let balancers = self.is_known().is_ok().then_some(configuration.balancers);
        Ok(Regions { window: self.demand.window(), balancers, regions })
    }

    /// Tells watchers of regions that are new or can take more or less than at the last look.
    fn announce_regions(&mut self, readings: Vec<GroupReading>) {
        let regions = self.named(readings);
        self.log_overflows(&regions);
        let offers =
            regions.iter().map(|each| ((each.pool.clone(), each.region.clone()), each.offer()));
        let previous = self.offers.replace(offers.collect());
        let Some(previous) = previous else { return };
        for region in regions {
            let key = (region.pool.clone(), region.region.clone());
            if previous.get(&key) != Some(&region.offer()) {
                self.announce(Event::Region(region));
            }
        }
    }

    fn log_overflows(&mut self, regions: &[GroupStatus]) {
        let sends_on = |region: &&GroupStatus| {
            region.rates.is_some_and(|rates| rates.overflow_out + rates.refused > 0.0)
        };
        let full = regions.iter().filter(sends_on);
        let full = full.map(|region| (region.pool.clone(), region.region.clone()));
        for ((pool, region), overflows) in self.overflows.look(Instant::now(), full) {
            self.log_region(&pool, &region, overflows);
        }
    }

    /// Readings with the names of what they are of; those of what nobody names any more are left out.
    fn named(&self, readings: Vec<GroupReading>) -> Vec<GroupStatus> {
        let pools: HashMap<u32, &Name> = self.ids.pools().map(|(name, at)| (at, name)).collect();
        let regions: HashMap<u32, &Name> =
            self.ids.regions().map(|(name, at)| (at, name)).collect();
        let named = readings.into_iter().filter_map(|reading| {
            let (pool, region) = (*pools.get(&reading.pool)?, *regions.get(&reading.region)?);
            Some(GroupStatus {
                pool: pool.clone(),
                region: region.clone(),
                marked_out: self.homes.mark_outs.is_region_out(pool, region),
                rates: self.demand.rates(&reading),
                reading,
            })
        });
        named.collect()
    }
}
