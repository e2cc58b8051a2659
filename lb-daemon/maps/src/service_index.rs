//! Writes the index of services, whose rules are at the head of [`lb_common::service_index`].
//!
//! Entries are set and removed in place. If the area in force has too few empty entries, or no room where a key must
//! be, the other area is filled with all services and published by one store.

use std::collections::{HashMap, HashSet};

use lb_common::{
    abi::service::{Service, ServiceKey},
    service_index::{
        HEAD, IndexEntry, IndexHead, MAX_PROBES, ServiceIndex, area_bits, area_start, area_words,
        tag,
    },
};

/// Seeds that are tried before an area is made larger.
const SEEDS: u32 = 64;

/// The memory of both maps, shared with the packet program.
pub(super) trait IndexMemory: ServiceIndex {
    /// Stores a word, after everything that was stored before.
    fn set_word(&self, at: u32, word: u64);
    fn set_record(&self, index: u32, service: &Service);

    fn entry(&self, at: u32) -> IndexEntry {
        entry(self, at)
    }
}

fn entry(memory: &(impl ServiceIndex + ?Sized), at: u32) -> IndexEntry {
    IndexEntry(memory.index_word(at).unwrap_or(0))
}

/// What is in the index, and what of it is free.
#[derive(Debug)]
pub(super) struct ServiceWriter {
    /// Keys that the index was made for. Twice as many can be there during a change.
    capacity: u32,
    head: IndexHead,
    /// Position and record of each key.
    entries: HashMap<ServiceKey, Place>,
    /// Entries of removed keys that are not empty again.
    removed: u32,
    /// Records that nothing names.
    free: Vec<u32>,
    /// Records that packets may still read, until a grace period has passed.
    retired: Vec<u32>,
    /// Whether packets may still read the area that is not in force.
    is_other_read: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: u32,
    record: u32,
}

/// A grace period must pass first, or there are more services than the index was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for {0} more services")]
pub struct IndexFull(pub usize);

impl ServiceWriter {
    /// Reads what is published. Wait for a grace period before the first change, because another writer may have
    /// removed something a moment ago.
    pub(super) fn open(memory: &impl ServiceIndex, capacity: u32) -> Self {
        let head = IndexHead(memory.index_word(HEAD).unwrap_or(0));
        let mut entries = HashMap::new();
        let mut removed = 0;
        for at in area(head) {
            let entry = entry(memory, at);
            removed += u32::from(entry == IndexEntry::REMOVED);
            let Some(record) = entry.record() else { continue };
            if let Some(service) = memory.record(record) {
                entries.insert(service.key, Place { at, record });
            }
        }
        let named: HashSet<u32> = entries.values().map(|place| place.record).collect();
        // From the end, so that low records are used first.
        let free = (1..=2 * capacity).rev().filter(|record| !named.contains(record)).collect();
        let retired = Vec::new();
        Self { capacity, head, entries, removed, free, retired, is_other_read: false }
    }

    /// Publishes services, each by one store, and replaces those with the same keys. Then unpublishes the services of
    /// `removed`. If this needs the other area, one store does both.
    ///
    /// # Errors
    /// [`IndexFull`]: do it again after [`Self::released`]. Part of it may be done.
    pub(super) fn change(
        &mut self,
        memory: &impl IndexMemory,
        services: &[Service],
        removed: &[ServiceKey],
    ) -> Result<(), IndexFull> {
        if self.free.len() < services.len() {
            return Err(IndexFull(services.len()));
        }
        let (present, new): (Vec<_>, Vec<_>) =
            services.iter().partition(|service| self.entries.contains_key(&service.key));
        for service in present {
            self.replace(memory, service);
        }
        let mut new = &new[..];
        if self.has_room(new.len()) {
            let inserted = new.iter().take_while(|service| self.insert(memory, service)).count();
            new = &new[inserted..];
        }
        if !new.is_empty() {
            self.rebuild(memory, new, removed)?;
        }
        self.remove(memory, removed);
        if self.is_too_large() && !self.is_other_read {
            self.rebuild(memory, &[], &[])?;
        }
        Ok(())
    }

    /// A grace period has passed since all changes so far.
    pub(super) fn released(&mut self) {
        self.free.append(&mut self.retired);
        self.is_other_read = false;
    }

