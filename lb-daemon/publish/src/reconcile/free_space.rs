//! Free entries of the maps that the reconciler writes. This is kept in memory only: a daemon that starts
//! reads what is published, and everything else is free.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{
    limiter::FIRST_LIMITER,
    limits,
    sizes::{MapSizes, Size},
    zone::ZONES,
};
use lb_model::room::HOW_TO_RESIZE;

use super::{
    published::{Published, PublishedGroup},
    table_space::TableSpace,
};

#[derive(Clone, Debug)]
pub(super) struct FreeSpace {
    pub(super) descriptors: Indices,
    pub(super) groups: Indices,
    pub(super) members: Extents,
    /// Only groups have counters, which follow these numbers.
    pub(super) group_limiters: Indices,
    pub(super) member_limiters: Indices,
    pub(super) tables: TableSpace,
    zones: Extents,
    /// Pools that have some.
    pools_with_zones: u32,
    /// Pools that have none yet.
    pools_without_zones: u32,
}

/// Most zones of a pool: a drained backend of a thousand makes the packets of 3 flows in a hundred dearer.
const MOST_ZONES: u32 = 2_048;
/// The first pool gets so many'th of the zones that are free.
const ZONES_LEFT: u32 = 16;
/// Each pool that has zones adds so much to that: of hundreds of pools the first few would else have all.
const ZONES_LEFT_BY_POOL: u32 = 2;

impl FreeSpace {
    /// Everything is free; there are these chunks of tables.
    fn new(sizes: &MapSizes, chunks: &BTreeSet<u32>) -> Self {
        let groups = FullMap { what: "groups", size: Some(Size::Groups) };
        let group_limiters = FullMap { what: "limiters of groups", ..groups };
        let pools = FullMap { what: "versions of pools", size: Some(Size::Pools) };
        let members = FullMap { what: "backends in pools", size: Some(Size::PoolBackends) };
        let member_limiters =
            FullMap { what: "limiters of backends", size: Some(Size::LimitedBackends) };
        Self {
            descriptors: Indices::new(pools, sizes.descriptors()),
            groups: Indices::new(groups, sizes.groups()),
            members: Extents::new(members, sizes.members()),
            // The first limiters are the packet path's own.
            group_limiters: Indices::between(group_limiters, FIRST_LIMITER, sizes.group_limiters()),
            member_limiters: Indices::between(
                member_limiters,
                sizes.group_limiters(),
                sizes.limiters(),
            ),
            tables: TableSpace::new(limits::MAX_CHUNKS, chunks),
            zones: Extents::new(FullMap { what: "zones", size: None }, ZONES),
            pools_with_zones: 0,
            pools_without_zones: sizes.get(Size::Pools),
        }
    }

    /// Everything that is not published is free.
    pub(super) fn from_published(
        published: &Published,
        sizes: &MapSizes,
        chunks: &BTreeSet<u32>,
    ) -> Self {
        let mut free_space = Self::new(sizes, chunks);
        for descriptor in published.descriptors() {
            free_space.descriptors.reserve(descriptor);
        }
        for (index, group) in &published.groups {
            free_space.groups.reserve(*index);
            free_space.members.reserve(group.extent());
        }
        for table in published.table_extents() {
            free_space.tables.reserve(table);
        }
        for zones in published.zones() {
            free_space.zones.reserve(zones);
            free_space.count_pool_with_zones();
        }
        for limiter in published.limiters() {
            // A number is of one of the two ranges.
            let _ = free_space.group_limiters.reserve(limiter)
                || free_space.member_limiters.reserve(limiter);
        }
        free_space
    }

    /// Zones for a new pool: the first pools get many of them, and there is one at least for the last.
    pub(super) fn allocate_zones(&mut self) -> Result<Extent, Full> {
        let part = ZONES_LEFT + ZONES_LEFT_BY_POOL * self.pools_with_zones;
        self.count_pool_with_zones();
        let spare = self.zones.total().saturating_sub(self.pools_without_zones);
        let count = (spare / part).clamp(1, MOST_ZONES).min(self.zones.largest().max(1));
        self.zones.allocate(count)
    }

