//! One service as the packet program sees it, read from the maps so that the pure decision can run
//! over it.

use std::collections::{BTreeMap, HashMap, btree_map::Entry};

use lb_common::{
    abi::{
        backend::Backend,
        descriptor::Descriptor,
        group::{Group, GroupHead},
        limits::MAX_REGIONS_PER_POOL,
        member::MemberWord,
        next_hop::{InterfaceWord, NextHopWord},
        pool::PoolWord,
        service::{Service, ServiceKey},
        slot::{SlotWord, StandbyWord},
        table_ref::TableRef,
    },
    path::Tables,
};

use super::{MapsError, SlotTable, maps::Maps, raw::Mapping};

/// Times a pool is read again because it changed meanwhile.
const ATTEMPTS: u32 = 16;

/// A service with its pool, of one moment: what is immutable is copied, words are read live.
#[derive(Debug)]
pub struct ServiceView<'m, M = Mapping> {
    maps: &'m Maps<M>,
    service: Service,
    pool: PoolView,
}

/// What a pool's word named at one moment.
#[derive(Debug)]
pub struct PoolView {
    /// The word.
    pub word: PoolWord,
    /// Its current descriptor.
    pub descriptor: Descriptor,
    /// The descriptor's groups in their order, each with its index.
    pub groups: Vec<(u32, Group)>,
    /// The slot tables of these groups.
    pub tables: BTreeMap<TableRef, SlotTable>,
    /// The backends of their members, by index.
    pub backends: HashMap<u32, Backend>,
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// The service of a key, with its pool.
    ///
    /// # Errors
    /// [`MapsError::Changing`] where the pool changed each time it was read, or as
    /// [`Maps::service`] and [`Maps::table`].
    pub fn service_view(&self, key: &ServiceKey) -> Result<Option<ServiceView<'_, M>>, MapsError> {
        let Some(service) = self.service(key)? else { return Ok(None) };
        let pool = self.pool_view(service.pool)?;
        Ok(pool.map(|pool| ServiceView { maps: self, service, pool }))
    }

    /// What a pool's word names; `None` where it names nothing.
    ///
    /// # Errors
    /// [`MapsError::Changing`] where the pool changed each time it was read, or as [`Maps::table`].
    pub fn pool_view(&self, index: u32) -> Result<Option<PoolView>, MapsError> {
        for _ in 0..ATTEMPTS {
            let word = self.pool(index);
            if word.current() == 0 {
                return Ok(None);
            }
            let read = self.read_pool(word);
            if self.pool(index) == word {
                return read;
            }
        }
        Err(MapsError::Changing { pool: index })
    }

    fn read_pool(&self, word: PoolWord) -> Result<Option<PoolView>, MapsError> {
        let Some(descriptor) = self.descriptor(word.current()) else { return Ok(None) };
        let count = (descriptor.group_count as usize).min(MAX_REGIONS_PER_POOL);
        let named = |index: &u32| Some((*index, self.group(*index)?));
        let groups: Vec<_> = descriptor.groups[..count].iter().filter_map(named).collect();
        let mut tables = BTreeMap::new();
        let mut backends = HashMap::new();
        for (_, group) in &groups {
            let table = TableRef(group.head.table);
            if let Entry::Vacant(entry) = tables.entry(table) {
                entry.insert(self.table(table, group.head.slots)?);
            }
            for rank in 0..group.head.member_count {
                let member = self.member(group.head.members.saturating_add(rank));
                let index = member.map_or(0, MemberWord::backend);
                backends.extend(self.backend(index).map(|backend| (index, backend)));
            }
        }
        Ok(Some(PoolView { word, descriptor, groups, tables, backends }))
    }
}

impl<M> ServiceView<'_, M> {
    /// The service.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Its pool.
    pub fn pool(&self) -> &PoolView {
        &self.pool
    }
}

impl<M: AsRef<Mapping>> Tables for ServiceView<'_, M> {
    fn service(&self, key: &ServiceKey) -> Option<Service> {
        (self.service.key == *key).then_some(self.service)
    }

    fn pool(&self, index: u32) -> Option<PoolWord> {
        (self.service.pool == index).then_some(self.pool.word)
    }

    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        (self.pool.word.current() == index).then_some(&self.pool.descriptor)
    }

    fn group(&self, index: u32) -> Option<&Group> {
        let mut groups = self.pool.groups.iter();
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
        self.pool.backends.get(&index)
    }

    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        self.maps.next_hops.get(index).map(NextHopWord)
    }

    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        self.maps.interfaces.get(index).map(InterfaceWord)
    }
}