    /// Whether so many keys may be added to the area in force.
    fn has_room(&self, new: usize) -> bool {
        let keys = self.entries.len() + new;
        self.head.0 != 0
            && keys <= self.capacity as usize
            && keys + self.removed as usize <= 1 << (self.head.bits() - 1)
    }

    /// Whether the area in force takes much more of the processor's cache than it needs to.
    fn is_too_large(&self) -> bool {
        self.head.0 != 0 && area_bits(self.entries.len() as u32) + 3 < self.head.bits()
    }

    fn remove(&mut self, memory: &impl IndexMemory, keys: &[ServiceKey]) {
        for key in keys {
            let Some(place) = self.entries.remove(key) else { continue };
            memory.set_word(place.at, IndexEntry::REMOVED.0);
            self.retired.push(place.record);
            self.removed += 1;
            self.empty_back_from(memory, place.at);
        }
    }

    fn write_record(&mut self, memory: &impl IndexMemory, service: &Service) -> Option<u32> {
        let record = self.free.pop()?;
        memory.set_record(record, service);
        Some(record)
    }

    fn replace(&mut self, memory: &impl IndexMemory, service: &Service) {
        let Some(record) = self.write_record(memory, service) else { return };
        if let Some(place) = self.entries.get_mut(&service.key) {
            let tag = tag(&service.key, self.head.seed());
            memory.set_word(place.at, IndexEntry::new(tag, record).0);
            self.retired.push(std::mem::replace(&mut place.record, record));
        }
    }

    /// Sets a new key. False, without any change, if no entry is free where a look-up would find it.
    fn insert(&mut self, memory: &impl IndexMemory, service: &Service) -> bool {
        let tag = tag(&service.key, self.head.seed());
        let first = self.head.first(tag);
        let is_free = |at: &u32| memory.entry(*at).record().is_none();
        let Some(at) = (first..first + MAX_PROBES).find(is_free) else { return false };
        let Some(record) = self.write_record(memory, service) else { return false };
        self.removed -= u32::from(memory.entry(at) == IndexEntry::REMOVED);
        memory.set_word(at, IndexEntry::new(tag, record).0);
        self.entries.insert(service.key, Place { at, record });
        true
    }

    /// Makes entries of removed keys empty that no look-up needs to pass, from the last one backwards.
    fn empty_back_from(&mut self, memory: &impl IndexMemory, last: u32) {
        let area = area(self.head);
        let is_empty = |at: u32| memory.entry(at) == IndexEntry::EMPTY;
        if area.contains(&(last + 1)) && !is_empty(last + 1) {
            return;
        }
        for at in (area.start..=last).rev() {
            if memory.entry(at) != IndexEntry::REMOVED {
                break;
            }
            memory.set_word(at, IndexEntry::EMPTY.0);
            self.removed -= 1;
        }
    }

    /// Fills the other area with all services but the removed ones, and with new ones, and publishes it.
    fn rebuild(
        &mut self,
        memory: &impl IndexMemory,
        new: &[&Service],
        removed: &[ServiceKey],
    ) -> Result<(), IndexFull> {
        let full = IndexFull(new.len());
        if self.is_other_read {
            return Err(full);
        }
        let gone: HashSet<&ServiceKey> = removed.iter().collect();
        let kept = self.entries.keys().filter(|key| !gone.contains(key));
        let keys: Vec<_> = kept.chain(new.iter().map(|service| &service.key)).collect();
        let (bits, seed, offsets) = self.arrange(&keys).ok_or(full)?;
        let is_second = self.head.start() == area_start(self.capacity, false);
        let head = IndexHead::new(area_start(self.capacity, is_second), bits, seed);
        let at = offsets.into_iter().map(|offset| head.start() + offset);
        let mut positions: HashMap<ServiceKey, u32> = keys.into_iter().copied().zip(at).collect();
        area(head).for_each(|at| memory.set_word(at, IndexEntry::EMPTY.0));
        let mut entries = HashMap::with_capacity(positions.len());
        let mut set = |key: ServiceKey, record: u32| {
            let Some(at) = positions.remove(&key) else { return false };
            memory.set_word(at, IndexEntry::new(tag(&key, head.seed()), record).0);
            entries.insert(key, Place { at, record });
            true
        };
        for service in new {
            let record = self.free.pop().ok_or(full)?;
            memory.set_record(record, service);
            set(service.key, record);
        }
        for (key, place) in &self.entries {
            if !set(*key, place.record) {
                self.retired.push(place.record);
            }
        }
        memory.set_word(HEAD, head.0);
        self.is_other_read = self.head.0 != 0;
        (self.head, self.entries, self.removed) = (head, entries, 0);
        Ok(())
    }

