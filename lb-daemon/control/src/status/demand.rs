//! Demand against capacity of each group, from counters that are read every second.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use lb_common::abi::counter::GroupCounter;

use super::{Known, StatusLoop};
use crate::command::{Event, GroupStatus, GroupsEvent, Offer, Refusal, Regions};
use lb_base::error_chain;
use lb_model::{
    Name,
    capacity::{GroupReading, Rates},
};
use lb_publish::reconcile::PathReader;

/// Indices of pool and region.
type GroupKey = (u32, u32);

/// Rates of groups, from the last two readings of their counters.
#[derive(Debug, Default)]
pub(super) struct Demand {
    last: Option<(Instant, HashMap<GroupKey, GroupCounter>)>,
    /// Time between the last two readings.
    window: Option<Duration>,
    rates: HashMap<GroupKey, Rates>,
}

impl Demand {
    pub(super) fn observe(&mut self, readings: &[GroupReading], now: Instant) {
        let counters: HashMap<_, _> = readings.iter().map(|r| (key(r), r.counters)).collect();
        self.rates.clear();
        self.window = self.last.as_ref().map(|(before, _)| now.duration_since(*before));
        if let (Some((_, before)), Some(elapsed)) = (&self.last, self.window) {
            let between = |(key, after): (&GroupKey, &GroupCounter)| {
                Some((*key, Rates::between(before.get(key)?, after, elapsed)?))
            };
            self.rates = counters.iter().filter_map(between).collect();
        }
        self.last = Some((now, counters));
    }

    /// The counters could not be read: the rates are unknown until two more readings.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Time over which the rates were measured.
    pub(super) fn window(&self) -> Option<Duration> {
        self.window
    }

    /// New connections a second that the group of a pool and a region admitted, by their indices.
    pub(super) fn admitted(&self, group: GroupKey) -> Option<f64> {
        self.rates.get(&group).map(|rates| rates.admitted)
    }

    /// Rates per second; `None` if the group is newer than the window.
    pub(super) fn rates(&self, reading: &GroupReading) -> Option<Rates> {
        self.rates.get(&key(reading)).copied()
    }
}

fn key(reading: &GroupReading) -> GroupKey {
    (reading.pool, reading.region)
}

impl<R: PathReader> StatusLoop<R> {
    /// Reads the counters, once a second.
    pub(super) fn read_counters(&mut self) {
        match self.path.readings() {
            Ok(readings) => {
                if let Some(event) = self.loads.observe(&self.known, readings) {
                    self.announcements.announce(Event::Groups(event));
                }
                self.check_weights();
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain::message(&error),
                    "the counters of groups cannot be read"
                );
                self.loads.demand.reset();
            }
        }
    }

    /// The groups of one pool, or of all.
    pub(super) fn regions(&self, pool: Option<&str>) -> Result<Regions, Refusal> {
        let configuration = self.known.configuration();
        pool.map(|name| self.known.configured_pool(name)).transpose()?;
        let readings = self.path.readings().map_err(Refusal::Unreadable)?;
        let mut regions = self.loads.named(&self.known, readings);
        regions.retain(|region| pool.is_none_or(|pool| region.pool.as_str() == pool));
        // Indices of pools are in no order; the order of regions within a pool must stay.
        regions.sort_by(|one, other| one.pool.cmp(&other.pool));
        let balancers =
            self.known.in_force.require_usable().is_ok().then_some(configuration.balancers);
        Ok(Regions { window: self.loads.demand.window(), balancers, regions })
    }
}

/// What each group is asked for, and what it could take.
#[derive(Debug, Default)]
pub(super) struct GroupLoads {
    pub(super) demand: Demand,
    /// What each group could take at the last reading; `None` before the first.
    offers: Option<BTreeMap<RegionKey, Offer>>,
    overflows: Overflows,
}

