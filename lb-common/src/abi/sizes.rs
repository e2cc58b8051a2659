//! How many entries the balancer's maps have. The daemon's settings say how much a configuration may have, and the maps
//! are made to fit. Index 0 of services, pools, groups and backends is never given out. Groups and members are there
//! twice, because a new generation is written beside the old one.

use super::{
    flow_map::HEAD_LINES,
    limiter::FIRST_LIMITER,
    limits::STANDBYS_PER_GROUP,
    names::{
        ADDRESSES, BACKEND_COUNTERS, FLOWS, GROUP_COUNTERS, SERVICE_COUNTERS, SHARED_BACKENDS,
    },
};
use crate::{flow_table::CELLS, service_index::index_words};

/// A setting that says how much maps hold.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Services.
    Services,
    /// What packets of services are looked up as: ports, any-port services, and services that fragments go to.
    Ports,
    /// Pools.
    Pools,
    /// Groups: a pool's members in one region.
    Groups,
    /// Backend addresses, whatever the number of pools that have them.
    Backends,
    /// Members: backends, each counted once for each pool that has it.
    PoolBackends,
    /// Members with a limit of their own.
    LimitedBackends,
    /// Cells of the flow table; the table has a power of two of them. Sized for a third of it to be in use.
    Flows,
}

/// What there is to say of a [`Size`].
struct Terms {
    setting: &'static str,
    what: &'static str,
    default: u32,
    least: u32,
    most: u32,
}

impl Size {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Services,
        Self::Ports,
        Self::Pools,
        Self::Groups,
        Self::Backends,
        Self::PoolBackends,
        Self::LimitedBackends,
        Self::Flows,
    ];

    const fn terms(self) -> Terms {
        let (setting, what, default, least, most) = match self {
            Self::Services => ("services", "services", 4_096, 1, 10_000),
            Self::Ports => (
                "ports",
                "ports of services (any_port and fragments are one each)",
                65_536,
                1,
                100_000,
            ),
            Self::Pools => ("pools", "pools", 4_096, 1, 10_000),
            Self::Groups => {
                ("groups", "groups (a pool's backends in one region)", 4_096, 1, 40_000)
            }
            Self::Backends => ("backends", "distinct backend addresses", 16_384, 1, 200_000),
            Self::PoolBackends => ("pool-backends", "backends in all", 32_768, 1, 400_000),
            Self::LimitedBackends => {
                ("limited-backends", "backends with a limit of their own", 16_384, 1, 400_000)
            }
            Self::Flows => ("flows", "cells of the flow table", 1 << 20, 4_096, 1 << 26),
        };
        Terms { setting, what, default, least, most }
    }

    /// Name of the setting.
    pub const fn setting(self) -> &'static str {
        self.terms().setting
    }

    /// What it counts, in the plural.
    pub const fn what(self) -> &'static str {
        self.terms().what
    }

    /// The setting's value if it is not set and no map is pinned.
    pub const fn default_value(self) -> u32 {
        self.terms().default
    }

    /// The least value of the setting.
    pub const fn least(self) -> u32 {
        self.terms().least
    }

    /// The greatest value of the setting. Below it every packed word of the ABI has enough bits.
    pub const fn most(self) -> u32 {
        self.terms().most
    }
}

/// How much of everything the maps have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSizes([u32; Size::ALL.len()]);

impl Default for MapSizes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Versions of a pool that exist at a time: the current one, the previous one, and the next.
const VERSIONS: u32 = 3;
/// Generations that exist at a time.
const GENERATIONS: u32 = 2;

impl MapSizes {
    /// All settings at their defaults.
    pub const DEFAULT: Self = {
        let mut numbers = [0; Size::ALL.len()];
        let mut at = 0;
        while at < Size::ALL.len() {
            numbers[at] = Size::ALL[at].default_value();
            at += 1;
        }
        Self(numbers)
    };

    /// How many of something a configuration may have, or the flow table.
    pub const fn get(&self, size: Size) -> u32 {
        self.0[size as usize]
    }

