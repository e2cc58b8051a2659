//! The balancer's maps, and the look-ups of the decision over them.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    btf_maps::{Array as Chunk, ArrayOfMaps, DevMapHash, HashMap, PerCpuArray},
    macros::btf_map,
};
use lb_common::{
    abi::{
        arrays::Array,
        backend::{Backend, BackendStateWord, shared_key},
        clock::{Coarse, Nanoseconds},
        counter::{EVENT_SLOTS, Event, GroupCounter, TrafficCounter},
        flow_map::{FlowHead, HEAD_LINES, LINE_WORDS},
        limiter::{LimitWord, Limiter},
        limits::{CHUNK_WORDS, MAX_CHUNKS},
        member::{Accepts, MemberWord},
        next_hop::{InterfaceWord, NextHopEntry, NextHopWord},
        pool::{Descriptor, Group, GroupHead, PoolLine},
        service::{AddressWords, Service, ServiceKey, VipKey, VipWord, any_port_bit},
        sizes::{MapSizes, Size},
        slot::{SlotWord, StandbyWord, TableRef},
        zone::Zone,
    },
    flow_table::{Bucket as _, Cell, FlowCells, FlowKey, Packets, Position, Segment, Survey},
    path::{
        Choice, Observe, Tables,
        answers::{AnswerLimits, Part},
        search::{SearchEnd, SearchRequest},
    },
    service_index::{self, ServiceIndex},
};

use super::subprograms;
use crate::kernel::{self, Arrays};

/// The daemon maps chunks into its memory.
const MMAP: usize = BPF_F_MMAPABLE as usize;
/// Not preallocated, because few balancers have many of these elements.
const ON_DEMAND: usize = BPF_F_NO_PREALLOC as usize;
/// Sizes of the maps if the loader sets no others.
const SIZES: MapSizes = MapSizes::DEFAULT;

/// Words of a pool's line and of a limiter.
const WORD_OF_VERSIONS: usize = offset_of!(PoolLine, word) / 8;
const WORD_OF_CLEARED: usize = offset_of!(PoolLine, cleared) / 8;
const WORD_OF_LAST_DISPLACED: usize = offset_of!(PoolLine, last_displaced) / 8;
const WORD_OF_ZONES: usize = offset_of!(PoolLine, zones) / 8;
const WORD_OF_ZONE_CLEARED: usize = offset_of!(Zone, cleared) / 8;
const WORD_OF_ZONE_DISPLACED: usize = offset_of!(Zone, last_displaced) / 8;
const WORD_OF_MASK: u32 = offset_of!(FlowHead, mask) as u32 / 8;
const WORD_OF_SECRET: u32 = offset_of!(FlowHead, secret) as u32 / 8;
const WORD_OF_LIMIT: usize = offset_of!(Limiter, limit) / 8;
const WORD_OF_ARRIVAL: usize = offset_of!(Limiter, arrival) / 8;

/// Addresses of services, which can be pinged.
#[btf_map]
static ADDRESSES: HashMap<VipKey, u32, { 2 * SIZES.get(Size::Services) as usize }> = HashMap::new();
#[btf_map]
static SHARED_BACKENDS: HashMap<u64, u64, { SIZES.members() as usize }, ON_DEMAND> = HashMap::new();
/// The daemon walks through it in its own memory.
#[btf_map]
static FLOWS: Chunk<[u64; LINE_WORDS], { SIZES.flow_lines() as usize }, MMAP> = Chunk::new();
/// The kernel inlines the look-up in a chunk because all chunks have this size.
#[btf_map]
static TABLES: ArrayOfMaps<Chunk<u64, { CHUNK_WORDS as usize }, MMAP>, { MAX_CHUNKS as usize }> =
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
#[derive(Clone, Copy)]
pub(super) struct Maps {
    arrays: Arrays,
}

impl Maps {
    /// Opens them; they are always there, but the verifier does not know.
    #[inline(always)]
    pub(super) fn open() -> Option<Self> {
        Arrays::open().map(|arrays| Self { arrays })
    }

    /// Whether an interface is a port of a bond. The program on a bond also runs for the bond's ports, which no next hop
    /// names.
    #[inline(always)]
    pub(super) fn is_port(&self, interface: u32, bond: u32) -> bool {
        self.arrays.word(Array::Bonds, interface) == Some(bond.into())
    }