    pub(super) fn free_zones(&mut self, zones: Extent) {
        self.zones.free(zones);
        self.pools_with_zones = self.pools_with_zones.saturating_sub(1);
        self.pools_without_zones += 1;
    }

    fn count_pool_with_zones(&mut self) {
        self.pools_with_zones += 1;
        self.pools_without_zones = self.pools_without_zones.saturating_sub(1);
    }

    pub(super) fn free_limiter(&mut self, limiter: u32) {
        let of_groups = limiter < self.group_limiters.end;
        let limiters = if of_groups { &mut self.group_limiters } else { &mut self.member_limiters };
        limiters.free(limiter);
    }

    pub(super) fn free_group(&mut self, index: u32, group: &PublishedGroup) {
        self.groups.free(index);
        self.members.free(group.extent());
    }
}

/// A map, as it is called if it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullMap {
    /// What it holds.
    pub what: &'static str,
    /// The setting that sizes it, if there is one.
    pub size: Option<Size>,
}

/// A map has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {needed} contiguous entries are needed, the largest free range has {free}{}",
    .map.what, setting(.map.size))]
pub struct Full {
    pub map: FullMap,
    pub needed: u32,
    /// Length of the largest free range.
    pub free: u32,
}

fn setting(size: Option<Size>) -> String {
    let setting = size.map(|size| format!("; the setting `{}` sizes the map", size.setting()));
    setting.unwrap_or_default()
}

impl Full {
    /// What the operator can do, if a setting sizes the map.
    pub fn hint(&self) -> Option<String> {
        let size = self.map.size?;
        let (setting, most) = (size.setting(), size.most());
        Some(format!("set `{setting}` higher, at most {most}; then {HOW_TO_RESIZE}"))
    }
}

/// A range of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Extent {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// Free ranges of a map. Allocates from the smallest range that fits, to keep large ones.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    map: FullMap,
    /// Length by start; no two ranges touch.
    free: BTreeMap<u32, u32>,
    /// The same ranges as length and start.
    by_length: BTreeSet<(u32, u32)>,
}

impl Extents {
    /// All entries are free.
    pub(super) fn new(map: FullMap, entries: u32) -> Self {
        let mut extents = Self { map, free: BTreeMap::new(), by_length: BTreeSet::new() };
        extents.put(0, entries);
        extents
    }

    /// Takes a range that is in use already. False, without any change, if part of it is taken.
    pub(super) fn reserve(&mut self, extent: Extent) -> bool {
        let Extent { start, length } = extent;
        if length == 0 {
            return true;
        }
        let Some((&run, &size)) = self.free.range(..=start).next_back() else { return false };
        let Some(end) = start.checked_add(length).filter(|end| *end <= run + size) else {
            return false;
        };
        self.take(run);
        self.put(run, start - run);
        self.put(end, run + size - end);
        true
    }

    /// A range of length 0 is nowhere in particular.
    pub(super) fn allocate(&mut self, length: u32) -> Result<Extent, Full> {
        if length == 0 {
            return Ok(Extent { start: 0, length });
        }
        let Some(&(size, start)) = self.by_length.range((length, 0)..).next() else {
            return Err(Full { map: self.map, needed: length, free: self.largest() });
        };
        self.take(start);
        self.put(start + length, size - length);
        Ok(Extent { start, length })
    }

    pub(super) fn free(&mut self, extent: Extent) {
        let Extent { mut start, mut length } = extent;
        if length == 0 {
            return;
        }
        if let Some((&before, &size)) = self.free.range(..start).next_back()
            && before + size == start
        {
            self.take(before);
            (start, length) = (before, length + size);
        }
        length += self.take(start + length);
        self.put(start, length);
    }

    /// All that is free.
    fn total(&self) -> u32 {
        self.free.values().sum()
    }

    /// Length of the largest free range.
    fn largest(&self) -> u32 {
        self.by_length.last().map_or(0, |(length, _)| *length)
    }

    /// Whether a range is free and what surrounds it is not.
    pub(super) fn is_range(&self, extent: Extent) -> bool {
        self.free.get(&extent.start) == Some(&extent.length)
    }