    /// Bits and seed of an area, and the offset of each key in it, so that each is found within the bound.
    fn arrange(&self, keys: &[&ServiceKey]) -> Option<(u32, u32, Vec<u32>)> {
        let most = area_bits(self.capacity);
        let least = area_bits(keys.len() as u32).min(most);
        for bits in least..=most {
            for seed in 0..SEEDS {
                if let Some(offsets) = offsets(keys, bits, seed) {
                    return Some((bits, seed, offsets));
                }
            }
        }
        None
    }
}

/// The published services, by key.
pub(super) fn services(memory: &impl ServiceIndex) -> Vec<Service> {
    let head = IndexHead(memory.index_word(HEAD).unwrap_or(0));
    let records = area(head).filter_map(|at| memory.record(entry(memory, at).record()?));
    let mut services: Vec<_> = records.map(|record| *record).collect();
    services.sort_by_key(|service| service.key);
    services
}

/// Positions of an area; none if there is no area.
fn area(head: IndexHead) -> std::ops::Range<u32> {
    if head.0 == 0 { 0..0 } else { head.start()..head.start() + area_words(head.bits()) }
}

/// Offsets of keys in an area; `None` if one would be out of the bound.
fn offsets(keys: &[&ServiceKey], bits: u32, seed: u32) -> Option<Vec<u32>> {
    let head = IndexHead::new(1, bits, seed);
    let mut is_taken = vec![false; area_words(bits) as usize];
    let offset = |key: &&ServiceKey| {
        let first = (head.first(tag(key, head.seed())) - 1) as usize;
        let free = is_taken[first..first + MAX_PROBES as usize].iter().position(|taken| !taken)?;
        is_taken[first + free] = true;
        Some((first + free) as u32)
    };
    keys.iter().map(offset).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        net::IpAddr,
        sync::atomic::{AtomicBool, AtomicU64, Ordering},
    };

    use lb_common::{
        abi::pod::{bytes_of, from_bytes},
        service_index::{find, index_words},
    };
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    const WORDS: usize = size_of::<Service>() / 8;

    /// Both maps as atomics. Records are read word by word, as packets read them.
    struct Memory {
        words: Vec<AtomicU64>,
        records: Vec<[AtomicU64; WORDS]>,
    }

    struct Copied(Service);

    impl std::ops::Deref for Copied {
        type Target = Service;
        fn deref(&self) -> &Service {
            &self.0
        }
    }

    impl Memory {
        fn new(capacity: u32) -> Self {
            let words = (0..index_words(capacity)).map(|_| AtomicU64::new(0)).collect();
            let records =
                (0..=2 * capacity).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
            Self { words, records }
        }
    }

    impl IndexMemory for Memory {
        fn set_word(&self, at: u32, word: u64) {
            self.words[at as usize].store(word, Ordering::Release);
        }
        fn set_record(&self, index: u32, service: &Service) {
            let words = &self.records[index as usize];
            for (word, bytes) in words.iter().zip(bytes_of(service).chunks_exact(8)) {
                word.store(u64::from_ne_bytes(bytes.try_into().unwrap()), Ordering::Release);
            }
        }
    }

    impl ServiceIndex for Memory {
        type Record<'i> = Copied;
        fn index_word(&self, at: u32) -> Option<u64> {
            Some(self.words.get(at as usize)?.load(Ordering::Acquire))
        }
        fn record(&self, index: u32) -> Option<Copied> {
            let words = self.records.get(index as usize)?;
            let words = words.iter().map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
            from_bytes(words.collect::<Vec<_>>().as_flattened()).map(Copied)
        }
    }

    fn key(n: u32) -> ServiceKey {
        let address = match n % 3 {
            0 => IpAddr::from([203, 0, 113, (n / 3 % 7) as u8]),
            1 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, (n / 3 % 7) as u16]),
            // A v4-mapped destination of IPv6.
            _ => IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0xcb00, 0x7100 + (n / 3 % 7) as u16]),
        };
        ServiceKey::new(address, (n / 21) as u16, if n.is_multiple_of(2) { 6 } else { 17 })
    }

    fn service(n: u32, index: u32) -> Service {
        Service { key: key(n), index, pool: index + 1, flags: index + 2 }
    }

    /// Of these keys, each that the model has is found with its record, and no other is found.
    fn assert_same(memory: &Memory, model: &BTreeMap<ServiceKey, Service>, keys: u32) {
        for n in 0..keys {
            let found = find(memory, &key(n)).map(|found| *found);
            assert_eq!(found, model.get(&key(n)).copied(), "{n}");
        }
    }

    const CAPACITY: u32 = 100;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_history_is_found_as_a_map_has_it(
            changes in vec((vec((0..3 * CAPACITY, any::<u16>()), 0..60), vec(any::<Index>(), 0..60), any::<bool>()), 1..30),
        ) {
            let memory = Memory::new(CAPACITY);
            let mut writer = ServiceWriter::open(&memory, CAPACITY);
            let mut model: BTreeMap<ServiceKey, Service> = BTreeMap::new();
            for (set, removed, is_restart) in changes {
                let removed: Vec<ServiceKey> = if model.is_empty() { Vec::new() } else {
                    let keys: Vec<_> = model.keys().copied().collect();
                    removed.iter().map(|which| keys[which.index(keys.len())]).collect()
                };
                let set: BTreeMap<_, _> = set.into_iter()
                    .map(|(n, index)| (key(n), service(n, index.into())))
                    .filter(|(key, _)| !removed.contains(key))
                    .collect();
                let mut next = model.clone();
                removed.iter().for_each(|key| { next.remove(key); });
                next.extend(set.clone());
                if next.len() > CAPACITY as usize {
                    continue;
                }
                let set: Vec<_> = set.into_values().collect();
                if writer.change(&memory, &set, &removed).is_err() {
                    writer.released();
                    prop_assert_eq!(writer.change(&memory, &set, &removed), Ok(()));
                }
                model = next;
                assert_same(&memory, &model, 3 * CAPACITY);
                prop_assert_eq!(services(&memory), model.values().copied().collect::<Vec<_>>());
                if is_restart {
                    let again = ServiceWriter::open(&memory, CAPACITY);
                    prop_assert_eq!(again.removed, writer.removed);
                    prop_assert_eq!(&again.entries, &writer.entries);
                    writer = again;
                }
                // No record is lost, and none is free twice.
                let named = writer.entries.values().map(|place| place.record);
                let all = named.chain(writer.free.iter().copied()).chain(writer.retired.iter().copied());
                let mut all: Vec<u32> = all.collect();
                all.sort_unstable();
                prop_assert_eq!(all, (1..=2 * CAPACITY).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_full_index_changes_all_of_its_services_at_once() {
        const CAPACITY: u32 = 20_000;
        let memory = Memory::new(CAPACITY);
        let mut writer = ServiceWriter::open(&memory, CAPACITY);
        let made = |from| (from..from + CAPACITY).map(|n| service(n, n)).collect::<Vec<_>>();
        for round in 0..4 {
            let removed: Vec<_> = services(&memory).iter().map(|service| service.key).collect();
            writer.released();
            let (old, new) = (made(round * CAPACITY), made((round + 1) * CAPACITY));
            writer.change(&memory, &new, &removed).unwrap();
            assert!(new.iter().all(|service| *find(&memory, &service.key).unwrap() == *service));
            assert!(old.iter().all(|service| find(&memory, &service.key).is_none()));
        }
        assert_eq!(writer.change(&memory, &made(0), &[]), Err(IndexFull(20_000)));
    }

    #[test]
    fn an_area_is_filled_again_only_after_a_grace_period() {
        let memory = Memory::new(10 * CAPACITY);
        let mut writer = ServiceWriter::open(&memory, 10 * CAPACITY);
        let services = |keys: std::ops::Range<u32>| keys.map(|n| service(n, n)).collect::<Vec<_>>();
        writer.change(&memory, &services(0..10), &[]).unwrap();
        // Nothing was in force before the first area, so the second one is free.
        writer.change(&memory, &services(10..100), &[]).unwrap();
        let refused = writer.change(&memory, &services(100..1_000), &[]);
        assert_eq!(refused, Err(IndexFull(900)));
        let there: BTreeMap<_, _> = services(0..100).into_iter().map(|it| (it.key, it)).collect();
        assert_same(&memory, &there, 1_000);
        writer.released();
        assert_eq!(writer.change(&memory, &services(100..1_000), &[]), Ok(()));
    }

    #[test]
    fn few_services_after_many_take_a_small_area() {
        let memory = Memory::new(CAPACITY);
        let mut writer = ServiceWriter::open(&memory, CAPACITY);
        let all: Vec<_> = (0..CAPACITY).map(|n| service(n, n)).collect();
        writer.change(&memory, &all, &[]).unwrap();
        let bits = writer.head.bits();
        writer.released();
        let gone: Vec<_> = (1..CAPACITY).map(key).collect();
        writer.change(&memory, &[], &gone).unwrap();
        assert!(bits == 9 && writer.head.bits() == 9, "three bits more than needed is near enough");
        let large = Memory::new(10 * CAPACITY);
        let mut writer = ServiceWriter::open(&large, 10 * CAPACITY);
        let all: Vec<_> = (0..10 * CAPACITY).map(|n| service(n, n)).collect();
        writer.change(&large, &all, &[]).unwrap();
        writer.released();
        let gone: Vec<_> = (1..10 * CAPACITY).map(key).collect();
        writer.change(&large, &[], &gone).unwrap();
        assert_eq!(writer.head.bits(), 6);
        assert_same(&large, &[(key(0), service(0, 0))].into(), 10 * CAPACITY);
    }

    /// Readers hold no lock. A reader counts the look-ups that it ends, and the writer takes two of each reader for a
    /// grace period.
    #[test]
    fn readers_never_miss_a_service_that_stands() {
        const CAPACITY: u32 = 4_096;
        const STANDING: u32 = 40;
        const ROUNDS: u32 = 10_000;
        let memory = Memory::new(CAPACITY);
        let mut writer = ServiceWriter::open(&memory, CAPACITY);
        let standing: Vec<_> = (0..STANDING).map(|n| service(n, n)).collect();
        writer.change(&memory, &standing, &[]).unwrap();
        let is_over = AtomicBool::new(false);
        let looked: [AtomicU64; 2] = Default::default();
        let mut rebuilt = 0;
        std::thread::scope(|scope| {
            let readers: Vec<_> = looked
                .iter()
                .map(|looked| {
                    scope.spawn(|| {
                        while !is_over.load(Ordering::Relaxed) {
                            for service in &standing {
                                let found = find(&memory, &service.key).map(|found| found.key);
                                assert_eq!(found, Some(service.key));
                                looked.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    })
                })
                .collect();
            let grace = |writer: &mut ServiceWriter| {
                let before: Vec<_> = looked.iter().map(|it| it.load(Ordering::SeqCst)).collect();
                for ((looked, before), reader) in looked.iter().zip(before).zip(&readers) {
                    while looked.load(Ordering::SeqCst) < before + 2 {
                        assert!(!reader.is_finished(), "a reader missed a service");
                        std::thread::yield_now();
                    }
                }
                writer.released();
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for round in 0..ROUNDS {
                    let before = writer.head;
                    // Others come and go in front of and between those that stand, which are replaced now and then.
                    let mut set = vec![service(STANDING + round % 211, round)];
                    let mut gone = vec![key(STANDING + (round + 100) % 211)];
                    if round.is_multiple_of(7) {
                        set.push(service(round % STANDING, round));
                    }
                    // So many that they take a larger area, and then a smaller one again.
                    match round % 500 {
                        0 => set.extend((1_000..3_500).map(|n| service(n, round))),
                        250 => gone.extend((1_000..3_500).map(key)),
                        50 | 300 => grace(&mut writer),
                        _ => {}
                    }
                    if writer.change(&memory, &set, &gone).is_err() {
                        grace(&mut writer);
                        writer.change(&memory, &set, &gone).unwrap();
                    }
                    rebuilt += u32::from(writer.head != before);
                }
            }));
            is_over.store(true, Ordering::Relaxed);
            result.unwrap();
        });
        assert!(rebuilt > 10, "the area changed {rebuilt} times");
    }
}
