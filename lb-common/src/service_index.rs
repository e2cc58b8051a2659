//! The index of services: an open-addressing hash table in a plain array, whose look-up the kernel inlines.
//!
//! The array begins with a head, which names the area in force: a power of two of entries, and [`MAX_PROBES`] more,
//! so that no probe wraps round. An entry is one word that names a service's record. A look-up begins at the
//! entry that the key's tag leads to and goes on to the next one until it finds the key or an empty entry.
//!
//! One writer changes the index while packets read it. A key that is there before and after a change is found at any
//! moment, because:
//! - an entry stays where it is until its key is removed or another area is published;
//! - an entry is written and replaced by one store, after its record;
//! - a removed entry becomes [`IndexEntry::REMOVED`], which look-ups pass. It becomes empty only if the next entry is
//!   empty, so that no key is behind it;
//! - a record or area that was in force is used again only after a grace period.

use core::ops::Deref;

use crate::abi::service::{IPV4, Service, ServiceKey};

/// Entries that a look-up reads at most.
pub const MAX_PROBES: u32 = 32;

/// Position of the [`IndexHead`] in the array.
pub const HEAD: u32 = 0;

/// Position of the first area; the second one follows it. A cache line behind the head.
const FIRST_AREA: u32 = 8;

/// Entries for each key that an area has room for when it is made.
const ENTRIES_PER_KEY: u32 = 4;

/// Binary logarithm of the entries of an area for so many keys, at most 2^28: one in four to eight is taken, so that
/// most look-ups end at the first entry.
pub const fn area_bits(keys: u32) -> u32 {
    let entries = if keys < 16 { 64 } else { ENTRIES_PER_KEY * keys };
    entries.next_power_of_two().trailing_zeros()
}

/// Words of an area.
pub const fn area_words(bits: u32) -> u32 {
    (1 << bits) + MAX_PROBES
}

/// Position of an area, the first or the second one, in an index for so many keys.
pub const fn area_start(keys: u32, second: bool) -> u32 {
    FIRST_AREA + if second { area_words(area_bits(keys)) } else { 0 }
}

/// Words of an index for so many keys: while one of its two areas is in force, the other one can be filled.
pub const fn index_words(keys: u32) -> u32 {
    FIRST_AREA + 2 * area_words(area_bits(keys))
}

/// The area in force: `{first entry 32, seed of the hash 24, shift 8}` from the low end. Zero: there are no services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHead(pub u64);

impl IndexHead {
    /// An area of `1 << bits` entries (and [`MAX_PROBES`] more) from `start` on; `bits` is 1 to 31, and `start` is not
    /// [`HEAD`].
    pub const fn new(start: u32, bits: u32, seed: u32) -> Self {
        Self(start as u64 | (seed as u64 & 0xff_ffff) << 32 | (32 - bits as u64) << 56)
    }

    /// Position of the area's first entry.
    #[inline(always)]
    pub const fn start(self) -> u32 {
        self.0 as u32
    }

    /// Binary logarithm of the entries where a look-up can begin.
    pub const fn bits(self) -> u32 {
        32 - self.shift()
    }

    /// What the hash is mixed with: another seed puts the keys into other places.
    #[inline(always)]
    pub const fn seed(self) -> u64 {
        self.0 >> 32 & 0xff_ffff
    }

    #[inline(always)]
    const fn shift(self) -> u32 {
        (self.0 >> 56) as u32
    }

    /// Position of the entry where the look-up of a tag begins.
    #[inline(always)]
    pub const fn first(self, tag: u32) -> u32 {
        self.start().wrapping_add((tag as u64 >> self.shift()) as u32)
    }
}

/// An entry: `{tag of the key 32, index of the record 32}` from the high end. Record 0 is never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry(pub u64);

impl IndexEntry {
    /// No key is here, and none that began here or before is further on.
    pub const EMPTY: Self = Self(0);
    /// A key was here. Others may be further on.
    pub const REMOVED: Self = Self(u32::MAX as u64);

    /// The entry of a key with this tag.
    pub const fn new(tag: u32, record: u32) -> Self {
        Self((tag as u64) << 32 | record as u64)
    }

    /// The key's tag.
    #[inline(always)]
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Index of the key's record, if there is a key.
    pub const fn record(self) -> Option<u32> {
        match self.0 as u32 {
            0 | u32::MAX => None,
            record => Some(record),
        }
    }
}

const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;

#[inline(always)]
const fn mix(word: u64) -> u64 {
    let mixed = word.wrapping_mul(FIRST);
    mixed ^ mixed >> 32
}

/// The hash of a key under a seed, of which the high bits pick the entry and all bits tell keys apart.
#[inline(always)]
pub const fn tag(key: &ServiceKey, seed: u64) -> u32 {
    let mut mixed = seed;
    if key.version != IPV4 {
        mixed = mix(mixed ^ key.high_half());
        mixed = mix(mixed ^ key.address[2] as u64);
    }
    (mix(mixed ^ key.low_half()).wrapping_mul(SECOND) >> 32) as u32
}

/// The maps of the index. `None`: out of range.
pub trait ServiceIndex {
    /// A record, or a copy of one.
    type Record<'i>: Deref<Target = Service>
    where
        Self: 'i;