impl GroupLoads {
    /// Returns the groups that are new or can take more or less than at the last reading.
    fn observe(&mut self, known: &Known, readings: Vec<GroupReading>) -> Option<GroupsEvent> {
        self.demand.observe(&readings, Instant::now());
        let regions = self.named(known, readings);
        self.log_overflows(known, &regions);
        let offers =
            regions.iter().map(|each| ((each.pool.clone(), each.region.clone()), each.offer()));
        let offers: BTreeMap<_, _> = offers.collect();
        let previous = self.offers.as_ref();
        let removed = previous.into_iter().flat_map(BTreeMap::keys);
        let removed: Vec<_> = removed.filter(|key| !offers.contains_key(key)).cloned().collect();
        let previous = self.offers.replace(offers)?;
        let differs = |it: &GroupStatus| {
            previous.get(&(it.pool.clone(), it.region.clone())) != Some(&it.offer())
        };
        let changed: Vec<_> = regions.into_iter().filter(differs).collect();
        let is_news = !changed.is_empty() || !removed.is_empty();
        is_news.then_some(GroupsEvent { changed, removed })
    }

    fn log_overflows(&mut self, known: &Known, regions: &[GroupStatus]) {
        let sends_on = |region: &&GroupStatus| {
            region.rates.is_some_and(|rates| rates.overflow_out + rates.refused > 0.0)
        };
        let full = regions.iter().filter(sends_on);
        let full = full.map(|region| (region.pool.clone(), region.region.clone()));
        for ((pool, region), overflows) in self.overflows.update(Instant::now(), full) {
            known.log_region(&pool, &region, overflows);
        }
    }

    /// Adds names to readings. Readings of groups without a name, which are being removed, are left out.
    fn named(&self, known: &Known, readings: Vec<GroupReading>) -> Vec<GroupStatus> {
        let pools: HashMap<u32, &Name> =
            known.in_force.ids.pools().map(|(name, at)| (at, name)).collect();
        let regions: HashMap<u32, &Name> =
            known.in_force.ids.regions().map(|(name, at)| (at, name)).collect();
        let named = readings.into_iter().filter_map(|reading| {
            let (pool, region) = (*pools.get(&reading.pool)?, *regions.get(&reading.region)?);
            let settings = known.overrides.overrides.group(pool, region).apply_to(reading.settings);
            let portion = known.portions.of_fleet(pool, region).unwrap_or(reading.portion);
            let reading = GroupReading { settings, portion, ..reading };
            Some(GroupStatus {
                pool: pool.clone(),
                region: region.clone(),
                marked_out: known.in_force.mark_outs.is_region_out(pool, region),
                rates: self.demand.rates(&reading),
                reading,
            })
        });
        named.collect()
    }
}

/// How long a region must take all connections before that is logged. Clients decide how often a region is
/// full, and must not fill the log.
const QUIET: Duration = Duration::from_secs(60);

type RegionKey = (Name, Name);

/// Regions whose connections recently overflowed or were refused.
#[derive(Debug, Default)]
pub(super) struct Overflows(BTreeMap<RegionKey, Instant>);

impl Overflows {
    /// Updates the set, and returns what changed: `true` if overflow began, `false` if it is over. Each
    /// region changes at most twice a minute.
    pub(super) fn update(
        &mut self,
        now: Instant,
        full: impl Iterator<Item = RegionKey>,
    ) -> Vec<(RegionKey, bool)> {
        let mut news = Vec::new();
        for key in full {
            if self.0.insert(key.clone(), now).is_none() {
                news.push((key, true));
            }
        }
        let over: Vec<_> = self.0.extract_if(.., |_, last| now - *last >= QUIET).collect();
        news.extend(over.into_iter().map(|(key, _)| (key, false)));
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_full_now_and_then_is_logged_once() {
        let key = |name: &str| (Name::new("web").unwrap(), Name::new(name).unwrap());
        let (mut overflows, start) = (Overflows::default(), Instant::now());
        let mut at = |second: u64, full: &[&str]| {
            let full: Vec<_> = full.iter().map(|name| key(name)).collect();
            overflows.update(start + Duration::from_secs(second), full.into_iter())
        };
        assert_eq!(at(0, &[]), []);
        assert_eq!(at(1, &["eu"]), [(key("eu"), true)]);
        assert_eq!(at(2, &["eu", "us"]), [(key("us"), true)]);
        for second in 3..40 {
            let full: &[&str] = if second % 2 == 0 { &["eu"] } else { &[] };
            assert_eq!(at(second, full), [], "{second}");
        }
        assert_eq!(at(61, &[]), []);
        assert_eq!(at(62, &[]), [(key("us"), false)]);
        assert_eq!(at(97, &[]), []);
        assert_eq!(at(98, &[]), [(key("eu"), false)]);
        assert_eq!(at(99, &["eu"]), [(key("eu"), true)]);
    }
}
