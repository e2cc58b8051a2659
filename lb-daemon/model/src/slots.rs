//! How many slots a pool's tables need. The choice depends only on the pool's backends, regions and weights, so
//! balancers that choose for the same pool choose the same.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use crate::{
    Name, Pool,
    configuration::bounds::SLOTS,
    maglev::{Member, TableSpec, is_prime},
};

/// Sizes to choose from: primes, each about four times the previous one.
pub const SIZES: [u32; 4] = [1_009, 4_093, 16_381, 65_537];

/// Slots that the backend with the least weight should have. Quotas are whole slots, so its share is then at most
/// one percent off.
pub const LEAST_SHARE: u64 = 100;

const LARGEST: u32 = SIZES[SIZES.len() - 1];

/// The slots to choose for a pool: the least size that gives each backend with a weight [`LEAST_SHARE`] slots, or the
/// largest size.
pub fn choose(pool: &Pool) -> u32 {
    let groups = groups(pool);
    let suffices = |slots: &u32| groups.values().all(|group| group.has_enough(*slots));
    SIZES.into_iter().find(suffices).unwrap_or(LARGEST)
}

/// A pool whose slots are too few for its backends, and the size that gives them more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgrown {
    /// Slots of the backend that has least.
    pub least: u64,
    /// Its region.
    pub region: Name,
    /// The slots to choose for the pool now.
    pub choice: u32,
}

impl WithoutSlots {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let closer = "use weights that are closer together";
        match self.choice {
            Some(choice) => format!("{closer}, or slots = {choice}"),
            None => closer.to_owned(),
        }
    }
}

/// Whether some backend with a weight has less than [`LEAST_SHARE`] slots although a larger size would give it more.
pub fn outgrown(pool: &Pool) -> Option<Outgrown> {
    if pool.slots >= LARGEST {
        return None;
    }
    let groups = groups(pool);
    let short = groups.into_iter().filter(|(_, group)| !group.has_enough(pool.slots));
    let shares = short.map(|(region, group)| {
        let table = table(pool, region).map(|table| u64::from(table.least_quota()));
        (table.unwrap_or_else(|| group.least_share(pool.slots)), region)
    });
    let (least, region) = shares.min()?;
    Some(Outgrown { least, region: region.clone(), choice: choose(pool) })
}

/// Backends that a message about slots names.
const MOST_NAMED: usize = 5;

/// The backends of a pool that have a weight but no slot, as the other weights of their region are too large beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutSlots {
    /// In order of region and rank.
    pub backends: Vec<WithoutSlot>,
    /// The slots that the pool has.
    pub slots: u32,
    /// Slots that give each of them one; `None`: no pool can have so many.
    pub choice: Option<u32>,
}

/// A backend that has a weight but no slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutSlot {
    pub address: IpAddr,
    pub region: Name,
    pub weight: u32,
    /// All weights of the region together.
    pub sum: u64,
}

/// The backends of a pool that have a weight but no slot; `None`: there are none.
pub fn without_slots(pool: &Pool) -> Option<WithoutSlots> {
    let groups = groups(pool);
    // With a share of at least one slot a quota is not 0.
    let short = groups.iter().filter(|(_, group)| group.least_share(pool.slots) == 0);
    let backends: Vec<_> =
        short.flat_map(|(region, group)| without_slots_of(pool, region, group.sum)).collect();
    let needed = groups.values().map(|group| group.sum.div_ceil(group.least)).max()?;
    let choice = match choose(pool) {
        chosen if u64::from(chosen) >= needed => Some(chosen),
        _ => SLOTS.skip_while(|slots| u64::from(*slots) < needed).find(|slots| is_prime(*slots)),
    };
    (!backends.is_empty()).then_some(WithoutSlots { backends, slots: pool.slots, choice })
}

