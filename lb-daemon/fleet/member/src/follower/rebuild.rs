//! What home meant before the last changes, at a balancer whose maps do not know it.
//!
//! A balancer that joins, or lost its maps, gets flows that other balancers placed before the last changes. It first puts in
//! force the homes of then, and the present on top of it, so that its packet path keeps the previous home as that of the
//! others does. The time for which it is kept begins anew, so it is kept no shorter than theirs.
//!
//! Each pool has its own settle time, and a change within it restarts it, so pools may need the homes of different
//! generations: what is put in force first is put together of them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_control::state::MarkedOutByPool;
use lb_fleet::{
    documents::{Homes, WallTime},
    reader::{Snapshot, Versioned},
};
use lb_model::{Configuration, Name, Pool, remap::Settling};

use crate::commits;

/// A configuration, and when it came into force.
pub(super) type Since<T> = (WallTime, T);

/// The generations before the present one whose homes may still count, oldest first. `history` has the numbers of the fleet's
/// generations, and when they came into force.
pub(super) fn needed(
    history: &BTreeMap<u64, WallTime>,
    current: u64,
    present: &Configuration,
    now: WallTime,
) -> Vec<u64> {
    let longest = commits::settles(present);
    // One that is older than all changes that count is what the first of them replaced.
    let first = history.values().position(|at| at.age(now) < longest);
    let first = first.map_or(usize::MAX, |first| first.saturating_sub(1));
    history.keys().copied().skip(first).filter(|number| *number != current).collect()
}

/// The present configuration with the homes from before changes that other balancers still settle. `None`: there are none.
/// `past` is oldest first.
pub(super) fn previous(
    past: &[Since<Configuration>],
    present: Since<&Configuration>,
    now: WallTime,
) -> Option<Configuration> {
    let (since, present) = present;
    let all = || past.iter().map(|(at, it)| (*at, it)).chain([(since, present)]);
    let mut previous = present.clone();
    // The order of regions is that of all pools, so the longest of them counts.
    let regions: Vec<_> = all().map(|(at, it)| (at, Some(&it.regions))).collect();
    let regions = settling_from(&regions, |one, other| one == other, longest_settle(present), now);
    for (name, region) in regions.into_iter().flatten() {
        let is_there = |it: &&Name| present.regions.contains_key(*it);
        if let Some(previous) = previous.regions.get_mut(name) {
            previous.overflow_to = region.overflow_to.iter().filter(is_there).cloned().collect();
        }
    }
    let mut is_other = previous.regions != present.regions;
    for (name, pool) in &present.pools {
        let versions: Vec<_> =
            all().map(|(at, it)| (at, it.pools.get(name).map(Arc::as_ref))).collect();
        let before = settling_from(&versions, has_equal_homes, pool.settle_time, now);
        // Of a region that is gone no table can be made.
        let has_regions = |it: &&Pool| {
            let backends = it.backends.values().map(|backend| &backend.region);
            backends.chain(&it.preferred_regions).all(|it| present.regions.contains_key(it))
        };
        if let Some(before) = before.filter(has_regions)
            && let Some(pool) = previous.pool_mut(name)
        {
            pool.backends.clone_from(&before.backends);
            pool.preferred_regions.clone_from(&before.preferred_regions);
            pool.slots = before.slots;
            is_other = true;
        }
    }
    is_other.then_some(previous)
}

/// What there was before the first of the changes that have not settled by `now`, as [`Settling`] counts it. `versions` are oldest first.
fn settling_from<'v, T>(
    versions: &[Since<Option<&'v T>>],
    is_equal: impl Fn(&T, &T) -> bool,
    settle_time: Duration,
    now: WallTime,
) -> Option<&'v T> {
    // When it began, when it was last changed, and what was before.
    let mut remap: Option<(WallTime, WallTime, &'v T)> = None;
    let goes_on = |changed: WallTime, at: WallTime| changed.age(at) < settle_time;
    for pair in versions.windows(2) {
        let ((_, before), (at, after)) = (pair[0], pair[1]);
        remap = remap.filter(|(_, changed, _)| goes_on(*changed, at));
        // Nothing is open at what is new.
        let (Some(before), Some(after)) = (before, after) else {
            remap = None;
            continue;
        };
        if is_equal(before, after) {
            continue;
        }
        let is_taken_back = remap.is_some_and(|(.., first)| is_equal(first, after));
        // The change ends one that is overdue, and begins another one.
        let going_on = remap.filter(|(began, ..)| began.age(at) < settle_time * Settling::LONGEST);
        let (began, _, first) = going_on.unwrap_or((at, at, before));
        remap = (!is_taken_back).then_some((began, at, first));
    }
    remap.filter(|(_, changed, _)| goes_on(*changed, now)).map(|(.., first)| first)
}

fn has_equal_homes(one: &Pool, other: &Pool) -> bool {
    one.slots == other.slots
        && one.backends == other.backends
        && one.preferred_regions == other.preferred_regions
}

fn longest_settle(configuration: &Configuration) -> Duration {
    let settle = configuration.pools.values().map(|pool| pool.settle_time).max();
    settle.unwrap_or(Duration::ZERO)
}

/// What was marked out for a region before the last change that other balancers still settle. `None`: the same as now.
pub(super) fn previously_marked_out(
    snapshot: &Snapshot,
    configuration: &Configuration,
    region: Option<&Name>,
    now: WallTime,
) -> Option<MarkedOutByPool> {
    let settle = |pool: &Name| {
        let pool = configuration.pools.get(pool);
        pool.map_or_else(|| longest_settle(configuration), |pool| pool.settle_time)
    };
    let of_region = snapshot.homes.iter().filter(|((of, _), _)| Some(of) == region);
    let mut is_other = false;
    let shown = of_region.map(|((_, pool), it): (_, &Versioned<Homes>)| {
        let homes = &it.document.body;
        let is_recent = homes.since.age(now) < settle(pool);
        is_other |= is_recent;
        (pool.clone(), if is_recent { &homes.before } else { &homes.now }.clone())
    });
    let shown: MarkedOutByPool = shown.collect();
    is_other.then_some(shown)
}

