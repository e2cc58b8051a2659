//! The balancer's maps, opened by their pins.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    path::Path,
    sync::Arc,
};

use aya::maps::{DevMapHash, HashMap, MapData, MapError, PerCpuArray};
use lb_common::abi::{
    arrays::Array,
    backend::Backend,
    clock::Nanoseconds,
    counter::{Event, GroupCounter, TrafficCounter, VerdictCounter},
    limiter::{LimitWord, Limiter},
    limits::STANDBYS_PER_GROUP,
    member::MemberWord,
    names,
    next_hop::{InterfaceWord, NextHopEntry, NextHopWord},
    pod::{bytes_of, from_bytes},
    pool::{Descriptor, Group, PoolLine, PoolWord},
    service::{Service, ServiceKey, VipKey, VipWord},
    sizes::MapSizes,
    slot::{StandbyWord, TableRef, TableShape},
    verdict::Verdict,
    zone::Zone,
};

use lb_common::{
    flow_hash::FlowTuple,
    service_index::{self, ServiceIndex},
};

use super::{
    ArrayView, Component, FlowTable, MapsError,
    chunks::Chunks,
    clock::PacketClock,
    opener::{Access, Opener},
    raw::Mapping,
    service_index::services,
    slot_tables::{SlotTable, first_list},
};

const VIP: usize = size_of::<VipKey>();
const TRAFFIC: usize = size_of::<TrafficCounter>() / 8;
const VERDICT: usize = size_of::<VerdictCounter>() / 8;
const GROUP: usize = size_of::<GroupCounter>() / 8;

/// How often something is read again if it changes while it is read.
const ATTEMPTS: u32 = 16;

/// The balancer's maps, read-only. Works whether or not the daemon runs.
pub type PinnedMaps = Maps<Mapping>;

/// The balancer's maps. `M` is [`Mapping`] or [`super::MappingMut`].
///
/// What a word names is immutable while the word names it. A reader that raced with a change finds another word
/// when it reads the word again.
pub struct Maps<M> {
    sizes: MapSizes,
    clock: PacketClock<M>,
    pub(super) services: ArrayView<Service, M>,
    pub(super) service_index: ArrayView<u64, M>,
    pub(super) any_ports: ArrayView<u64, M>,
    pub(super) vips: HashMap<MapData, [u8; VIP], u32>,
    pub(super) pools: ArrayView<PoolLine, M>,
    pub(super) descriptors: ArrayView<Descriptor, M>,
    pub(super) groups: ArrayView<Group, M>,
    pub(super) standbys: ArrayView<u64, M>,
    pub(super) members: ArrayView<u64, M>,
    pub(super) member_limiters: ArrayView<u64, M>,
    pub(super) limiters: ArrayView<Limiter, M>,
    pub(super) backend_states: ArrayView<u64, M>,
    pub(super) shared_backends: HashMap<MapData, u64, u64>,
    pub(super) zones: ArrayView<Zone, M>,
    pub(super) flow_counts: ArrayView<u64, M>,
    flows: FlowTable<M>,
    pub(super) backends: ArrayView<Backend, M>,
    pub(super) next_hops: ArrayView<NextHopEntry, M>,
    pub(super) interfaces: ArrayView<u64, M>,
    pub(super) bonds: ArrayView<u64, M>,
    pub(super) chunks: Chunks<M>,
    pub(super) devices: DevMapHash<MapData>,
    pub(super) verdict_counters: PerCpuArray<MapData, [u64; VERDICT]>,
    pub(super) service_counters: PerCpuArray<MapData, [u64; TRAFFIC]>,
    pub(super) backend_counters: PerCpuArray<MapData, [u64; TRAFFIC]>,
    pub(super) group_counters: PerCpuArray<MapData, [u64; GROUP]>,
    pub(super) event_counters: PerCpuArray<MapData, [u64; 1]>,
}

impl<M> fmt::Debug for Maps<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maps").finish_non_exhaustive()
    }
}

impl PinnedMaps {
    /// Opens the balancer's maps under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        Self::open_with(&Opener::new(bpffs, Component::Balancer)?)
    }
}

