//! The balancer's arrays, which are regions of one map ([`super::names::ARRAYS`]): a packet looks the map up once, and
//! every element is then an address away. A map of its own for each array would cost a look-up for each element, whose
//! index goes through memory and whose result has to be checked.
//!
//! The map has one element, which begins with the [`MapSizes`] that it was made for: these say where everything is.
//! The loader tells the program by [`LAYOUT`]. What the loader measured of the packet path's clock follows
//! ([`CLOCK_AHEAD_WORD`]).

use super::{
    backend::Backend,
    limiter::{ANSWER_WORDS, Limiter},
    limits::{MAX_INTERFACES, MAX_NEXT_HOPS},
    next_hop::NextHopEntry,
    pool::{Descriptor, Group, PoolLine},
    service::{ANY_PORT_WORDS, Service},
    sizes::{MapSizes, Size},
    zone::{ZONES, Zone},
};

/// The program's global with [`ArrayLayout::numbers`].
pub const LAYOUT: &str = "ARRAY_LAYOUT";

/// An array.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Array {
    /// [`NextHopEntry`]s.
    NextHops,
    /// [`super::next_hop::InterfaceWord`]s, by interface index.
    Interfaces,
    /// Bonds' interface indices, by the index of a port of theirs; 0: a port of none.
    Bonds,
    /// Words of bits: addresses that may have an any-port service ([`super::service::any_port_bit`]).
    AnyPorts,
    /// [`Zone`]s.
    Zones,
    /// Arrivals of answers, by hash of whom they go to, or of the VIP ([`ANSWER_WORDS`]).
    Answers,
    /// The index of [`Self::Services`] by [`super::service::ServiceKey`] ([`crate::service_index`]).
    ServiceIndex,
    /// [`Service`]s, in no order.
    Services,
    /// [`PoolLine`]s.
    Pools,
    /// [`Descriptor`]s.
    Descriptors,
    /// [`super::member::MemberWord`]s.
    Members,
    /// [`Backend`]s.
    Backends,
    /// [`Group`]s.
    Groups,
    /// [`super::slot::StandbyWord`]s: a group's stand at `group * STANDBYS_PER_GROUP`.
    Standbys,
    /// Limiter indices, by index of the member's word: the limit of its own that a member has.
    MemberLimiters,
    /// [`Limiter`]s.
    Limiters,
    /// [`super::backend::BackendStateWord`]s, by backend index.
    BackendStates,
    /// Numbers of cells of the flow table, by pool; 0: of all pools. Packets add, and the daemon sets them right.
    FlowCounts,
}

/// The first one that a setting sizes. The places of those before it are constants.
const FIRST_SIZED: Array = Array::ServiceIndex;

/// Number of arrays.
const COUNT: usize = Array::ALL.len();

impl Array {
    /// All of them, in the order of the map.
    pub const ALL: [Self; 18] = [
        Self::NextHops,
        Self::Interfaces,
        Self::Bonds,
        Self::AnyPorts,
        Self::Zones,
        Self::Answers,
        Self::ServiceIndex,
        Self::Services,
        Self::Pools,
        Self::Descriptors,
        Self::Members,
        Self::Backends,
        Self::Groups,
        Self::Standbys,
        Self::MemberLimiters,
        Self::Limiters,
        Self::BackendStates,
        Self::FlowCounts,
    ];

    /// How many elements it has.
    pub const fn entries(self, sizes: &MapSizes) -> u32 {
        match self {
            Self::NextHops => MAX_NEXT_HOPS,
            Self::Interfaces | Self::Bonds => MAX_INTERFACES,
            Self::AnyPorts => ANY_PORT_WORDS,
            Self::Zones => ZONES,
            Self::Answers => ANSWER_WORDS,
            Self::ServiceIndex => sizes.service_index(),
            Self::Services => sizes.service_records(),
            Self::Pools | Self::FlowCounts => sizes.pools(),
            Self::Descriptors => sizes.descriptors(),
            Self::Members | Self::MemberLimiters => sizes.members(),
            Self::Backends | Self::BackendStates => sizes.backends(),
            Self::Groups => sizes.groups(),
            Self::Standbys => sizes.standbys(),
            Self::Limiters => sizes.limiters(),
        }
    }

    /// Bytes of an element, a multiple of 8.
    pub const fn element_bytes(self) -> u32 {
        (match self {
            Self::NextHops => size_of::<NextHopEntry>(),
            Self::Zones => size_of::<Zone>(),
            Self::Services => size_of::<Service>(),
            Self::Pools => size_of::<PoolLine>(),
            Self::Descriptors => size_of::<Descriptor>(),
            Self::Backends => size_of::<Backend>(),
            Self::Groups => size_of::<Group>(),
            Self::Limiters => size_of::<Limiter>(),
            _ => size_of::<u64>(),
        }) as u32
    }