    /// Whether an address may have an any-port service. False for nearly all addresses without one, so that a packet of
    /// no service usually costs one look-up in the index, not two.
    #[inline(always)]
    fn may_have_any_port(&self, address: &AddressWords) -> bool {
        let (word, bit) = any_port_bit(address);
        self.arrays.word(Array::AnyPorts, word).is_some_and(|word| word & bit != 0)
    }
}

/// The word of a VIP.
#[inline(always)]
pub(super) fn vip(key: &VipKey) -> Option<VipWord> {
    kernel::hash_number(&ADDRESSES, key).map(VipWord)
}

impl ServiceIndex for Maps {
    type Record<'i> = &'i Service;

    #[inline(always)]
    fn index_word(&self, at: u32) -> Option<u64> {
        self.arrays.word(Array::ServiceIndex, at)
    }

    #[inline(always)]
    fn record(&self, index: u32) -> Option<&Service> {
        self.arrays.element(Array::Services, index)
    }

    #[inline(always)]
    fn find_further(&self, at: u32, tag: u32, key: &ServiceKey) -> Option<&Service> {
        let (high, third, low) = (key.high_half(), key.address[2], key.low_half());
        // One more than the record, so that not the record is compared with 0. Otherwise the verifier knows of this one that
        // it is not 0, of one from the first entry it does not, and walks what follows once for each.
        match subprograms::find_further(at, tag, high, third, low) {
            0 => None,
            one_more => self.record((one_more - 1) as u32),
        }
    }
}

impl FlowCells for Maps {
    type Bucket<'c> = kernel::SharedLine;

    #[inline(always)]
    fn mask(&self) -> Option<u32> {
        kernel::shared_line(&FLOWS, 0).map(|head| head.load(WORD_OF_MASK) as u32)
    }

    #[inline(always)]
    fn bucket(&self, number: u32) -> Option<kernel::SharedLine> {
        kernel::shared_line(&FLOWS, number.wrapping_add(HEAD_LINES))
    }

    #[inline(always)]
    fn nearest(
        &self,
        key: FlowKey,
        segment: Segment,
        now: Coarse,
        found: &mut Cell,
    ) -> (bool, bool) {
        let bits = subprograms::find_nearest(key.0, segment.0, now.0, found);
        (bits & subprograms::FOUND != 0, bits & subprograms::DROPPED != 0)
    }

    #[inline(always)]
    fn last_syn(&self, key: FlowKey, units: i64, now: Coarse, found: &mut Cell) -> bool {
        subprograms::find_last_syn(key.0, units.cast_unsigned(), now.0, found) != 0
    }

    #[inline(always)]
    fn youngest(&self, key: FlowKey, datagrams: bool, now: Coarse, found: &mut Cell) -> bool {
        subprograms::find_youngest(key.0, datagrams.into(), now.0, found) != 0
    }

    #[inline(always)]
    fn survey(&self, key: FlowKey, of: Packets, now: Coarse, cell: &mut Cell) -> Survey {
        Survey(subprograms::survey_cells(key.0, subprograms::number_of(of), now.0, cell))
    }

