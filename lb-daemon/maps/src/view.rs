//! One service as the packet program sees it, read from the maps so that the pure decision can run
//! over it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap, btree_map::Entry},
};

use lb_common::{
    abi::{
        backend::{Backend, BackendStateWord},
        clock::{Coarse, Nanoseconds},
        counter::{Event, GroupCounter},
        limiter::LimitWord,
        limits::MAX_REGIONS_PER_POOL,
        member::{Accepts, MemberWord},
        next_hop::{InterfaceWord, NextHopWord},
        pool::{Descriptor, Group, GroupHead, PoolLine, PoolWord},
        service::{AddressWords, Service, ServiceKey, VipWord},
        slot::{SlotWord, StandbyWord, TableRef},
        zone::Zone,
    },
    flow_table::FlowCells,
    path::Tables,
    word::Snapshot,
};

use super::{Access, MapsError, SlotTable, flow_table::ReadBucket, maps::Maps, raw::Mapping};

/// How often a pool is read again if it changes during the read.
const ATTEMPTS: u32 = 16;

/// A consistent view of a service with its pool: immutable values are copied, words are read live.
#[derive(Debug)]
pub struct ServiceView<'m, M = Mapping> {
    maps: &'m Maps<M>,
    service: Service,
    pool: PoolView,
    /// Backends of all pools, read once a backend is needed that no group of this pool has: flows stay with backends
    /// of a region that the pool no longer uses.
    backends: OnceCell<HashMap<u32, Backend>>,
}

/// The groups and backends of a pool, as far as counters need them: no table.
#[derive(Clone, Debug, Default)]
pub struct PoolMembers {
    /// The groups of the version that new connections are placed by, in their order, each with its index.
    pub groups: Vec<(u32, Group)>,
    /// The backends of their members, by index.
    pub backends: HashMap<u32, Backend>,
    /// Those that only the version before it has, during a remap. One that was removed and is there again has two indices, one
    /// of them here.
    pub replaced: HashMap<u32, Backend>,
}

/// A consistent view of what a pool's word names.
#[derive(Debug)]
pub struct PoolView {
    /// The line, with the displaced check at that moment.
    pub line: PoolLine,
    /// The descriptor that new connections are placed by.
    pub descriptor: Descriptor,
    /// The descriptor by which open connections are at home still, during a remap.
    pub previous: Option<Descriptor>,
    /// The first one's groups in their order, each with its index.
    pub groups: Vec<(u32, Group)>,
    /// The other one's.
    previous_groups: Vec<(u32, Group)>,
    /// The slot tables of these groups.
    pub tables: BTreeMap<TableRef, SlotTable>,
    /// The backends of their members, by index.
    pub backends: HashMap<u32, Backend>,
}

impl<M: Access> Maps<M> {
    /// A service with its pool; `None` where that names nothing.
    ///
    /// # Errors
    /// [`MapsError::Changing`] where the pool changed each time it was read, or as [`Maps::table`].
    pub fn service_view(&self, service: Service) -> Result<Option<ServiceView<'_, M>>, MapsError> {
        let pool = self.pool_view(service.pool)?;
        Ok(pool.map(|pool| ServiceView { maps: self, service, pool, backends: OnceCell::new() }))
    }

    /// What a pool's word names; `None` where it names nothing.
    ///
    /// # Errors
    /// [`MapsError::Changing`] where the pool changed each time it was read, or as [`Maps::table`].
    pub fn pool_view(&self, index: u32) -> Result<Option<PoolView>, MapsError> {
        self.settled(index, |line| self.read_pool(line))
    }

    /// The groups and backends of a pool; `None` if its word names nothing. Opens no table, so it makes no system
    /// call.
    ///
    /// # Errors
    /// [`MapsError::Changing`] where the pool changed each time it was read.
    pub fn pool_members(&self, index: u32) -> Result<Option<PoolMembers>, MapsError> {
        self.settled(index, |line| Ok(self.read_members(line)))
    }

    /// Reads from a pool until its word is the same before and after.
    fn settled<T>(
        &self,
        index: u32,
        read: impl Fn(PoolLine) -> Result<Option<T>, MapsError>,
    ) -> Result<Option<T>, MapsError> {
        for _ in 0..ATTEMPTS {
            let line = self.pool_line(index);
            if line.versions().now() == 0 {
                return Ok(None);
            }
            let read = read(line);
            if self.pool(index) == line.versions() {
                return read;
            }
        }
        Err(MapsError::Changing { pool: index })
    }

    fn read_members(&self, line: PoolLine) -> Option<PoolMembers> {
        let word = line.versions();
        let groups = self.groups_of(&self.descriptor(word.latest())?);
        let before = if word.next() == 0 { None } else { self.descriptor(word.now()) };
        let before = before.map(|before| self.groups_of(&before)).unwrap_or_default();
        let (mut backends, mut replaced) = (HashMap::new(), HashMap::new());
        groups.iter().for_each(|(_, group)| self.add_backends(group, &mut backends));
        before.iter().for_each(|(_, group)| self.add_backends(group, &mut replaced));
        replaced.retain(|index, _| !backends.contains_key(index));
        Some(PoolMembers { groups, backends, replaced })
    }

    fn add_backends(&self, group: &Group, backends: &mut HashMap<u32, Backend>) {
        for rank in 0..group.head.member_count {
            let member = self.member(group.head.members.saturating_add(rank));
            let index = member.map_or(0, MemberWord::backend);
            backends.extend(self.backend(index).map(|backend| (index, backend)));
        }
    }

    fn read_pool(&self, line: PoolLine) -> Result<Option<PoolView>, MapsError> {
        let word = line.versions();
        let Some(descriptor) = self.descriptor(word.latest()) else { return Ok(None) };
        let previous = if word.next() == 0 { None } else { self.descriptor(word.now()) };
        let groups = self.groups_of(&descriptor);
        let previous_groups =
            previous.as_ref().map(|previous| self.groups_of(previous)).unwrap_or_default();
        let mut tables = BTreeMap::new();
        let mut backends = HashMap::new();
        for (_, group) in groups.iter().chain(&previous_groups) {
            let table = TableRef(group.head.table);
            if let Entry::Vacant(entry) = tables.entry(table) {
                entry.insert(self.table(table, group.head.shape())?);
            }
            self.add_backends(group, &mut backends);
        }
        Ok(Some(PoolView { line, descriptor, previous, groups, previous_groups, tables, backends }))
    }

    fn groups_of(&self, descriptor: &Descriptor) -> Vec<(u32, Group)> {
        let count = (descriptor.group_count as usize).min(MAX_REGIONS_PER_POOL);
        let named = |index: &u32| Some((*index, self.group(*index)?));
        descriptor.groups[..count].iter().filter_map(named).collect()
    }
}