    /// Where it is, if that is a constant.
    #[inline(always)]
    pub const fn fixed_region(self) -> Option<Region> {
        let is_fixed = (self as u8) < FIRST_SIZED as u8;
        if is_fixed { Some(ArrayLayout::DEFAULT.region(self)) } else { None }
    }
}

/// Where an array is in the map's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Bytes before it, a multiple of [`CACHE_LINE`].
    pub start: u32,
    /// Elements of it.
    pub entries: u32,
}

/// Where each array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLayout {
    regions: [Region; COUNT],
    bytes: u32,
}

const CACHE_LINE: u32 = 64;
/// Numbers at the map's beginning: the [`MapSizes`] by [`Size`], 32 bits each; the last word is [`CLOCK_AHEAD_WORD`].
const HEAD_BYTES: u32 = CACHE_LINE;
/// Word of the map by how many nanoseconds the packet path's clock is ahead of `CLOCK_MONOTONIC_COARSE`, signed. Each load
/// writes it. 0 in maps of versions that did not.
pub const CLOCK_AHEAD_WORD: usize = HEAD_BYTES as usize / size_of::<u64>() - 1;
const _: () = assert!(Size::ALL.len() * size_of::<u32>() <= CLOCK_AHEAD_WORD * size_of::<u64>());

/// 32-bit numbers of [`LAYOUT`].
pub const LAYOUT_NUMBERS: usize = 2 * COUNT;

impl ArrayLayout {
    /// The layout for [`MapSizes::DEFAULT`].
    pub const DEFAULT: Self = Self::new(&MapSizes::DEFAULT);

    /// The layout for some sizes. The settings' ranges keep it below 2^29 bytes, where the verifier stops counting
    /// (`BPF_MAX_VAR_OFF`).
    pub const fn new(sizes: &MapSizes) -> Self {
        let mut regions = [Region { start: 0, entries: 0 }; COUNT];
        let (mut at, mut start) = (0, HEAD_BYTES);
        while at < COUNT {
            let array = Array::ALL[at];
            let entries = array.entries(sizes);
            regions[at] = Region { start, entries };
            start += (entries * array.element_bytes()).next_multiple_of(CACHE_LINE);
            at += 1;
        }
        Self { regions, bytes: start }
    }

    /// Where an array is.
    pub const fn region(&self, array: Array) -> Region {
        self.regions[array as usize]
    }

    /// Bytes of the map's value.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Start and entries of each array, as the program has them.
    pub const fn numbers(&self) -> [u32; LAYOUT_NUMBERS] {
        let mut numbers = [0; LAYOUT_NUMBERS];
        let mut at = 0;
        while at < COUNT {
            numbers[2 * at] = self.regions[at].start;
            numbers[2 * at + 1] = self.regions[at].entries;
            at += 1;
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most() -> MapSizes {
        let all = Size::ALL.into_iter();
        all.fold(MapSizes::DEFAULT, |sizes, size| sizes.with(size, size.most()))
    }

    #[test]
    fn arrays_are_one_after_the_other_each_on_cache_lines_of_its_own() {
        for sizes in [MapSizes::DEFAULT, most(), MapSizes::DEFAULT.with(Size::Pools, 1)] {
            let layout = ArrayLayout::new(&sizes);
            let mut end = 64;
            for (at, array) in Array::ALL.into_iter().enumerate() {
                assert_eq!(array as usize, at);
                let Region { start, entries } = layout.region(array);
                assert_eq!((start, entries), (end, array.entries(&sizes)), "{array:?}");
                assert_eq!(array.element_bytes() % 8, 0);
                end = (start + entries * array.element_bytes()).div_ceil(64) * 64;
                assert_eq!(layout.numbers()[2 * at..][..2], [start, entries]);
            }
            assert_eq!(layout.bytes(), end);
            assert!(end < 1 << 29, "the verifier refuses offsets from there on");
        }
    }

    #[test]
    fn what_no_setting_sizes_is_always_in_the_same_place() {
        let (default, most) = (ArrayLayout::DEFAULT, ArrayLayout::new(&most()));
        for array in Array::ALL {
            let is_same = default.region(array).entries == most.region(array).entries;
            let expected = is_same.then(|| most.region(array));
            assert_eq!(array.fixed_region(), expected, "{array:?}");
        }
    }
}