/// Those of one region, whose weights have this sum.
fn without_slots_of(pool: &Pool, region: &Name, sum: u64) -> Vec<WithoutSlot> {
    let Some(table) = table(pool, region) else { return Vec::new() };
    let without = table.without_slots().filter_map(|key| {
        let address = key.address();
        let weight = pool.backends.get(&address)?.weight;
        Some(WithoutSlot { address, region: region.clone(), weight, sum })
    });
    without.collect()
}

/// The table of one region; `None`: it has more backends than slots, which is refused elsewhere.
fn table(pool: &Pool, region: &Name) -> Option<TableSpec> {
    let here = pool.backends.iter().filter(|(_, backend)| backend.region == *region);
    let members: Vec<_> = here
        .map(|(address, backend)| Member { key: (*address).into(), weight: backend.weight })
        .collect();
    TableSpec::new(&members, pool.slots).ok()
}

/// `of 65537 slots 1 backend with a weight has none, …`, with what that means, but without advice.
impl fmt::Display for WithoutSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, slots) = (self.backends.len(), self.slots);
        match number {
            1 => write!(f, "of {slots} slots 1 backend with a weight has none, so it takes")?,
            _ => write!(
                f,
                "of {slots} slots {number} backends with weights have none, so they take"
            )?,
        }
        f.write_str(" new connections only in place of others: ")?;
        let named: Vec<_> =
            self.backends.iter().take(MOST_NAMED).map(ToString::to_string).collect();
        f.write_str(&named.join(", "))?;
        match number.saturating_sub(MOST_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Display for WithoutSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, region, weight, sum } = self;
        write!(f, "{address} in region {region} (weight {weight} of {sum})")
    }
}

/// The weights of a pool's backends in one region.
#[derive(Clone, Copy)]
struct Group {
    least: u64,
    sum: u64,
}

impl Group {
    fn has_enough(self, slots: u32) -> bool {
        u64::from(slots) * self.least >= LEAST_SHARE * self.sum
    }

    fn least_share(self, slots: u32) -> u64 {
        u64::from(slots) * self.least / self.sum
    }
}

