//! Maps whose words are any.

use lb_common::{
    abi::{
        backend::{Backend, BackendStateWord},
        clock::{Coarse, Nanoseconds},
        counter::{Event, GroupCounter},
        limiter::LimitWord,
        member::{Accepts, MemberWord},
        next_hop::{InterfaceWord, NextHopEntry, NextHopWord},
        pod::{Pod, from_bytes},
        pool::{Descriptor, Group, PoolLine},
        service::{AddressWords, Service, ServiceKey, VipWord},
        slot::{SlotWord, StandbyWord, TableRef},
        zone::Zone,
    },
    flow_table::{Bucket, FlowCells},
    path::Tables,
    word::Snapshot,
};

const WORDS: usize = 16;

/// Maps of a few words, each in many places.
#[derive(Debug)]
pub struct Wild {
    words: [u64; WORDS],
    services: [Service; WORDS],
    descriptors: [Descriptor; 2],
    groups: [Group; 4],
    backends: [Backend; 4],
}

impl Wild {
    /// Takes maps off the front of some bytes; the second answer is the rest.
    pub fn take(data: &[u8]) -> Option<(Self, Vec<u8>)> {
        let (bytes, rest) = data.split_first_chunk::<{ 8 * WORDS }>()?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        let wild = Self {
            words,
            services: words.map(service),
            descriptors: [0, 8].map(|from| value(bytes, from)),
            groups: [0, 16, 40, 64].map(|from| value(bytes, from)),
            backends: [8, 32, 56, 96].map(|from| value(bytes, from)),
        };
        Some((wild, rest.to_vec()))
    }

    /// The word in a place of a map, which may be missing.
    fn word(&self, map: u32, maps: u64) -> Option<u64> {
        let mixed = (maps ^ u64::from(map) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (mixed & 0xf0 != 0xf0).then(|| self.words[mixed as usize % WORDS])
    }
}

/// A service whose key nothing compares.
fn service(word: u64) -> Service {
    let key = ServiceKey { address: [0; 4], port: 0, protocol: 0, version: 0 };
    let (index, pool, flags) = (word as u32 & 0xff, (word >> 8) as u32, (word >> 40) as u32);
    Service { key, index, pool, flags }
}

/// A map value of the bytes from one on, round and round.
fn value<T: Pod>(bytes: &[u8], from: usize) -> T {
    let bytes: Vec<u8> = bytes.iter().cycle().skip(from).take(size_of::<T>()).copied().collect();
    from_bytes(&bytes).unwrap()
}

fn of<T>(all: &[T], index: u32) -> Option<&T> {
    (index % 11 != 10).then(|| &all[index as usize % all.len()])
}

/// A bucket of any words, which another CPU changes all the time.
#[derive(Clone, Copy, Debug)]
pub struct WildBucket<'w> {
    wild: &'w Wild,
    number: u32,
}

impl Bucket for WildBucket<'_> {
    fn load(self, word: u32) -> u64 {
        self.wild.word(10, u64::from(self.number) << 4 | u64::from(word)).unwrap_or(0)
    }
    fn exchange(self, _: u32, from: u64, to: u64) -> bool {
        (from ^ to) & 2 == 0
    }
    fn store(self, _: u32, _: u64) {}
}

impl FlowCells for Wild {
    type Bucket<'c> = WildBucket<'c>;

    fn mask(&self) -> Option<u32> {
        self.word(13, 0).map(|word| word as u32)
    }
    fn bucket(&self, number: u32) -> Option<WildBucket<'_>> {
        (number % 11 != 10).then_some(WildBucket { wild: self, number })
    }
}

impl Tables for Wild {
    type Word<'t> = Snapshot;

    fn service(&self, key: &ServiceKey) -> Option<&Service> {
        of(&self.services, key.port.into())
    }
    fn vip(&self, address: &AddressWords, _: u8) -> Option<VipWord> {
        (address[3] & 1 == 0).then_some(VipWord(address[3] >> 1))
    }
    fn answer_arrival(&self, index: u32) -> Option<Snapshot> {
        self.word(17, index.into()).map(Snapshot)
    }
    fn pool(&self, index: u32) -> Option<PoolLine> {
        of(&self.words, index).map(|&word| PoolLine {
            word,
            last_displaced: self.words[1],
            cleared: self.words[2],
            zones: self.words[7],
        })
    }
    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        of(&self.descriptors, index)
    }
    fn group(&self, index: u32) -> Option<&Group> {
        of(&self.groups, index)
    }
    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord> {
        self.word(1, u64::from(table.0) << 20 ^ u64::from(slot)).map(SlotWord)
    }
    fn standby(&self, index: u32) -> Option<StandbyWord> {
        self.word(2, index.into()).map(StandbyWord)
    }
    fn member(&self, index: u32) -> Option<MemberWord> {
        self.word(3, index.into()).map(MemberWord)
    }
    fn backend(&self, index: u32) -> Option<&Backend> {
        of(&self.backends, index)
    }
    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        self.word(4, index.into()).map(NextHopWord)
    }
    fn tunnel_source(&self, next_hop: u32) -> Option<AddressWords> {
        let half = |half: u32| self.word(15 + half, next_hop.into());
        Some(NextHopEntry::source_from([half(0)?, half(1)?]))
    }
    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        self.word(5, index.into()).map(InterfaceWord)
    }
    fn now(&self) -> Nanoseconds {
        self.words[3]
    }
    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)> {
        Some((LimitWord(self.word(6, index.into())?), self.words[4]))
    }
    fn arrival(&self, index: u32) -> Option<Snapshot> {
        self.word(7, index.into()).map(Snapshot)
    }
    fn member_limiter(&self, index: u32) -> Option<u32> {
        self.word(8, index.into()).map(|word| word as u32)
    }
    fn backend_state(&self, backend: u32) -> Option<BackendStateWord> {
        self.word(9, backend.into()).map(BackendStateWord)
    }
    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts {
        let word = self.word(14, u64::from(pool) << 32 | u64::from(backend));
        Accepts::from_number(word.unwrap_or(0) as u8)
    }
    fn set_last_displaced(&self, _: u32, _: Coarse) {}
    fn zone(&self, index: u32) -> Option<Zone> {
        Some(Zone { cleared: self.words[2], last_displaced: self.word(12, index.into())? })
    }
    fn set_zone_displaced(&self, _: u32, _: Coarse) {}
    fn flow_count(&self, pool: u32) -> Option<Snapshot> {
        self.word(11, pool.into()).map(Snapshot)
    }
    fn flow_secret(&self) -> [u64; 2] {
        [self.words[5], self.words[6]]
    }
    fn count(&self, _: Event) {}
    fn count_group(&self, _: u32, count: impl FnOnce(&mut GroupCounter)) {
        count(&mut GroupCounter::default());
    }
}