/// What is marked out for a region now.
pub(super) fn present(snapshot: &Snapshot, region: Option<&Name>) -> Arc<MarkedOutByPool> {
    let of_region = snapshot.homes.iter().filter(|((of, _), _)| Some(of) == region);
    let now = of_region.map(|((_, pool), it)| (pool.clone(), it.document.body.now.clone()));
    Arc::new(now.collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use lb_model::{AdminState, Backend, Region};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn second(second: u64) -> WallTime {
        WallTime::from(UNIX_EPOCH + Duration::from_secs(second))
    }

    /// Pools with their settle time in seconds and their number of backends, in one region.
    fn configuration(pools: &[(&str, u64, u8)]) -> Configuration {
        let backend = Backend {
            region: name("eu"),
            weight: 1,
            admin_state: AdminState::Active,
            mtu: None,
            max_connection_rate: None,
        };
        let pool = |(pool, settle, count): &(&str, u64, u8)| {
            let backends = (0..*count).map(|last| ([10, 0, 0, last].into(), backend.clone()));
            let settle_time = Duration::from_secs(*settle);
            let body = Pool { backends: backends.collect(), settle_time, ..Pool::default() };
            (name(pool), Arc::new(body))
        };
        Configuration {
            regions: [(name("eu"), Region::default())].into(),
            pools: pools.iter().map(pool).collect(),
            ..Configuration::EMPTY
        }
    }

    /// Numbers of backends of pool `web`, whose settle time is 100 s, by the seconds at which they came into force; the number
    /// whose homes still count at second 1000.
    fn before(versions: &[(u64, u8)]) -> Option<usize> {
        let past = versions
            .iter()
            .map(|(at, count)| (second(*at), configuration(&[("web", 100, *count)])));
        let mut past: Vec<_> = past.collect();
        let (at, present) = past.pop().unwrap();
        let found = previous(&past, (at, &present), second(1000))?;
        Some(found.pools[&name("web")].backends.len())
    }

    #[test]
    fn the_homes_before_the_first_change_that_settles_count() {
        assert_eq!(before(&[(0, 1)]), None, "there was nothing before");
        assert_eq!(before(&[(0, 1), (950, 2)]), Some(1));
        assert_eq!(before(&[(0, 1), (900, 2)]), None, "it has settled");
        // The second change restarts the settle time of the first.
        assert_eq!(before(&[(0, 1), (860, 2), (950, 3)]), Some(1));
        assert_eq!(before(&[(0, 1), (850, 2), (950, 3)]), Some(2), "the first had settled by then");
        // It is overdue three settle times after it began: it goes on until it has settled, but the next change ends it.
        assert_eq!(before(&[(0, 1), (710, 2), (800, 3), (890, 4), (980, 5)]), Some(1));
        assert_eq!(before(&[(0, 1), (690, 2), (780, 3), (870, 4), (960, 5)]), Some(1));
        assert_eq!(before(&[(0, 1), (650, 2), (740, 3), (830, 4), (920, 5), (960, 6)]), Some(5));
        // A change of other things, and one that was taken back.
        assert_eq!(before(&[(0, 1), (950, 1)]), None);
        assert_eq!(before(&[(0, 1), (940, 2), (950, 1)]), None);
        assert_eq!(before(&[(0, 1), (940, 2), (950, 3), (960, 1)]), None);
    }

    #[test]
    fn each_pool_has_its_own_settle_time_and_changes() {
        let past = [
            (second(0), configuration(&[("api", 600, 1), ("web", 20, 1)])),
            (second(500), configuration(&[("api", 600, 2), ("web", 20, 2)])),
            (second(985), configuration(&[("api", 600, 2), ("web", 20, 3), ("new", 600, 1)])),
        ];
        let present = configuration(&[("api", 600, 2), ("web", 20, 3), ("new", 600, 2)]);
        let found = previous(&past, (second(990), &present), second(1000)).unwrap();
        let counts: Vec<_> =
            found.pools.iter().map(|(pool, it)| (pool.as_str(), it.backends.len())).collect();
        assert_eq!(counts, [("api", 1), ("new", 1), ("web", 2)]);
        // In a region that is gone there is no home.
        let mut gone = past.clone();
        for pool in ["api", "new", "web"] {
            for (_, past) in &mut gone {
                for backend in
                    past.pool_mut(&name(pool)).into_iter().flat_map(|it| it.backends.values_mut())
                {
                    backend.region = name("us");
                }
            }
        }
        assert_eq!(previous(&gone, (second(990), &present), second(1000)), None);
    }

    #[test]
    fn the_order_of_regions_is_part_of_home() {
        let with_order = |order: &[&str]| {
            let mut configuration = configuration(&[("web", 100, 1)]);
            configuration.regions.insert(name("us"), Region::default());
            let eu = configuration.regions.get_mut(&name("eu")).unwrap();
            eu.overflow_to = order.iter().map(|it| name(it)).collect();
            configuration
        };
        let past = [(second(0), with_order(&["gone", "us"]))];
        let found = previous(&past, (second(950), &with_order(&[])), second(1000)).unwrap();
        assert_eq!(found, with_order(&["us"]));
        assert_eq!(previous(&past, (second(900), &with_order(&[])), second(1000)), None);
    }
}