/// The groups that have a table. Drained and disabled backends keep their slots, so only weights of 0 are left out.
fn groups(pool: &Pool) -> BTreeMap<&Name, Group> {
    let mut groups: BTreeMap<&Name, Group> = BTreeMap::new();
    for backend in pool.backends.values().filter(|backend| backend.weight > 0) {
        let weight = u64::from(backend.weight);
        let group = groups.entry(&backend.region).or_insert(Group { least: weight, sum: 0 });
        group.least = group.least.min(weight);
        group.sum += weight;
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{AdminState, Backend, diff::TableMembers};

    /// A pool with backends of these regions and weights.
    fn pool(backends: &[(&str, u32)]) -> Pool {
        let backends = backends.iter().zip(1..).map(|((region, weight), number)| {
            let states = [AdminState::Active, AdminState::Drain, AdminState::Disabled];
            let backend = Backend {
                region: Name::new(region).unwrap(),
                weight: *weight,
                // The state must not matter.
                admin_state: states[number as usize % states.len()],
                mtu: None,
                max_connection_rate: None,
            };
            (IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number)), backend)
        });
        Pool { backends: backends.collect(), ..Pool::default() }
    }

    fn even(count: usize) -> Pool {
        pool(&vec![("eu", 1); count])
    }

    #[test]
    fn the_number_of_equal_backends_decides() {
        // 1009 / 10 = 100.9, 1009 / 11 = 91.7 and so on.
        for (count, slots) in [
            (1, 1_009),
            (3, 1_009),
            (10, 1_009),
            (11, 4_093),
            (40, 4_093),
            (41, 16_381),
            (163, 16_381),
            (164, 65_537),
            (655, 65_537),
            (656, 65_537),
            (5000, 65_537),
        ] {
            assert_eq!(choose(&even(count)), slots, "{count}");
        }
    }

    #[test]
    fn without_weights_the_least_size_is_chosen() {
        assert_eq!(choose(&Pool::default()), 1_009);
        assert_eq!(choose(&pool(&[("eu", 0), ("us", 0)])), 1_009);
        assert_eq!(choose(&pool(&[("eu", 0), ("eu", 7)])), 1_009);
    }

    #[test]
    fn the_least_weight_of_each_region_counts() {
        // 100 of 1009 is 1 / 10.09.
        assert_eq!(choose(&pool(&[("eu", 100), ("eu", 909)])), 1_009);
        assert_eq!(choose(&pool(&[("eu", 100), ("eu", 910)])), 4_093);
        // A small weight is small only beside others of its own region.
        assert_eq!(choose(&pool(&[("eu", 1_000_000), ("us", 1)])), 1_009);
        assert_eq!(choose(&pool(&[("eu", 1), ("us", 1), ("us", 60)])), 16_381);
        assert_eq!(choose(&pool(&[("eu", 1), ("eu", 1_000_000)])), 65_537);
    }

    #[test]
    fn a_pool_outgrows_its_slots_where_more_would_help() {
        let with = |slots, pool: Pool| outgrown(&Pool { slots, ..pool });
        let grown = |least, region: &str, choice| {
            Some(Outgrown { least, region: Name::new(region).unwrap(), choice })
        };
        assert_eq!(with(1_009, even(10)), None);
        assert_eq!(with(1_009, even(11)), grown(91, "eu", 4_093));
        assert_eq!(with(1_009, even(60)), grown(16, "eu", 16_381));
        assert_eq!(with(1_009, even(5000)), grown(0, "eu", 65_537));
        assert_eq!(with(251, even(3)), grown(83, "eu", 1_009));
        assert_eq!(with(65_537, even(5000)), None, "no size gives more");
        assert_eq!(with(131_071, even(5000)), None);
        let two = pool(&[("eu", 1), ("eu", 19), ("us", 1), ("us", 39)]);
        assert_eq!(with(1_009, two), grown(25, "us", 4_093), "the worst region");
        assert_eq!(with(7, Pool::default()), None);
        // 1009 / 1901 = 0.53, and the other has 1008.47: the slot that is left is the first's.
        assert_eq!(with(1_009, pool(&[("eu", 1), ("eu", 1_900)])), grown(1, "eu", 65_537));
        // 1009 / 101 = 9.99.
        assert_eq!(with(1_009, pool(&[("eu", 1), ("eu", 100)])), grown(10, "eu", 16_381));
    }

    #[test]
    fn backends_whose_weight_is_too_small_for_a_slot_are_found() {
        let with = |slots, pool: Pool| without_slots(&Pool { slots, ..pool });
        assert_eq!(with(1_009, Pool::default()), None);
        assert_eq!(with(1_009, pool(&[("eu", 0), ("eu", 7), ("us", 0)])), None);
        assert_eq!(with(1_009, even(1_008)), None);
        // 65537 · 30 / 1000031 = 1.97, and 65537 / 1000031 = 0.07: the first two remainders take what is left.
        let far = with(65_537, pool(&[("eu", 1_000_000), ("eu", 30), ("eu", 1)])).unwrap();
        assert_eq!(
            far.to_string(),
            "of 65537 slots 1 backend with a weight has none, so it takes new connections only in place of others: \
             10.0.0.3 in region eu (weight 1 of 1000031)"
        );
        assert_eq!(far.hint(), "use weights that are closer together", "1000031 is over 419423");
        // 65537 · 1 / 100001 = 0.66, and the other's remainder is 0.34: less than a slot's worth, but it has one.
        assert_eq!(with(65_537, pool(&[("eu", 100_000), ("eu", 1)])), None);
        // 65537 / 200001 = 0.33. The next prime, by `openssl prime`, is 200003.
        let hint = with(65_537, pool(&[("eu", 200_000), ("eu", 1)])).unwrap().hint();
        assert_eq!(hint, "use weights that are closer together, or slots = 200003");
        // Each region has tables of its own.
        assert_eq!(with(65_537, pool(&[("eu", 1_000_000), ("us", 1)])), None);
        // 1009 · 5000 / 5004 = 1008.19: the slot left goes to the first of four with 0.20. 1009 · 5000 / 5003 = 1008.39.
        let many: Vec<_> = [("eu", 5_000)].into_iter().chain([("us", 5_000)]).collect();
        let light = [("eu", 1); 4].into_iter().chain([("us", 1); 3]);
        let small = with(1_009, pool(&many.into_iter().chain(light).collect::<Vec<_>>())).unwrap();
        let text = small.to_string();
        assert!(
            text.starts_with("of 1009 slots 6 backends with weights have none, so they take "),
            "{text}"
        );
        assert!(text.ends_with("10.0.0.8 in region us (weight 1 of 5003) and 1 more"), "{text}");
        assert_eq!(small.hint(), "use weights that are closer together, or slots = 65537");
    }

    /// The slots that a group's table of this size gives to the one that gets least.
    fn least_in_table(pool: &Pool, region: &str, slots: u32) -> Option<usize> {
        let here = pool.backends.iter().filter(|(_, backend)| backend.region.as_str() == region);
        let members: Vec<_> = here.map(|(address, backend)| (*address, backend.weight)).collect();
        let table = TableMembers { members, slots };
        let owners = crate::diff::owners(&table);
        let taking = table.members.iter().filter(|(_, weight)| *weight > 0);
        let owned = |address: &IpAddr| owners.iter().filter(|owner| *owner == address).count();
        taking.map(|(address, _)| owned(address)).min()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        /// Compared with fractions, and with what tables of these sizes really give.
        #[test]
        fn the_choice_is_the_least_size_whose_tables_give_enough(
            backends in vec((prop::sample::select(vec!["eu", "us", "ap"]), prop_oneof![
                3 => Just(1_u32), 2 => 0_u32..20, 1 => 1_u32..=1_000_000,
            ]), 0..90),
        ) {
            let pool = pool(&backends);
            let mut needed = 0_f64;
            for region in ["eu", "us", "ap"] {
                let weights: Vec<f64> = backends
                    .iter()
                    .filter(|(of, weight)| *of == region && *weight > 0)
                    .map(|(_, weight)| f64::from(*weight))
                    .collect();
                let all: f64 = weights.iter().sum();
                needed = weights.iter().map(|weight| 100.0 * all / weight).fold(needed, f64::max);
            }
            let naive = match needed {
                up_to if up_to <= 1_009.0 => 1_009,
                up_to if up_to <= 4_093.0 => 4_093,
                up_to if up_to <= 16_381.0 => 16_381,
                _ => 65_537,
            };
            let chosen = choose(&pool);
            prop_assert_eq!(chosen, naive);
            prop_assert_eq!(outgrown(&Pool { slots: chosen, ..pool.clone() }), None);
            let below = SIZES.into_iter().take_while(|size| *size < chosen);
            for size in below {
                let smaller = Pool { slots: size, ..pool.clone() };
                let outgrown = outgrown(&smaller).unwrap();
                let least = least_in_table(&pool, outgrown.region.as_str(), size);
                prop_assert_eq!(least, Some(outgrown.least as usize));
            }
            for size in SIZES {
                let Some(without) = without_slots(&Pool { slots: size, ..pool.clone() }) else { continue };
                for it in without.backends {
                    let region = it.region.as_str();
                    prop_assert_eq!(least_in_table(&pool, region, size), Some(0), "{}", it.address);
                }
            }
            if needed <= 65_537.0 {
                for region in ["eu", "us", "ap"] {
                    let least = least_in_table(&pool, region, chosen);
                    prop_assert!(least.is_none_or(|least| least >= 100), "{region}: {least:?}");
                }
            }
        }
    }
}