    /// The same with another number of something.
    #[must_use]
    pub const fn with(mut self, size: Size, number: u32) -> Self {
        self.0[size as usize] = number;
        self
    }

    /// Services, by index.
    pub const fn services(&self) -> u32 {
        self.get(Size::Services) + 1
    }

    /// Records of services, of two generations; index 0 is never used.
    pub const fn service_records(&self) -> u32 {
        GENERATIONS * self.get(Size::Ports) + 1
    }

    /// Words of the index of services.
    pub const fn service_index(&self) -> u32 {
        index_words(self.get(Size::Ports))
    }

    /// Pools, by index.
    pub const fn pools(&self) -> u32 {
        self.get(Size::Pools) + 1
    }

    /// Versions of pools.
    pub const fn descriptors(&self) -> u32 {
        VERSIONS * self.pools()
    }

    /// Groups, published and in preparation together.
    pub const fn groups(&self) -> u32 {
        GENERATIONS * self.get(Size::Groups) + 1
    }

    /// Standby words.
    pub const fn standbys(&self) -> u32 {
        STANDBYS_PER_GROUP * self.groups()
    }

    /// Member words, published and in preparation together.
    pub const fn members(&self) -> u32 {
        GENERATIONS * self.get(Size::PoolBackends)
    }

    /// Backends, by index.
    pub const fn backends(&self) -> u32 {
        self.get(Size::Backends) + 1
    }

    /// The packet path's own limiters and those of groups, which come first: only these have counters.
    pub const fn group_limiters(&self) -> u32 {
        FIRST_LIMITER + GENERATIONS * self.get(Size::Groups)
    }

    /// All limiters: behind those of groups, those of members with a limit of their own.
    pub const fn limiters(&self) -> u32 {
        self.group_limiters() + GENERATIONS * self.get(Size::LimitedBackends)
    }

    /// Buckets of the flow table, a power of two.
    pub const fn flow_buckets(&self) -> u32 {
        self.get(Size::Flows).next_power_of_two() / CELLS
    }

    /// Lines of the flow table's map.
    pub const fn flow_lines(&self) -> u32 {
        HEAD_LINES + self.flow_buckets()
    }

    /// The same with a flow table of so many lines, if a setting can ask for that.
    #[must_use]
    pub const fn with_flow_lines(self, lines: u32) -> Self {
        let cells = lines.saturating_sub(HEAD_LINES).saturating_mul(CELLS);
        let is_possible = cells >= Size::Flows.least() && cells <= Size::Flows.most();
        if is_possible { self.with(Size::Flows, cells) } else { self }
    }

    /// Entries of a map by its name; `None`: no setting sizes it. ([`super::arrays::Array::entries`] has the arrays.)
    pub fn entries(&self, map: &str) -> Option<u32> {
        Some(match map {
            ADDRESSES => GENERATIONS * self.get(Size::Services),
            SERVICE_COUNTERS => self.services(),
            SHARED_BACKENDS => self.members(),
            GROUP_COUNTERS => self.group_limiters(),
            BACKEND_COUNTERS => self.backends(),
            FLOWS => self.flow_lines(),
            _ => return None,
        })
    }

    /// The settings' values, by [`Size`].
    pub const fn numbers(&self) -> [u32; Size::ALL.len()] {
        self.0
    }