    /// A word of the index.
    fn index_word(&self, at: u32) -> Option<u64>;
    /// A service's record, immutable while an entry names it.
    fn record(&self, index: u32) -> Option<Self::Record<'_>>;
    /// Goes on with a look-up at a further entry: [`find_further`]. A packet program overrides it with a function that
    /// the kernel verifies once.
    #[inline(always)]
    fn find_further(&self, at: u32, tag: u32, key: &ServiceKey) -> Option<Self::Record<'_>> {
        self.record(find_further(self, at, tag, key)?)
    }
}

/// The service with a key.
#[inline(always)]
pub fn find<'i, I: ServiceIndex + ?Sized>(index: &'i I, key: &ServiceKey) -> Option<I::Record<'i>> {
    let head = IndexHead(index.index_word(HEAD)?);
    let tag = tag(key, head.seed());
    let at = head.first(tag);
    let entry = IndexEntry(index.index_word(at)?);
    if entry == IndexEntry::EMPTY {
        return None;
    }
    if entry.tag() == tag
        && let Some(service) = index.record(entry.0 as u32)
        && service.key.is(key)
    {
        return Some(service);
    }
    // Four look-ups in five end at the first entry.
    index.find_further(at.wrapping_add(1), tag, key)
}

/// The index of a key's record, from an entry behind its first one on.
#[inline(always)]
pub fn find_further<I: ServiceIndex + ?Sized>(
    index: &I,
    mut at: u32,
    tag: u32,
    key: &ServiceKey,
) -> Option<u32> {
    for _ in 1..MAX_PROBES {
        let entry = IndexEntry(index.index_word(at)?);
        if entry == IndexEntry::EMPTY {
            return None;
        }
        let record = entry.0 as u32;
        if entry.tag() == tag && index.record(record).is_some_and(|service| service.key.is(key)) {
            return Some(record);
        }
        at = at.wrapping_add(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::service::IPV6;
    use std::{collections::HashSet, vec::Vec};

    /// The formula on 128-bit integers.
    fn tag_by_hand(key: &ServiceKey, seed: u64) -> u32 {
        let words = key.address;
        let mask = u128::from(u64::MAX);
        let mix = |word: u128| {
            let mixed = (word * 0xbf58_476d_1ce4_e5b9) & mask;
            mixed ^ (mixed >> 32)
        };
        let low = u128::from(words[3])
            + (u128::from(key.port) << 32)
            + (u128::from(key.protocol) << 48)
            + (u128::from(key.version) << 56);
        let mut mixed = u128::from(seed);
        if key.version == 6 {
            mixed = mix(mixed ^ (u128::from(words[0]) + (u128::from(words[1]) << 32)));
            mixed = mix(mixed ^ u128::from(words[2]));
        }
        let last = (mix(mixed ^ low) * 0x94d0_49bb_1331_11eb) & mask;
        (last >> 32) as u32
    }

    proptest::proptest! {
        #[test]
        fn the_tag_follows_the_formula(
            address: [u32; 4], port: u16, protocol: u8, v6: bool, seed in 0_u64..1 << 24,
        ) {
            let version = if v6 { IPV6 } else { IPV4 };
            let key = ServiceKey { address, port, protocol, version };
            proptest::prop_assert_eq!(tag(&key, seed), tag_by_hand(&key, seed));
        }

        #[test]
        fn a_head_says_what_it_was_made_of(start in 1_u32.., bits in 1_u32..32, seed in 0_u32..1 << 24, tag: u32) {
            let head = IndexHead::new(start, bits, seed);
            let made = (head.start(), head.bits(), head.seed());
            proptest::prop_assert_eq!(made, (start, bits, u64::from(seed)));
            let first = u64::from(start) + (u64::from(tag) >> (32 - bits));
            proptest::prop_assert_eq!(head.first(tag), first as u32);
        }
    }

    /// Lengths of the runs of taken entries that decide how far a look-up goes.
    fn longest_probe(keys: &[ServiceKey], bits: u32, seed: u64) -> u32 {
        let mut taken = HashSet::new();
        let probes = keys.iter().map(|key| {
            let first = tag(key, seed) >> (32 - bits);
            let at = (first..).find(|at| taken.insert(*at)).unwrap();
            at - first + 1
        });
        probes.max().unwrap_or(0)
    }

    /// What configurations look like: one address with many ports, many addresses with one port, and both.
    #[test]
    fn usual_keys_are_found_within_the_bound() {
        let v4 = |n: u32| core::net::IpAddr::from((0xcb00_7100 + n).to_be_bytes());
        let v6 = |n: u32| {
            core::net::IpAddr::from((0x2001_0db8_u128 << 96 | u128::from(n)).to_be_bytes())
        };
        let ports: Vec<_> = (0..65_535).map(|port| ServiceKey::new(v4(0), port, 6)).collect();
        let ports6: Vec<_> = (0..65_535).map(|port| ServiceKey::new(v6(0), port, 17)).collect();
        let hosts: Vec<_> = (0..10_000).map(|n| ServiceKey::new(v4(n), 443, 6)).collect();
        let hosts6: Vec<_> = (0..10_000).map(|n| ServiceKey::new(v6(n), 443, 6)).collect();
        let both: Vec<_> = (0..100)
            .flat_map(|n| (1..=100).map(move |port| ServiceKey::new(v4(n * 8), port * 10, 6)))
            .collect();
        for (keys, bits) in [(ports, 18), (ports6, 18), (hosts, 16), (hosts6, 16), (both, 16)] {
            let longest = longest_probe(&keys, bits, 0);
            assert!(longest <= MAX_PROBES, "{longest} probes for {:?} …", keys[0]);
        }
    }
}