    fn put(&mut self, start: u32, length: u32) {
        if length > 0 {
            self.free.insert(start, length);
            self.by_length.insert((length, start));
        }
    }

    /// Takes the free range that begins somewhere, and returns its length; 0: there is none.
    fn take(&mut self, start: u32) -> u32 {
        let Some(length) = self.free.remove(&start) else { return 0 };
        self.by_length.remove(&(length, start));
        length
    }
}

/// Free entries of a map, or of a part of it, allocated one by one, the lowest first. Index 0 is never allocated.
#[derive(Clone, Debug)]
pub(super) struct Indices {
    map: FullMap,
    begin: u32,
    end: u32,
    /// All indices from here on are free; of those below, the ones in `free`.
    untouched: u32,
    free: BTreeSet<u32>,
}

impl Indices {
    /// All entries but the first are free.
    pub(super) fn new(map: FullMap, entries: u32) -> Self {
        Self::between(map, 1, entries)
    }

    /// All entries from `begin` are free, up to `end`.
    fn between(map: FullMap, begin: u32, end: u32) -> Self {
        Self { map, begin, end, untouched: begin, free: BTreeSet::new() }
    }

    /// Takes an index that is in use already. False, without any change, if it is taken or out of range.
    pub(super) fn reserve(&mut self, index: u32) -> bool {
        if index < self.untouched {
            return self.free.remove(&index);
        }
        if index < self.begin || index >= self.end {
            return false;
        }
        self.free.extend(self.untouched..index);
        self.untouched = index + 1;
        true
    }

    pub(super) fn allocate(&mut self) -> Result<u32, Full> {
        if let Some(index) = self.free.pop_first() {
            return Ok(index);
        }
        if self.untouched >= self.end {
            return Err(Full { map: self.map, needed: 1, free: 0 });
        }
        self.untouched += 1;
        Ok(self.untouched - 1)
    }