    #[inline(always)]
    fn settle(&self, key: FlowKey, of: Packets, own: Position, now: Coarse) -> Option<Position> {
        let kept = subprograms::settle_cell(key.0, subprograms::number_of(of), own.0, now.0);
        kept.checked_sub(1).map(Position)
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
            None if self.may_have_any_port(&key.address) => self.service(&key.any_port()),
            found => found,
        }
    }

    #[inline(always)]
    fn vip(&self, address: &AddressWords, version: u8) -> Option<VipWord> {
        let [a, b, c, d] = address.map(u64::from);
        match subprograms::find_vip(a << 32 | b, c << 32 | d, version.into()) as u32 {
            0 => None,
            word => Some(VipWord(word)),
        }
    }

    #[inline(always)]
    fn pool(&self, index: u32) -> Option<PoolLine> {
        let [word, cleared, last_displaced, zones] = self.arrays.words(
            Array::Pools,
            index,
            [WORD_OF_VERSIONS, WORD_OF_CLEARED, WORD_OF_LAST_DISPLACED, WORD_OF_ZONES],
        )?;
        Some(PoolLine { word, cleared, last_displaced, zones })
    }

    #[inline(always)]
    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        self.arrays.element(Array::Descriptors, index)
    }

    #[inline(always)]
    fn group(&self, index: u32) -> Option<&Group> {
        self.arrays.element(Array::Groups, index)
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
        self.arrays.word(Array::Standbys, index).map(StandbyWord)
    }

    #[inline(always)]
    fn member(&self, index: u32) -> Option<MemberWord> {
        self.arrays.word(Array::Members, index).map(MemberWord)
    }

    #[inline(always)]
    fn backend(&self, index: u32) -> Option<&Backend> {
        self.arrays.element(Array::Backends, index)
    }

    #[inline(always)]
    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        self.arrays.word(Array::NextHops, index).map(NextHopWord)
    }

    #[inline(always)]
    fn tunnel_source(&self, next_hop: u32) -> Option<AddressWords> {
        self.arrays
            .words(Array::NextHops, next_hop, NextHopEntry::SOURCE)
            .map(NextHopEntry::source_from)
    }

    #[inline(always)]
    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        self.arrays.word(Array::Interfaces, index).map(InterfaceWord)
    }

    #[inline(always)]
    fn now(&self) -> Nanoseconds {
        kernel::now()
    }

    #[inline(always)]
    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)> {
        let [limit, arrival] =
            self.arrays.words(Array::Limiters, index, [WORD_OF_LIMIT, WORD_OF_ARRIVAL])?;
        Some((LimitWord(limit), arrival))
    }

    #[inline(always)]
    fn arrival(&self, index: u32) -> Option<Self::Word<'_>> {
        self.arrays.shared_word(Array::Limiters, index, WORD_OF_ARRIVAL)
    }

    #[inline(always)]
    fn answer_arrival(&self, index: u32) -> Option<Self::Word<'_>> {
        self.arrays.shared_word(Array::Answers, index, 0)
    }

    #[inline(always)]
    fn member_limiter(&self, index: u32) -> Option<u32> {
        self.arrays.word(Array::MemberLimiters, index).map(|limiter| limiter as u32)
    }

    #[inline(always)]
    fn backend_state(&self, backend: u32) -> Option<BackendStateWord> {
        self.arrays.word(Array::BackendStates, backend).map(BackendStateWord)
    }

    #[inline(always)]
    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts {
        let state = kernel::hash_word(&SHARED_BACKENDS, shared_key(pool, backend));
        state.map_or(Accepts::Nothing, |state| Accepts::from_number(state as u8))
    }

    #[inline(always)]
    fn set_last_displaced(&self, pool: u32, now: Coarse) {
        self.arrays.store_words(Array::Pools, pool, [(WORD_OF_LAST_DISPLACED, now.0)]);
    }

    #[inline(always)]
    fn zone(&self, index: u32) -> Option<Zone> {
        let [cleared, last_displaced] = self.arrays.words(
            Array::Zones,
            index,
            [WORD_OF_ZONE_CLEARED, WORD_OF_ZONE_DISPLACED],
        )?;
        Some(Zone { cleared, last_displaced })
    }

    #[inline(always)]
    fn set_zone_displaced(&self, index: u32, now: Coarse) {
        self.arrays.store_words(Array::Zones, index, [(WORD_OF_ZONE_DISPLACED, now.0)]);
    }

    #[inline(always)]
    fn flow_count(&self, pool: u32) -> Option<Self::Word<'_>> {
        self.arrays.shared_word(Array::FlowCounts, pool, 0)
    }

    #[inline(always)]
    fn flow_secret(&self) -> [u64; 2] {
        let head = kernel::shared_line(&FLOWS, 0);
        head.map_or([0; 2], |head| [0, 1].map(|word| head.load(WORD_OF_SECRET + word)))
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
    fn is_answer_full(&self, limits: &AnswerLimits, now: Nanoseconds) -> bool {
        let AnswerLimits { of_all, of_vip, of_network } = *limits;
        subprograms::is_answer_full(of_all, of_vip, of_network, now) != 0
    }

    #[inline(always)]
    fn debit_part(&self, of_all: u32, part: &Part, now: Nanoseconds) -> bool {
        subprograms::debit_part(of_all, part.word, part.is_vip.into(), now) != 0
    }

    #[inline(always)]
    fn stand_in(&self, head: &GroupHead, slot: u32) -> u32 {
        subprograms::stand_in(head.table, slot, head.members, head.member_count) as u32
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

#[inline(always)]
fn table_word(table: TableRef, index: u32) -> Option<u64> {
    let (chunk, word) = table.word(index);
    kernel::table_word(&TABLES, chunk, word)
}
