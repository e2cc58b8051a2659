//! The balancer's maps, and the look-ups of the decision over them.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    btf_maps::{Array, ArrayOfMaps, DevMapHash, HashMap, LruHashMap, PerCpuArray},
    macros::btf_map,
};
use lb_common::{
    abi::{
        backend::{Backend, BackendStateWord, shared_key},
        clock::{Coarse, Nanoseconds},
        connection::{
            CELLS_PER_LINE, DisplacedWord, FlowKeyV4, FlowKeyV6, HandshakeEntry, HandshakeLine,
            flow_key_v4, flow_key_v6,
        },
        counter::{EVENT_SLOTS, Event, GroupCounter, TrafficCounter},
        limiter::{LimitWord, Limiter},
        limits::{CHUNK_WORDS, HANDSHAKE_LINES, MAX_CHUNKS, MAX_INTERFACES, MAX_NEXT_HOPS},
        member::{Accepts, MemberWord},
        next_hop::{InterfaceWord, NextHopWord},
        pool::{Descriptor, Group, GroupHead, PoolLine},
        service::{ANY_PORT_WORDS, AddressWords, IPV4, Service, ServiceKey, VipKey, any_port_bit},
        sizes::{MapSizes, Size},
        slot::{SlotWord, StandbyWord, TableRef},
    },
    flow_hash::FlowTuple,
    path::{
        Choice, Observe, Tables,
        handshakes::{HandshakeMatch, Line, Segment},
        search::{SearchEnd, SearchRequest},
    },
    service_index::{self, ServiceIndex},
};

use super::subprograms;
use crate::kernel;

/// The daemon maps these arrays into its memory, so it publishes a word by one store.
const MMAP: usize = BPF_F_MMAPABLE as usize;
/// Not preallocated, because few balancers have many of these elements.
const ON_DEMAND: usize = BPF_F_NO_PREALLOC as usize;
/// Sizes of the maps if the loader sets no others.
const SIZES: MapSizes = MapSizes::DEFAULT;

/// Words of a pool's line and of a limiter.
const WORD_OF_VERSIONS: usize = offset_of!(PoolLine, word) / 8;
const WORD_OF_CLEARED: usize = offset_of!(PoolLine, cleared) / 8;
const WORD_OF_LAST_DISPLACED: usize = offset_of!(PoolLine, last_displaced) / 8;
const WORD_OF_LIMIT: usize = offset_of!(Limiter, limit) / 8;
const WORD_OF_ARRIVAL: usize = offset_of!(Limiter, arrival) / 8;

#[btf_map]
static SERVICES: Array<Service, { SIZES.service_records() as usize }, MMAP> = Array::new();
#[btf_map]
static SERVICE_INDEX: Array<u64, { SIZES.service_index() as usize }, MMAP> = Array::new();
#[btf_map]
static ANY_PORTS: Array<u64, { ANY_PORT_WORDS as usize }, MMAP> = Array::new();
/// Addresses of services, which can be pinged.
#[btf_map]
static ADDRESSES: HashMap<VipKey, u32, { SIZES.get(Size::Services) as usize }> = HashMap::new();
#[btf_map]
static POOLS: Array<PoolLine, { SIZES.pools() as usize }, MMAP> = Array::new();
#[btf_map]
static DESCRIPTORS: Array<Descriptor, { SIZES.descriptors() as usize }, MMAP> = Array::new();
#[btf_map]
static GROUPS: Array<Group, { SIZES.groups() as usize }, MMAP> = Array::new();
#[btf_map]
static STANDBYS: Array<u64, { SIZES.standbys() as usize }, MMAP> = Array::new();
#[btf_map]
static MEMBERS: Array<u64, { SIZES.members() as usize }, MMAP> = Array::new();
#[btf_map]
static MEMBER_LIMITERS: Array<u64, { SIZES.members() as usize }, MMAP> = Array::new();
#[btf_map]
static LIMITERS: Array<Limiter, { SIZES.limiters() as usize }, MMAP> = Array::new();
#[btf_map]
static BACKEND_STATES: Array<u64, { SIZES.backends() as usize }, MMAP> = Array::new();
#[btf_map]
static SHARED_BACKENDS: HashMap<u64, u64, { SIZES.members() as usize }, ON_DEMAND> = HashMap::new();
#[btf_map]
static HANDSHAKES: Array<HandshakeLine, { HANDSHAKE_LINES as usize }, MMAP> = Array::new();
/// IPv4 has its own maps because its keys have a third of the bytes to hash.
#[btf_map]
static DISPLACED_V4: LruHashMap<FlowKeyV4, u64, { SIZES.get(Size::Displaced) as usize }> =
    LruHashMap::new();
