//! The balancer's maps, and the look-ups of the decision over them.

use aya_ebpf::{
    bindings::{BPF_F_INNER_MAP, BPF_F_MMAPABLE},
    btf_maps::{Array, ArrayOfMaps, DevMapHash, HashMap, PerCpuArray},
    macros::btf_map,
};
use lb_common::{
    abi::{
        backend::Backend,
        counter::TrafficCounter,
        descriptor::Descriptor,
        group::{Group, GroupHead},
        limits::{
            DEFAULT_SLOTS, MAX_BACKENDS, MAX_DESCRIPTORS, MAX_GROUPS, MAX_INTERFACES, MAX_MEMBERS,
            MAX_NEXT_HOPS, MAX_POOLS, MAX_SERVICES, MAX_TABLES, STANDBYS_PER_GROUP,
        },
        member::MemberWord,
        next_hop::{InterfaceWord, NextHopWord},
        pool::PoolWord,
        service::{IPV4, Service, ServiceKey},
        slot::{OwnersWord, SlotWord, StandbyWord, table_words},
        table_ref::TableRef,
    },
    path::{Observe, Search, Tables, Unobserved},
};

use crate::kernel;

/// The daemon maps these into its memory: a published word is one store.
const MMAP: usize = BPF_F_MMAPABLE as usize;
const SIZED: usize = MMAP | BPF_F_INNER_MAP as usize;

#[btf_map]
static SERVICES_V4: HashMap<u64, Service, { MAX_SERVICES as usize }> = HashMap::new();
#[btf_map]
static SERVICES_V6: HashMap<ServiceKey, Service, { MAX_SERVICES as usize }> = HashMap::new();
#[btf_map]
static POOLS: Array<u64, { MAX_POOLS as usize }, MMAP> = Array::new();
#[btf_map]
static DESCRIPTORS: Array<Descriptor, { MAX_DESCRIPTORS as usize }, MMAP> = Array::new();
#[btf_map]
static GROUPS: Array<Group, { MAX_GROUPS as usize }, MMAP> = Array::new();
#[btf_map]
static STANDBYS: Array<u64, { (MAX_GROUPS * STANDBYS_PER_GROUP) as usize }, MMAP> = Array::new();
#[btf_map]
static MEMBERS: Array<u64, { MAX_MEMBERS as usize }, MMAP> = Array::new();
#[btf_map]
static BACKENDS: Array<Backend, { MAX_BACKENDS as usize }, MMAP> = Array::new();
#[btf_map]
static NEXT_HOPS: Array<u64, { MAX_NEXT_HOPS as usize }, MMAP> = Array::new();
#[btf_map]
static INTERFACES: Array<u64, { MAX_INTERFACES as usize }, MMAP> = Array::new();
/// The inner look-up is inlined only for arrays of one known size, hence two maps of tables.
#[btf_map]
static TABLES: ArrayOfMaps<
    Array<u64, { table_words(DEFAULT_SLOTS) as usize }, MMAP>,
    { MAX_TABLES as usize },
> = ArrayOfMaps::new();
#[btf_map]
static SIZED_TABLES: ArrayOfMaps<Array<u64, 1, SIZED>, { MAX_TABLES as usize }> =
    ArrayOfMaps::new();
#[btf_map]
pub(super) static DEVICES: DevMapHash<256> = DevMapHash::new();
#[btf_map]
pub(super) static SERVICE_COUNTERS: PerCpuArray<TrafficCounter, { MAX_SERVICES as usize }> =
    PerCpuArray::new();
#[btf_map]
pub(super) static BACKEND_COUNTERS: PerCpuArray<TrafficCounter, { MAX_BACKENDS as usize }> =
    PerCpuArray::new();

/// The maps as the decision sees them.
pub(super) struct Maps;

impl Tables for Maps {
    #[inline(always)]
    fn service(&self, key: &ServiceKey) -> Option<Service> {
        let service = if key.version == IPV4 {
            kernel::lookup_word(&SERVICES_V4, key.short())?
        } else {
            kernel::lookup_copy(&SERVICES_V6, key)?
        };
        Some(kernel::copy_backwards(service))
    }

    #[inline(always)]
    fn pool(&self, index: u32) -> Option<PoolWord> {
        kernel::word(&POOLS, index).map(PoolWord)
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
        let word = table_word(TableRef(head.table), OwnersWord::index(head.slots, slot));
        word.map(|word| OwnersWord(word).owner(slot))
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
    fn search<O: Observe>(&self, search: &mut Search, _: &mut O) {
        kernel::repeat(Search::STEPS, search, search_step);
    }
}

#[inline(always)]
fn table_word(table: TableRef, index: u32) -> Option<u64> {
    if table.is_sized() {
        kernel::table_word(&SIZED_TABLES, table.index(), index)
    } else {
        kernel::table_word(&TABLES, table.index(), index)
    }
}

/// One step of the slow search.
extern "C" fn search_step(step: u32, search: &mut Search) -> i64 {
    i64::from(search.step(step, &Maps, &mut Unobserved))
}