    /// The sizes with these [`Self::numbers`]; `None`: one is not in its setting's range.
    pub fn from_numbers(numbers: [u32; Size::ALL.len()]) -> Option<Self> {
        let all_in_range = Size::ALL
            .into_iter()
            .zip(numbers)
            .all(|(size, number)| (size.least()..=size.most()).contains(&number));
        all_in_range.then_some(Self(numbers))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::abi::{
        arrays::Array,
        backend::{BackendStateWord, shared_key, split_shared_key},
        connection::Placement,
        limits::MAX_NEXT_HOPS,
        member::{Accepts, MemberWord},
        pool::PoolWord,
    };
    use crate::flow_table::Place;

    fn most() -> MapSizes {
        let all = Size::ALL.into_iter();
        all.fold(MapSizes::DEFAULT, |sizes, size| sizes.with(size, size.most()))
    }

    #[test]
    fn settings_have_a_range_with_the_default_in_it() {
        for (at, size) in Size::ALL.into_iter().enumerate() {
            assert_eq!(size as usize, at);
            assert!((size.least()..=size.most()).contains(&size.default_value()), "{size:?}");
            assert_eq!(MapSizes::DEFAULT.get(size), size.default_value());
        }
    }

    #[test]
    fn maps_have_what_a_configuration_may_have_and_the_next_generation() {
        let small = MapSizes::DEFAULT
            .with(Size::Services, 8)
            .with(Size::Pools, 5)
            .with(Size::Groups, 6)
            .with(Size::PoolBackends, 30)
            .with(Size::LimitedBackends, 4)
            .with(Size::Backends, 20)
            .with(Size::Flows, 4_100);
        for (map, entries) in [
            (SERVICE_COUNTERS, 9),
            (ADDRESSES, 16),
            (GROUP_COUNTERS, 16),
            (BACKEND_COUNTERS, 21),
            (SHARED_BACKENDS, 60),
            // 8,192 cells, four a line, and the head's 64.
            (FLOWS, 2_112),
        ] {
            assert_eq!(small.entries(map), Some(entries), "{map}");
        }
        assert_eq!(small.entries("VERDICT_COUNTERS"), None);
        for (array, entries) in [
            (Array::Services, 131_073),
            // A head of a cache line, and two areas of four entries a key and 32 more.
            (Array::ServiceIndex, 8 + 2 * (262_144 + 32)),
            (Array::Pools, 6),
            (Array::Descriptors, 18),
            (Array::Groups, 13),
            (Array::Standbys, 104),
            (Array::Members, 60),
            (Array::Limiters, 24),
            (Array::BackendStates, 21),
        ] {
            assert_eq!(array.entries(&small), entries, "{array:?}");
        }
    }

    #[test]
    fn numbers_are_read_back_if_they_are_in_their_ranges() {
        for sizes in [MapSizes::DEFAULT, most()] {
            assert_eq!(MapSizes::from_numbers(sizes.numbers()), Some(sizes));
        }
        for size in Size::ALL {
            for number in [size.least() - 1, size.most() + 1] {
                let mut numbers = MapSizes::DEFAULT.numbers();
                numbers[size as usize] = number;
                assert_eq!(MapSizes::from_numbers(numbers), None, "{size:?}");
            }
        }
    }

    #[test]
    fn packed_words_have_bits_for_the_highest_numbers() {
        let sizes = most();
        let (backend, pool) = (sizes.backends() - 1, sizes.pools() - 1);
        let hop = (MAX_NEXT_HOPS - 1) as u16;
        let member = MemberWord::new(backend, 255, Accepts::All, 255, hop);
        assert_eq!((member.backend(), member.incarnation()), (backend, 255));
        assert_eq!((member.accepts(), member.next_hop()), (Accepts::All, hop));
        let state = BackendStateWord::new(255, Accepts::All, hop, pool);
        assert_eq!((state.pool(), state.next_hop(), state.is_shared()), (pool, hop, false));
        assert_eq!(split_shared_key(shared_key(pool, backend)), (pool, backend));
        let placed = Placement { backend, incarnation: 255 };
        assert_eq!(Place::new(placed, u32::MAX).placement(), placed);
        let versions = (sizes.descriptors() - 1, sizes.descriptors() - 2);
        let word = PoolWord::new(versions.0, versions.1);
        assert_eq!((word.now(), word.next()), versions);
    }

    #[test]
    fn names_are_those_of_a_settings_file() {
        let names: Vec<_> = Size::ALL.iter().map(|size| size.setting()).collect();
        for name in &names {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
        }
        let sorted: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(sorted.len(), names.len(), "{names:?}");
    }
}