#[btf_map]
static DISPLACED_V6: LruHashMap<FlowKeyV6, u64, { SIZES.displaced_v6() as usize }> =
    LruHashMap::new();
#[btf_map]
static FLOWS_V4: LruHashMap<FlowKeyV4, u64, { SIZES.get(Size::UdpFlows) as usize }> =
    LruHashMap::new();
#[btf_map]
static FLOWS_V6: LruHashMap<FlowKeyV6, u64, { SIZES.flows_v6() as usize }> = LruHashMap::new();
#[btf_map]
static BACKENDS: Array<Backend, { SIZES.backends() as usize }, MMAP> = Array::new();
#[btf_map]
static NEXT_HOPS: Array<u64, { MAX_NEXT_HOPS as usize }, MMAP> = Array::new();
#[btf_map]
static INTERFACES: Array<u64, { MAX_INTERFACES as usize }, MMAP> = Array::new();
/// The program on a bond also runs for the bond's ports, which no next hop names.
#[btf_map]
static BONDS: Array<u64, { MAX_INTERFACES as usize }, MMAP> = Array::new();
/// The kernel inlines the look-up in a chunk because all chunks have this size.
#[btf_map]
static TABLES: ArrayOfMaps<Array<u64, { CHUNK_WORDS as usize }, MMAP>, { MAX_CHUNKS as usize }> =
    ArrayOfMaps::new();
#[btf_map]
pub(super) static DEVICES: DevMapHash<256> = DevMapHash::new();
#[btf_map]
pub(super) static SERVICE_COUNTERS: PerCpuArray<TrafficCounter, { SIZES.services() as usize }> =
    PerCpuArray::new();
#[btf_map]
pub(super) static BACKEND_COUNTERS: PerCpuArray<TrafficCounter, { SIZES.backends() as usize }> =
    PerCpuArray::new();
#[btf_map]
static GROUP_COUNTERS: PerCpuArray<GroupCounter, { SIZES.group_limiters() as usize }> =
    PerCpuArray::new();
#[btf_map]
static EVENT_COUNTERS: PerCpuArray<u64, { EVENT_SLOTS as usize }> = PerCpuArray::new();

/// The maps as the decision sees them.
pub(super) struct Maps;

impl ServiceIndex for Maps {
    type Record<'i> = &'i Service;

    #[inline(always)]
    fn index_word(&self, at: u32) -> Option<u64> {
        kernel::word(&SERVICE_INDEX, at)
    }

    #[inline(always)]
    fn record(&self, index: u32) -> Option<&Service> {
        kernel::element(&SERVICES, index)
    }
}

impl Tables for Maps {
    type Word<'t> = kernel::SharedWord;

    #[inline(always)]
    fn service(&self, key: &ServiceKey) -> Option<&Service> {
        service_index::find(self, key)
    }

    #[inline(always)]
    fn service_of_port(&self, key: &ServiceKey) -> Option<&Service> {
        match self.service(key) {
            None if may_have_any_port(&key.address) => self.service(&key.any_port()),
            found => found,
        }
    }

    #[inline(always)]
    fn is_vip(&self, address: &AddressWords, version: u8) -> bool {
        kernel::contains(&ADDRESSES, &VipKey { address: *address, version: u32::from(version) })
    }