impl<M> ServiceView<'_, M> {
    pub fn service(&self) -> &Service {
        &self.service
    }

    pub fn pool(&self) -> &PoolView {
        &self.pool
    }
}

impl PoolView {
    pub fn word(&self) -> PoolWord {
        self.line.versions()
    }
}

impl<M: AsRef<Mapping>> FlowCells for ServiceView<'_, M> {
    type Bucket<'c>
        = ReadBucket<'c>
    where
        Self: 'c;

    fn mask(&self) -> Option<u32> {
        self.maps.flows().mask()
    }

    fn bucket(&self, number: u32) -> Option<ReadBucket<'_>> {
        self.maps.flows().bucket(number)
    }
}

/// Hands out copies of the words and counts nothing, so that explaining changes nothing.
impl<M: AsRef<Mapping>> Tables for ServiceView<'_, M> {
    type Word<'t>
        = Snapshot
    where
        Self: 't;

    fn now(&self) -> Nanoseconds {
        self.maps.now()
    }

    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)> {
        self.maps.limiter(index).map(|limiter| (LimitWord(limiter.limit), limiter.arrival))
    }

    fn arrival(&self, index: u32) -> Option<Snapshot> {
        self.maps.limiter(index).map(|limiter| Snapshot(limiter.arrival))
    }

    fn member_limiter(&self, index: u32) -> Option<u32> {
        Some(self.maps.member_limiter(index))
    }

    fn backend_state(&self, backend: u32) -> Option<BackendStateWord> {
        Some(self.maps.backend_state(backend))
    }

    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts {
        self.maps.shared_backend(pool, backend).unwrap_or(Accepts::Nothing)
    }

    fn set_last_displaced(&self, _: u32, _: Coarse) {}

    fn zone(&self, index: u32) -> Option<Zone> {
        Some(self.maps.zone(index))
    }

    fn set_zone_displaced(&self, _: u32, _: Coarse) {}

    fn flow_count(&self, pool: u32) -> Option<Snapshot> {
        Some(Snapshot(self.maps.flow_count(pool)))
    }

    fn flow_secret(&self) -> [u64; 2] {
        self.maps.flows().secret()
    }

    fn count(&self, _: Event) {}

    fn count_group(&self, _: u32, _: impl FnOnce(&mut GroupCounter)) {}

    fn service(&self, key: &ServiceKey) -> Option<&Service> {
        (self.service.key == *key).then_some(&self.service)
    }

    /// Not needed to explain a flow.
    fn vip(&self, address: &AddressWords, version: u8) -> Option<VipWord> {
        let is_its = (self.service.key.address, self.service.key.version) == (*address, version);
        is_its.then_some(VipWord::new(false))
    }

    /// As little.
    fn answer_arrival(&self, _: u32) -> Option<Snapshot> {
        None
    }

    fn pool(&self, index: u32) -> Option<PoolLine> {
        (self.service.pool == index).then_some(self.pool.line)
    }

    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        let word = self.pool.word();
        match index {
            0 => None,
            _ if word.latest() == index => Some(&self.pool.descriptor),
            _ if word.now() == index => self.pool.previous.as_ref(),
            _ => None,
        }
    }

    fn group(&self, index: u32) -> Option<&Group> {
        let mut groups = self.pool.groups.iter().chain(&self.pool.previous_groups);
        groups.find(|(at, _)| *at == index).map(|(_, group)| group)
    }

    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord> {
        self.pool.tables.get(&table)?.slot(slot)
    }

    fn owner(&self, head: &GroupHead, slot: u32) -> Option<u16> {
        self.pool.tables.get(&TableRef(head.table))?.owner(slot)
    }

    fn standby(&self, index: u32) -> Option<StandbyWord> {
        self.maps.standbys.get(index).map(StandbyWord)
    }

    fn member(&self, index: u32) -> Option<MemberWord> {
        self.maps.member(index)
    }

    fn backend(&self, index: u32) -> Option<&Backend> {
        let all = || {
            let numbers = self.maps.backend_states().map(|(index, _)| index);
            numbers.filter_map(|index| Some((index, self.maps.backend(index)?))).collect()
        };
        let of_pool = self.pool.backends.get(&index);
        of_pool.or_else(|| self.backends.get_or_init(all).get(&index))
    }

    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        self.maps.next_hops.get(index).map(|hop| NextHopWord(hop.word))
    }

    fn tunnel_source(&self, next_hop: u32) -> Option<AddressWords> {
        self.maps.next_hops.get(next_hop).map(|hop| hop.source)
    }

    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        self.maps.interfaces.get(index).map(InterfaceWord)
    }
}