impl<M: Access> Maps<M> {
    pub(super) fn open_with(pins: &Opener) -> Result<Self, MapsError> {
        let arrays = pins.arrays()?;
        Ok(Self {
            sizes: pins.sizes(),
            clock: arrays.clock(),
            services: arrays.view(Array::Services),
            service_index: arrays.view(Array::ServiceIndex),
            any_ports: arrays.view(Array::AnyPorts),
            vips: pins.typed(names::ADDRESSES)?,
            pools: arrays.view(Array::Pools),
            descriptors: arrays.view(Array::Descriptors),
            groups: arrays.view(Array::Groups),
            standbys: arrays.view(Array::Standbys),
            members: arrays.view(Array::Members),
            member_limiters: arrays.view(Array::MemberLimiters),
            limiters: arrays.view(Array::Limiters),
            backend_states: arrays.view(Array::BackendStates),
            shared_backends: pins.typed(names::SHARED_BACKENDS)?,
            zones: arrays.view(Array::Zones),
            flow_counts: arrays.view(Array::FlowCounts),
            flows: pins.flows()?,
            backends: arrays.view(Array::Backends),
            next_hops: arrays.view(Array::NextHops),
            interfaces: arrays.view(Array::Interfaces),
            bonds: arrays.view(Array::Bonds),
            chunks: Chunks::new(pins),
            devices: pins.typed(names::DEVICES)?,
            verdict_counters: pins.typed(names::VERDICT_COUNTERS)?,
            service_counters: pins.typed(names::SERVICE_COUNTERS)?,
            backend_counters: pins.typed(names::BACKEND_COUNTERS)?,
            group_counters: pins.typed(names::GROUP_COUNTERS)?,
            event_counters: pins.typed(names::EVENT_COUNTERS)?,
        })
    }
}

/// A copy of a record.
pub struct CopiedService(Service);

impl Deref for CopiedService {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl<M: AsRef<Mapping>> ServiceIndex for Maps<M> {
    type Record<'i>
        = CopiedService
    where
        M: 'i;

    fn index_word(&self, at: u32) -> Option<u64> {
        self.service_index.get(at)
    }

    fn record(&self, index: u32) -> Option<CopiedService> {
        self.services.get(index).map(CopiedService)
    }
}

impl<M: Access> Maps<M> {
    /// The slot table that a group names.
    ///
    /// # Errors
    /// [`MapsError::NoTable`], or what the kernel answers.
    pub fn table(&self, at: TableRef, shape: TableShape) -> Result<SlotTable, MapsError> {
        let (chunk, first) = self.place(at, shape)?;
        Ok(SlotTable::new(chunk, first, at, shape))
    }

    /// The chunk with a table, and the word of its first list there.
    pub(super) fn place(
        &self,
        at: TableRef,
        shape: TableShape,
    ) -> Result<(Arc<M>, usize), MapsError> {
        let chunk = self.chunks.get(at.word(0).0)?.ok_or(MapsError::NoTable { word: at.0 })?;
        let first = first_list(at, shape, (*chunk).as_ref().len());
        Ok((chunk, first.ok_or(MapsError::NoTable { word: at.0 })?))
    }
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// The time of the packet path's clock, to within a tick.
    pub fn now(&self) -> Nanoseconds {
        self.clock.now()
    }

    /// How much the maps hold.
    pub fn sizes(&self) -> MapSizes {
        self.sizes
    }

    /// The published services, by key.
    ///
    /// # Errors
    /// [`MapsError::ServicesChanging`] if they changed each time they were read.
    pub fn services(&self) -> Result<Vec<Service>, MapsError> {
        self.read_twice(|| services(self))
    }

    /// Reads the index until nothing changes meanwhile. The kernel waits for packets, but for no other reader, before a
    /// record is used again.
    fn read_twice<T: PartialEq>(&self, read: impl Fn() -> T) -> Result<T, MapsError> {
        for _ in 0..ATTEMPTS {
            let first = read();
            if first == read() {
                return Ok(first);
            }
        }
        Err(MapsError::ServicesChanging)
    }

    /// Keys that the index of services was made for.
    pub(super) fn service_capacity(&self) -> u32 {
        (self.services.entries() - 1) / 2
    }

    /// Bitmap of the addresses that may have an any-port service, in words.
    pub fn any_ports(&self) -> Vec<u64> {
        (0..self.any_ports.entries()).filter_map(|word| self.any_ports.get(word)).collect()
    }