    #[inline(always)]
    fn pool(&self, index: u32) -> Option<PoolLine> {
        let [word, cleared, last_displaced] = kernel::words(
            &POOLS,
            index,
            [WORD_OF_VERSIONS, WORD_OF_CLEARED, WORD_OF_LAST_DISPLACED],
        )?;
        Some(PoolLine { word, cleared, last_displaced, reserved: 0 })
    }

    #[inline(always)]
    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        kernel::element(&DESCRIPTORS, index)
    }

    #[inline(always)]
    fn group(&self, index: u32) -> Option<&Group> {
        kernel::element(&GROUPS, index)
    }

    #[inline(always)]
    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord> {
        table_word(table, slot).map(SlotWord)
    }

    #[inline(always)]
    fn owner(&self, head: &GroupHead, slot: u32) -> Option<u16> {
        let shape = head.shape();
        let word = table_word(TableRef(head.table), shape.owner_index(slot));
        word.map(|word| shape.owner(word, slot))
    }

    #[inline(always)]
    fn standby(&self, index: u32) -> Option<StandbyWord> {
        kernel::word(&STANDBYS, index).map(StandbyWord)
    }

    #[inline(always)]
    fn member(&self, index: u32) -> Option<MemberWord> {
        kernel::word(&MEMBERS, index).map(MemberWord)
    }

    #[inline(always)]
    fn backend(&self, index: u32) -> Option<&Backend> {
        kernel::element(&BACKENDS, index)
    }

    #[inline(always)]
    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        kernel::word(&NEXT_HOPS, index).map(NextHopWord)
    }

    #[inline(always)]
    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        kernel::word(&INTERFACES, index).map(InterfaceWord)
    }

    #[inline(always)]
    fn now(&self) -> Nanoseconds {
        kernel::now()
    }

    #[inline(always)]
    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)> {
        let [limit, arrival] = kernel::words(&LIMITERS, index, [WORD_OF_LIMIT, WORD_OF_ARRIVAL])?;
        Some((LimitWord(limit), arrival))
    }

    #[inline(always)]
    fn arrival(&self, index: u32) -> Option<Self::Word<'_>> {
        kernel::shared_word(&LIMITERS, index, WORD_OF_ARRIVAL)
    }

    #[inline(always)]
    fn member_limiter(&self, index: u32) -> Option<u32> {
        kernel::word(&MEMBER_LIMITERS, index).map(|limiter| limiter as u32)
    }

    #[inline(always)]
    fn backend_state(&self, backend: u32) -> Option<BackendStateWord> {
        kernel::word(&BACKEND_STATES, backend).map(BackendStateWord)
    }

    #[inline(always)]
    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts {
        let state = kernel::hash_word(&SHARED_BACKENDS, shared_key(pool, backend));
        state.map_or(Accepts::Nothing, |state| Accepts::from_number(state as u8))
    }

    #[inline(always)]
    fn set_last_displaced(&self, pool: u32, now: Coarse) {
        kernel::store_words(&POOLS, pool, [(WORD_OF_LAST_DISPLACED, now.0)]);
    }

    #[inline(always)]
    fn handshake_entry(&self, line: u32, cell: u32) -> Option<HandshakeEntry> {
        let first = (2 * (cell % CELLS_PER_LINE)) as usize;
        let [syn, decision] = kernel::words(&HANDSHAKES, line, [first, first + 1])?;
        Some(HandshakeEntry { syn, decision })
    }

    #[inline(always)]
    fn set_handshake_entry(&self, line: u32, cell: u32, entry: HandshakeEntry) {
        let first = (2 * (cell % CELLS_PER_LINE)) as usize;
        kernel::store_words(&HANDSHAKES, line, [(first, entry.syn), (first + 1, entry.decision)]);
    }

    #[inline(always)]
    fn displaced(&self, flow: &FlowTuple) -> Option<Self::Word<'_>> {
        if flow.version == IPV4 {
            kernel::lru_word(&DISPLACED_V4, flow_key_v4(flow))
        } else {
            kernel::lru_word(&DISPLACED_V6, flow_key_v6(flow))
        }
    }

    #[inline(always)]
    fn insert_displaced(&self, flow: &FlowTuple, word: DisplacedWord) -> bool {
        if flow.version == IPV4 {
            DISPLACED_V4.insert(flow_key_v4(flow), word.0, 0).is_ok()
        } else {
            DISPLACED_V6.insert(flow_key_v6(flow), word.0, 0).is_ok()
        }
    }

    #[inline(always)]
    fn tracked(&self, flow: &FlowTuple) -> Option<Self::Word<'_>> {
        if flow.version == IPV4 {
            kernel::lru_word(&FLOWS_V4, flow_key_v4(flow))
        } else {
            kernel::lru_word(&FLOWS_V6, flow_key_v6(flow))
        }
    }

    #[inline(always)]
    fn insert_tracked(&self, flow: &FlowTuple, word: DisplacedWord) -> bool {
        if flow.version == IPV4 {
            FLOWS_V4.insert(flow_key_v4(flow), word.0, 0).is_ok()
        } else {
            FLOWS_V6.insert(flow_key_v6(flow), word.0, 0).is_ok()
        }
    }

    #[inline(always)]
    fn count(&self, event: Event) {
        kernel::per_cpu(&EVENT_COUNTERS, event as u32, |count| *count += 1);
    }

    #[inline(always)]
    fn count_group(&self, limiter: u32, count: impl FnOnce(&mut GroupCounter)) {
        kernel::per_cpu(&GROUP_COUNTERS, limiter, count);
    }

    #[inline(always)]
    fn debit(&self, limiter: u32, now: Nanoseconds) -> bool {
        subprograms::debit(limiter, now) != 0
    }

    #[inline(always)]
    fn is_full(&self, limiter: u32, now: Nanoseconds) -> bool {
        subprograms::is_full(limiter, now) != 0
    }

    #[inline(always)]
    fn stand_in(&self, head: &GroupHead, slot: u32) -> u32 {
        subprograms::stand_in(head.table, slot, head.members, head.member_count) as u32
    }

    #[inline(always)]
    fn find_repeated_syn(&self, line: Line, number: u32) -> HandshakeMatch {
        HandshakeMatch(subprograms::find_repeated_syn(line.flow, line.now.0, number))
    }

    #[inline(always)]
    fn write_handshake(&self, line: Line, entry: HandshakeEntry) {
        subprograms::write_handshake(line.flow, line.now.0, entry.syn, entry.decision);
    }

    #[inline(always)]
    fn find_handshake(&self, line: Line, segment: Segment) -> HandshakeMatch {
        HandshakeMatch(subprograms::find_handshake(line.flow, line.now.0, segment.0))
    }

    #[inline(always)]
    fn count_overflow(&self, version: u32, taken_by: u32, over_capacity: bool) {
        subprograms::count_overflow(version, taken_by, u32::from(over_capacity));
    }

    #[inline(always)]
    fn search<O: Observe>(
        &self,
        request: SearchRequest,
        choice: &mut Choice,
        _: &mut O,
    ) -> SearchEnd {
        SearchEnd(subprograms::run_search(request.hash.0, request.how, request.now, choice))
    }
}

/// Whether an interface is a port of a bond.
#[inline(always)]
pub(super) fn is_port(interface: u32, bond: u32) -> bool {
    kernel::word(&BONDS, interface) == Some(bond.into())
}

/// Whether an address may have an any-port service. False for nearly all addresses without one, so that a packet of no
/// service usually costs one look-up in the index, not two.
#[inline(always)]
fn may_have_any_port(address: &AddressWords) -> bool {
    let (word, bit) = any_port_bit(address);
    kernel::word(&ANY_PORTS, word).is_some_and(|word| word & bit != 0)
}

#[inline(always)]
fn table_word(table: TableRef, index: u32) -> Option<u64> {
    let (chunk, word) = table.word(index);
    kernel::table_word(&TABLES, chunk, word)
}