    pub(super) fn free(&mut self, index: u32) {
        self.free.insert(index);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use lb_common::{abi::zone::ZoneRange, flow_hash::FlowHash};
    use lb_model::maglev::{Member, TableSpec};
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const ENTRIES: u32 = 64;
    const MAP: FullMap = FullMap { what: "members", size: None };

    /// The same with a flag for each entry.
    fn model(taken: &[Extent]) -> Vec<bool> {
        let mut entries = vec![false; ENTRIES as usize];
        for extent in taken {
            for entry in &mut entries[extent.start as usize..][..extent.length as usize] {
                assert!(!std::mem::replace(entry, true), "{extent:?} overlaps");
            }
        }
        entries
    }

    fn longest_run(entries: &[bool]) -> u32 {
        entries.split(|taken| *taken).map(|run| run.len() as u32).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn ranges_never_overlap_and_are_refused_only_if_none_fits(
            steps in vec((0u32..20, any::<prop::sample::Index>(), prop::bool::ANY), 1..200),
        ) {
            let mut extents = Extents::new(MAP, ENTRIES);
            let mut taken: Vec<Extent> = Vec::new();
            for (length, which, free) in steps {
                if free && !taken.is_empty() {
                    extents.free(taken.swap_remove(which.index(taken.len())));
                } else {
                    let longest = longest_run(&model(&taken));
                    match extents.allocate(length) {
                        Ok(extent) => {
                            prop_assert_eq!(extent.length, length);
                            taken.push(extent);
                        }
                        Err(full) => {
                            prop_assert!(length > longest);
                            let expected = Full { map: MAP, needed: length, free: longest };
                            prop_assert_eq!(full, expected);
                        }
                    }
                }
                model(&taken);
            }
            for extent in taken {
                extents.free(extent);
            }
            prop_assert_eq!(extents.free, BTreeMap::from([(0, ENTRIES)]));
        }

        #[test]
        fn only_free_ranges_can_be_reserved(
            ranges in vec((0..ENTRIES, 0u32..9), 0..30),
        ) {
            let mut extents = Extents::new(MAP, ENTRIES);
            let mut taken = Vec::new();
            for (start, length) in ranges {
                let extent = Extent { start, length };
                let end = (start + length) as usize;
                let entries = model(&taken);
                let free = end <= entries.len() && !entries[start as usize..end].contains(&true);
                prop_assert_eq!(extents.reserve(extent), free || length == 0);
                if free {
                    taken.push(extent);
                }
            }
            let free: u32 = extents.free.values().sum();
            prop_assert_eq!(free, model(&taken).iter().filter(|taken| !**taken).count() as u32);
        }
    }

    #[test]
    fn the_smallest_range_that_fits_is_used() {
        let mut extents = Extents::new(MAP, ENTRIES);
        for start in [10, 20, 40] {
            assert!(extents.reserve(Extent { start, length: 4 }));
        }
        // Free: 0..10, 14..20, 24..40, 44..64.
        assert_eq!(extents.allocate(6), Ok(Extent { start: 14, length: 6 }));
        assert_eq!(extents.allocate(11), Ok(Extent { start: 24, length: 11 }));
        assert_eq!(extents.allocate(3), Ok(Extent { start: 35, length: 3 }));
        assert_eq!(
            extents.allocate(21).unwrap_err().to_string(),
            "members: 21 contiguous entries are needed, the largest free range has 20"
        );
    }

    #[test]
    fn a_full_map_names_its_setting() {
        let sizes = MapSizes::DEFAULT.with(Size::PoolBackends, 10);
        let full = FreeSpace::new(&sizes, &BTreeSet::new()).members.allocate(21).unwrap_err();
        assert_eq!(
            full.to_string(),
            "backends in pools: 21 contiguous entries are needed, the largest free range has 20; the \
             setting `pool-backends` sizes the map"
        );
        let hint = full.hint().unwrap();
        assert!(
            hint.starts_with("set `pool-backends` higher, at most 400000; then stop "),
            "{hint}"
        );
        assert_eq!(Full { map: MAP, needed: 1, free: 0 }.hint(), None);
    }

    #[test]
    fn limiters_of_groups_come_before_those_of_members() {
        let sizes = MapSizes::DEFAULT.with(Size::Groups, 2).with(Size::LimitedBackends, 1);
        let mut free = FreeSpace::new(&sizes, &BTreeSet::new());
        let mut groups: Vec<u32> =
            (0..4).map(|_| free.group_limiters.allocate().unwrap()).collect();
        let members: Vec<u32> = (0..2).map(|_| free.member_limiters.allocate().unwrap()).collect();
        groups.extend(&members);
        assert_eq!(groups, (FIRST_LIMITER..sizes.limiters()).collect::<Vec<_>>());
        assert!(
            free.group_limiters.allocate().is_err() && free.member_limiters.allocate().is_err()
        );
        free.free_limiter(members[1]);
        free.free_limiter(groups[0]);
        assert_eq!(free.group_limiters.allocate(), Ok(groups[0]));
        assert_eq!(free.member_limiters.allocate(), Ok(members[1]));
    }

    const INDICES: u32 = 12;

    proptest! {
        #[test]
        fn the_lowest_free_index_is_allocated_and_none_twice(
            reserved in vec(0..INDICES + 3, 0..6),
            steps in vec(prop::option::of(any::<prop::sample::Index>()), 0..60),
        ) {
            let mut indices = Indices::new(MAP, INDICES);
            let mut free: BTreeSet<u32> = (1..INDICES).collect();
            let mut taken = Vec::new();
            for index in reserved {
                let was_free = free.remove(&index);
                prop_assert_eq!(indices.reserve(index), was_free);
                taken.extend(was_free.then_some(index));
            }
            for step in steps {
                match step {
                    Some(which) if !taken.is_empty() => {
                        let index = taken.swap_remove(which.index(taken.len()));
                        indices.free(index);
                        free.insert(index);
                    }
                    _ => {
                        let expected = free.pop_first();
                        prop_assert_eq!(indices.allocate().ok(), expected);
                        taken.extend(expected);
                    }
                }
            }
        }
    }

    /// Zones of pools with a flag for each zone, and nothing else.
    struct NaiveZones {
        taken: Vec<bool>,
        pools: u32,
        most_pools: u32,
    }

    impl NaiveZones {
        fn new(most_pools: u32) -> Self {
            Self { taken: vec![false; ZONES as usize], pools: 0, most_pools }
        }

        /// What a new pool gets: a sixteenth of what is free beside one zone for each pool that may come, or less by how many
        /// pools there are; at most 2,048, and no more than are beside each other.
        fn share(&self) -> u32 {
            let free = self.taken.iter().filter(|taken| !**taken).count() as u32;
            let spare = free - (self.most_pools - self.pools - 1);
            (spare / (16 + 2 * self.pools)).clamp(1, 2_048).min(longest_run(&self.taken))
        }

        fn set(&mut self, zones: Extent, taken: bool) {
            for zone in &mut self.taken[zones.start as usize..][..zones.length as usize] {
                assert_ne!(std::mem::replace(zone, taken), taken, "{zones:?}");
            }
            self.pools = if taken { self.pools + 1 } else { self.pools - 1 };
        }
    }

    fn zones_of(most_pools: u32) -> FreeSpace {
        FreeSpace::new(&MapSizes::DEFAULT.with(Size::Pools, most_pools), &BTreeSet::new())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn zones_of_pools_never_overlap_and_each_pool_has_its_share(
            steps in vec(prop::option::weighted(0.3, any::<prop::sample::Index>()), 1..90),
        ) {
            let most_pools = 60;
            let (mut free, mut naive) = (zones_of(most_pools), NaiveZones::new(most_pools));
            let mut pools: Vec<Extent> = Vec::new();
            for step in steps {
                match step {
                    Some(which) if !pools.is_empty() => {
                        let gone = pools.swap_remove(which.index(pools.len()));
                        naive.set(gone, false);
                        free.free_zones(gone);
                    }
                    _ if pools.len() < most_pools as usize => {
                        let share = naive.share();
                        let zones = free.allocate_zones().unwrap();
                        prop_assert_eq!(zones.length, share);
                        naive.set(zones, true);
                        pools.push(zones);
                    }
                    _ => {}
                }
            }
        }
    }

    /// None has less than a 32nd of what it would have if those up to it had equal parts of all.
    #[test]
    fn as_many_pools_as_fit_have_zones_each() {
        for most_pools in [4_096, 10_000] {
            let mut free = zones_of(most_pools);
            let mut taken = vec![false; ZONES as usize];
            let mut lengths = Vec::new();
            for pool in 0..most_pools {
                let zones = free.allocate_zones().unwrap();
                assert!(zones.length >= 1, "pool {pool} of {most_pools}");
                for zone in &mut taken[zones.start as usize..][..zones.length as usize] {
                    assert!(!std::mem::replace(zone, true));
                }
                lengths.push(zones.length);
            }
            for (before, length) in (1..).zip(lengths) {
                assert!(length >= ZONES / 32 / before, "the {before}th of {most_pools}: {length}");
            }
        }
    }

    /// Of a pool with the most zones and the slots that are chosen for it: slots of one backend are spread over the table,
    /// so its flows share zones with others.
    #[test]
    fn one_backend_of_many_turns_few_checks_on() {
        for (backends, slots, most) in [(10_u16, 1_009, 15), (100, 16_381, 9), (1_000, 65_537, 4)] {
            let address = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
            let members: Vec<_> =
                (0..backends).map(|n| Member { key: address(n).into(), weight: 1 }).collect();
            let owners = TableSpec::new(&members, slots).unwrap().owners();
            let zones = ZoneRange::new(0, MOST_ZONES);
            let flows = || (0..1_u64 << 18).map(|n| FlowHash(n << 46));
            let is_its = |flow: &FlowHash| owners[flow.slot(slots) as usize] == 0;
            let on: BTreeSet<u16> = flows().filter(is_its).map(|flow| zones.of(flow)).collect();
            let look_up = flows().filter(|flow| on.contains(&zones.of(*flow))).count();
            let percent = look_up as f64 / flows().count() as f64 * 100.0;
            assert!(percent <= f64::from(most), "{percent} % for one of {backends} backends");
        }
    }
}