    /// Addresses of services.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn vips(&self) -> Result<BTreeMap<VipKey, VipWord>, MapsError> {
        let vips: Result<Vec<_>, _> = self.vips.iter().collect();
        let vips = vips.map_err(map_error(names::ADDRESSES))?;
        Ok(vips.iter().filter_map(|(key, word)| Some((from_bytes(key)?, VipWord(*word)))).collect())
    }

    /// What the maps say of an address; `None`: no service has it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn vip(&self, vip: &VipKey) -> Result<Option<VipWord>, MapsError> {
        match self.vips.get(&array(bytes_of(vip)), 0) {
            Ok(word) => Ok(Some(VipWord(word))),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(map_error(names::ADDRESSES)(source)),
        }
    }

    /// The service of a flow, as [`lb_common::path::find_service`] finds it: that of its port, else of any
    /// port. A flow without ports is one of fragments.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn service_of(&self, flow: &FlowTuple) -> Result<Option<Service>, MapsError> {
        let key = flow.service_key();
        if flow.service_port == 0
            && let Some(service) = self.service(&key.fragments())?
        {
            return Ok(Some(service));
        }
        match self.service(&key)? {
            None => self.service(&key.any_port()),
            service => Ok(service),
        }
    }

    /// The service of a key.
    ///
    /// # Errors
    /// [`MapsError::ServicesChanging`] if it changed each time it was read.
    pub fn service(&self, key: &ServiceKey) -> Result<Option<Service>, MapsError> {
        self.read_twice(|| service_index::find(self, key).map(|found| *found))
    }

    /// Number of entries for pools; indices count from 0.
    pub fn pool_count(&self) -> u32 {
        self.pools.entries()
    }

    /// A pool's word; empty if the index is out of range.
    pub fn pool(&self, index: u32) -> PoolWord {
        self.pool_line(index).versions()
    }

    /// A pool's line; empty if the index is out of range.
    pub fn pool_line(&self, index: u32) -> PoolLine {
        self.pools.get(index).unwrap_or_default()
    }

    pub fn limiter(&self, index: u32) -> Option<Limiter> {
        self.limiters.get(index)
    }

    /// A limiter's limit; unlimited if the index is out of range.
    pub fn limit(&self, limiter: u32) -> LimitWord {
        self.limiter(limiter).map_or(LimitWord::UNLIMITED, |limiter| LimitWord(limiter.limit))
    }

    /// Index of the limiter of a member with a limit of its own, by the index of its word; 0: none.
    pub fn member_limiter(&self, index: u32) -> u32 {
        self.member_limiters.get(index).unwrap_or(0) as u32
    }

    /// A zone; one that is not there never had a flow with a cell.
    pub fn zone(&self, index: u32) -> Zone {
        self.zones.get(index).unwrap_or_default()
    }

    /// How many cells a pool has about; 0: all pools.
    pub fn flow_count(&self, pool: u32) -> u64 {
        self.flow_counts.get(pool).unwrap_or(0)
    }

    /// The flow table.
    pub fn flows(&self) -> &FlowTable<M> {
        &self.flows
    }

    pub fn descriptor(&self, index: u32) -> Option<Descriptor> {
        self.descriptors.get(index)
    }

    pub fn group(&self, index: u32) -> Option<Group> {
        self.groups.get(index)
    }

    /// A standby of a group; `place` counts from 0.
    pub fn standby(&self, group: u32, place: u32) -> StandbyWord {
        let index = group.saturating_mul(STANDBYS_PER_GROUP).saturating_add(place);
        StandbyWord(self.standbys.get(index).unwrap_or(0))
    }

    /// A member: `index` is that of its block plus its rank.
    pub fn member(&self, index: u32) -> Option<MemberWord> {
        self.members.get(index).map(MemberWord)
    }

    pub fn backend(&self, index: u32) -> Option<Backend> {
        self.backends.get(index)
    }

    /// A next hop; an index out of range is unresolved.
    pub fn next_hop(&self, index: u32) -> NextHopWord {
        NextHopWord(self.next_hop_entry(index).word)
    }

    /// A next hop with the source of its tunnels; an index out of range is unresolved.
    pub fn next_hop_entry(&self, index: u32) -> NextHopEntry {
        self.next_hops.get(index).unwrap_or(NextHopEntry::UNRESOLVED)
    }

    /// An interface's word.
    pub fn interface(&self, index: u32) -> InterfaceWord {
        InterfaceWord(self.interfaces.get(index).unwrap_or(0))
    }

    /// Whether the programs may send out of an interface.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn is_device(&self, index: u32) -> Result<bool, MapsError> {
        match self.devices.get(index, 0) {
            Ok(_) => Ok(true),
            Err(MapError::KeyNotFound) => Ok(false),
            Err(source) => Err(map_error(names::DEVICES)(source)),
        }
    }

    /// Indices of the interfaces that frames leave by: the cards beneath VLANs, not the VLANs.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn sending_devices(&self) -> Result<BTreeSet<u32>, MapsError> {
        let devices = self.devices.iter().map(|device| Ok(device?.1.if_index));
        devices.collect::<Result<_, _>>().map_err(map_error(names::DEVICES))
    }

    /// The ports of bonds, each with its bond, by their indices.
    pub fn bond_ports(&self) -> impl Iterator<Item = (u32, u32)> {
        let ports = (0..self.bonds.entries()).map(|port| (port, self.bonds.get(port).unwrap_or(0)));
        ports.filter_map(|(port, bond)| {
            Some((port, u32::try_from(bond).ok().filter(|it| *it != 0)?))
        })
    }

    /// Packets under each verdict, summed over the CPUs, by number.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn verdicts(&self) -> Result<Vec<(Verdict, VerdictCounter)>, MapsError> {
        verdicts_of(&self.verdict_counters)
    }

    /// Traffic of a service, summed over the CPUs.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn service_traffic(&self, index: u32) -> Result<TrafficCounter, MapsError> {
        traffic_of(&self.service_counters, index).map_err(map_error(names::SERVICE_COUNTERS))
    }

    /// Traffic of a backend, summed over the CPUs.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn backend_traffic(&self, index: u32) -> Result<TrafficCounter, MapsError> {
        traffic_of(&self.backend_counters, index).map_err(map_error(names::BACKEND_COUNTERS))
    }

    /// New connections of a group, summed over the CPUs, by its limiter.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn group_connections(&self, limiter: u32) -> Result<GroupCounter, MapsError> {
        let [offered, admitted, overflow_in, overflow_out, refused, over_capacity] =
            sum(&self.group_counters, limiter).map_err(map_error(names::GROUP_COUNTERS))?;
        Ok(GroupCounter { offered, admitted, overflow_in, overflow_out, refused, over_capacity })
    }

    /// Events, summed over the CPUs, by number.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn events(&self) -> Result<Vec<(Event, u64)>, MapsError> {
        Event::ALL.iter().map(|event| Ok((*event, self.event(*event)?))).collect()
    }

    /// How often one of them did.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub fn event(&self, event: Event) -> Result<u64, MapsError> {
        let [count] =
            sum(&self.event_counters, event as u32).map_err(map_error(names::EVENT_COUNTERS))?;
        Ok(count)
    }
}

