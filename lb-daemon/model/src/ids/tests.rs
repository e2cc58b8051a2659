use std::time::Duration;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::arbitrary;
use crate::{AdminState, Backend, Pool, Region};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn ip(n: u16) -> IpAddr {
    let [high, low] = n.to_be_bytes();
    IpAddr::from([10, 0, high, low])
}

/// One pool with these backends.
fn pool(backends: impl IntoIterator<Item = u16>) -> Configuration {
    let region = name("eu");
    let backend = Backend {
        region,
        weight: 1,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    let backends = backends.into_iter().map(|n| (ip(n), backend.clone())).collect();
    let pool = Pool { backends, slots: 65_537, ..Pool::default() };
    Configuration {
        regions: [(name("eu"), Region::default())].into(),
        pools: [(name("web"), pool.into())].into(),
        ..Configuration::default()
    }
}

/// Ids with their rests, the way the daemon holds them.
#[derive(Default)]
struct Life {
    ids: Ids,
    /// What the ids are of.
    configuration: Option<Configuration>,
    rests: Quarantine,
    sizes: MapSizes,
}

impl Life {
    fn apply(&mut self, configuration: &Configuration, now: Instant) -> Result<(), Exhausted> {
        let before = self.configuration.as_ref();
        self.ids = self.ids.next(before, configuration, &self.sizes, &self.rests, now)?;
        self.configuration = Some(configuration.clone());
        self.rests.adopt(&self.ids);
        Ok(())
    }

    fn settle(&mut self, now: Instant) {
        self.rests.settle(&self.ids, &Named::default(), now);
    }

    fn id(&self, n: u16) -> (u32, u8) {
        let id = self.ids.backend(&ip(n)).unwrap();
        (id.index, id.incarnation)
    }
}

#[test]
fn a_number_is_given_out_again_after_its_rest_as_another_incarnation() {
    let start = Instant::now();
    let almost = start + BACKEND_QUARANTINE - Duration::from_nanos(1);
    let mut life = Life::default();
    life.apply(&pool([1, 2]), start).unwrap();
    assert_eq!([life.id(1), life.id(2)], [(1, 0), (2, 0)]);
    life.settle(start);

    life.apply(&pool([2]), start).unwrap();
    life.settle(start);
    life.apply(&pool([2, 3]), almost).unwrap();
    assert_eq!([life.id(2), life.id(3)], [(2, 0), (3, 0)], "index 1 still rests");
    life.settle(almost);

    life.apply(&pool([2, 3, 4]), start + BACKEND_QUARANTINE).unwrap();
    assert_eq!([life.id(2), life.id(3), life.id(4)], [(2, 0), (3, 0), (1, 1)]);
}

#[test]
fn a_number_rests_only_once_the_maps_forgot_it() {
    let start = Instant::now();
    let later = start + BACKEND_QUARANTINE;
    let mut life = Life::default();
    life.apply(&pool([1]), start).unwrap();
    life.settle(start);
    life.apply(&pool([]), start).unwrap();
    // The maps could not be brought along: no settling.
    life.apply(&pool([2]), later).unwrap();
    assert_eq!(life.id(2), (2, 0));
    // Now they were, but something there still names it.
    let named = Named { backends: [(1, 0)].into(), ..Named::default() };
    life.rests.settle(&life.ids, &named, later);
    life.apply(&pool([2, 3]), later + BACKEND_QUARANTINE).unwrap();
    assert_eq!(life.id(3), (3, 0));
    // And now it does not.
    life.settle(later);
    life.apply(&pool([2, 3, 4]), later + BACKEND_QUARANTINE).unwrap();
    assert_eq!(life.id(4), (1, 1));
}

#[test]
fn an_old_rest_does_not_count_for_a_later_owner() {
    let start = Instant::now();
    let mut life = Life::default();
    life.apply(&pool([1]), start).unwrap();
    life.apply(&pool([]), start).unwrap();
    life.settle(start);
    life.apply(&pool([2]), start + BACKEND_QUARANTINE).unwrap();
    assert_eq!(life.id(2), (1, 1));
    life.apply(&pool([]), start + BACKEND_QUARANTINE).unwrap();
    life.apply(&pool([3]), start + 9 * BACKEND_QUARANTINE).unwrap();
    assert_eq!(life.id(3), (2, 0), "nothing settled since index 1 was retired again");
}

#[test]
fn the_incarnation_goes_round() {
    let mut now = Instant::now();
    let mut life = Life::default();
    for round in 0..300u16 {
        life.apply(&pool([round]), now).unwrap();
        assert_eq!(life.id(round), (1, (round % 256) as u8));
        life.apply(&pool([]), now).unwrap();
        life.settle(now);
        now += BACKEND_QUARANTINE;
    }
}

#[test]
fn running_out_is_told_in_numbers() {
    let start = Instant::now();
    let sizes = MapSizes::DEFAULT.with(Size::Backends, 65_535);
    let mut life = Life { sizes, ..Life::default() };
    life.apply(&pool(0..40_000), start).unwrap();
    life.settle(start);
    life.apply(&pool(40_000..65_535), start).unwrap();
    life.settle(start);
    let before = life.ids.clone();
    let error = life.apply(&pool(0..40_000), start).unwrap_err();
    assert_eq!(
        error.to_string(),
        "backends: 40000 new ones need a number each, but only 0 numbers are free, 25535 are in use \
         and 40000 in quarantine; the setting `backends` says how many there are"
    );
    assert_eq!(life.ids, before);
    life.apply(&pool(0..40_000), start + BACKEND_QUARANTINE).unwrap();
    assert_eq!(life.id(0), (1, 1));
}

#[test]
fn what_the_maps_name_is_reserved_when_the_store_is_lost() {
    let start = Instant::now();
    let named = Named {
        backends: [(0, 0), (1, 7), (3, 255)].into(),
        services: [1].into(),
        pools: [1, 2].into(),
        regions: [2].into(),
    };
    let ids = Ids::reserving(&named);
    let mut life = Life { ids, ..Life::default() };
    life.apply(&pool([1, 2]), start).unwrap();
    assert_eq!([life.id(1), life.id(2)], [(2, 0), (4, 0)]);
    assert_eq!(life.ids.pool(&name("web")), Some(3));
    assert_eq!(life.ids.region(&name("eu")), Some(1));
    life.settle(start);
    life.apply(&pool([1, 2, 3, 4]), start + BACKEND_QUARANTINE).unwrap();
    assert_eq!([life.id(3), life.id(4)], [(1, 8), (3, 0)]);
}

#[test]
fn a_service_pool_or_region_never_takes_over_a_number_in_the_same_change() {
    let start = Instant::now();
    let with = |pool_name: &str| {
        let mut configuration = pool([1]);
        let pool = configuration.pools.remove(&name("web")).unwrap();
        configuration.pools.insert(name(pool_name), pool);
        configuration
    };
    let mut life = Life::default();
    let index = |life: &Life, pool| life.ids.pool(&name(pool)).unwrap();
    life.apply(&with("a"), start).unwrap();
    life.settle(start);
    life.apply(&with("b"), start).unwrap();
    assert_eq!(index(&life, "b"), 2);
    life.settle(start);
    life.apply(&with("c"), start).unwrap();
    assert_eq!(index(&life, "c"), 1, "free as soon as no map names it");
}

/// Maps were made anew, of other sizes: what is within them keeps its number.
#[test]
fn numbers_beyond_smaller_maps_become_low_ones() {
    let start = Instant::now();
    let mut life = Life::default();
    life.apply(&pool(1..=3), start).unwrap();
    life.apply(&pool(3..=7), start).unwrap();
    let numbers = |ids: &Ids| [3, 4, 5, 6, 7].map(|n| ids.backend(&ip(n)).map(|id| id.index));
    assert_eq!(numbers(&life.ids), [3, 4, 5, 6, 7].map(Some));
    life.sizes = life.sizes.with(Size::Backends, 5);
    let within = life.ids.within(&life.sizes);
    assert_eq!(numbers(&within), [3, 4, 5, 1, 2].map(Some));
    assert_eq!(within.backend(&ip(6)).unwrap().incarnation, 1, "another had number 1 before");
    assert_eq!(within.within(&life.sizes), within);
    // All numbers are in use, and none is free.
    life.ids = within;
    life.settle(start);
    let error = life.apply(&pool(3..=8), start + BACKEND_QUARANTINE).unwrap_err();
    assert_eq!((error.needed, error.free, error.used), (1, 0, 5));
    // If they do not all fit, none has a number until the next change, whichever of them it keeps.
    life.sizes = life.sizes.with(Size::Backends, 4);
    let few = Life { ids: life.ids.within(&life.sizes), sizes: life.sizes, ..Life::default() };
    assert_eq!(numbers(&few.ids), [None; 5]);
    for kept in [3..=6, 4..=7] {
        let mut few = Life { ids: few.ids.clone(), sizes: life.sizes, ..Life::default() };
        few.apply(&pool(kept), start).unwrap();
    }
    // And larger maps change nothing.
    assert_eq!(life.ids.within(&MapSizes::DEFAULT), life.ids);
}

#[test]
fn numbers_in_larger_maps_than_there_are_now_are_not_counted() {
    let named = Named { backends: (1..=9).map(|index| (index, 0)).collect(), ..Named::default() };
    let sizes = MapSizes::DEFAULT.with(Size::Backends, 5);
    let error = Ids::reserving(&named)
        .next(None, &pool([1]), &sizes, &Quarantine::default(), Instant::now())
        .unwrap_err();
    assert_eq!((error.free, error.quarantined), (0, 9));
}

#[test]
fn they_survive_their_file_form() {
    let mut life = Life::default();
    life.apply(&pool([1, 2, 3]), Instant::now()).unwrap();
    life.apply(&pool([2]), Instant::now()).unwrap();
    let text = serde_json::to_string(&life.ids).unwrap();
    assert_eq!(serde_json::from_str::<Ids>(&text).unwrap(), life.ids);
}

proptest! {
    /// Whatever is applied, settled or not, at whatever pace: a number that comes back comes back
    /// rested and as another incarnation, and what stays keeps its number.
    #[test]
    fn no_number_is_used_too_early(
        steps in vec((arbitrary::configuration(), any::<bool>(), 0u64..200), 1..12),
    ) {
        let mut now = Instant::now();
        let mut life = Life::default();
        // The naive account: when an index was last in use, or in the maps, and as what.
        let mut last: BTreeMap<u32, (Instant, BackendId)> = BTreeMap::new();
        let mut in_maps: BTreeMap<IpAddr, BackendId> = BTreeMap::new();
        for (configuration, settles, seconds) in steps {
            now += Duration::from_secs(seconds);
            let before = life.ids.clone();
            for id in in_maps.values() {
                last.insert(id.index, (now, *id));
            }
            life.apply(&configuration, now).unwrap();
            let addresses: BTreeSet<IpAddr> =
                configuration.pools.values().flat_map(|pool| pool.backends.keys().copied()).collect();
            let mut seen = BTreeSet::new();
            for address in &addresses {
                let id = life.ids.backend(address).unwrap();
                prop_assert!(id.index != 0 && seen.insert(id.index));
                if let Some(kept) = before.backend(address) {
                    prop_assert_eq!(kept, id);
                } else if let Some((when, previous)) = last.get(&id.index) {
                    prop_assert!(now - *when >= BACKEND_QUARANTINE);
                    prop_assert_eq!(id.incarnation, previous.incarnation.wrapping_add(1));
                }
                last.insert(id.index, (now, id));
                in_maps.insert(*address, id);
            }
            for (pools, index) in [
                (configuration.pools.keys().map(|name| life.ids.pool(name)).collect::<Vec<_>>(), 0),
                (configuration.services.keys().map(|name| life.ids.service(name)).collect(), 1),
                (configuration.regions.keys().map(|name| life.ids.region(name)).collect(), 2),
            ] {
                let distinct: BTreeSet<_> = pools.iter().flatten().collect();
                prop_assert_eq!(distinct.len(), pools.len(), "kind {}", index);
            }
            if settles {
                in_maps.retain(|address, _| addresses.contains(address));
                life.settle(now);
            }
        }
    }
}