/// Reads a component's verdict counters.
pub(super) fn verdicts_of(
    counters: &PerCpuArray<MapData, [u64; VERDICT]>,
) -> Result<Vec<(Verdict, VerdictCounter)>, MapsError> {
    let read = |verdict: &Verdict| {
        let [packets, bytes] = sum(counters, *verdict as u32)?;
        Ok((*verdict, VerdictCounter { packets, bytes }))
    };
    Verdict::ALL
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(map_error(names::VERDICT_COUNTERS))
}

fn traffic_of(
    counters: &PerCpuArray<MapData, [u64; TRAFFIC]>,
    index: u32,
) -> Result<TrafficCounter, MapError> {
    let [packets, bytes, connections] = sum(counters, index)?;
    Ok(TrafficCounter { packets, bytes, connections })
}

fn sum<const N: usize>(
    counters: &PerCpuArray<MapData, [u64; N]>,
    index: u32,
) -> Result<[u64; N], MapError> {
    let mut total = [0_u64; N];
    for cpu in counters.get(&index, 0)?.iter() {
        for (sum, part) in total.iter_mut().zip(cpu) {
            *sum = sum.wrapping_add(*part);
        }
    }
    Ok(total)
}

/// A map error with its map's name.
pub(super) fn map_error(map: &'static str) -> impl Fn(MapError) -> MapsError {
    move |source| MapsError::Map { map, source }
}

/// Bytes of a key or value, as aya takes them.
pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}
