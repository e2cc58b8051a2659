//! What must be written to get from what is published to a plan. Worked out whole before anything is
//! written, so that what does not fit changes nothing.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use lb_common::abi::{
    descriptor::Descriptor,
    group::{Group, GroupHead},
    limits::MAX_REGIONS_PER_POOL,
    service::{SERVICE_BY_ADDRESS, Service, ServiceKey, address_words},
    table_ref::TableRef,
};

use super::{
    ReconcileError,
    published::{Published, PublishedGroup, PublishedMember, PublishedPool},
    room::Room,
};
use crate::{
    dataplane::TableName,
    ids::BackendId,
    maglev::TableSpec,
    plan::{Plan, PlannedGroup, PlannedMember, PlannedPool, PlannedService},
};

/// What must be written.
#[derive(Debug)]
pub(super) struct Change {
    /// Tables to build.
    pub(super) tables: Vec<(TableRef, TableName, Arc<TableSpec>)>,
    /// Indices of groups to write.
    pub(super) groups: Vec<u32>,
    /// Indices of pools whose word changes.
    pub(super) pools: Vec<u32>,
    /// Indices of pools that go.
    pub(super) removed_pools: Vec<u32>,
    /// Services that are new or differ.
    pub(super) services: Vec<Service>,
    /// Services that go.
    pub(super) removed_services: Vec<ServiceKey>,
    /// All that is published then.
    pub(super) published: Published,
    /// What is free then, with what the change leaves still taken.
    pub(super) room: Room,
}

/// Works a change out.
///
/// # Errors
/// [`ReconcileError::Full`] or [`ReconcileError::NumberTaken`].
pub(super) fn change(old: &Published, room: &Room, plan: &Plan) -> Result<Change, ReconcileError> {
    check_numbers(old, plan)?;
    let mut change = Change {
        tables: Vec::new(),
        groups: Vec::new(),
        pools: Vec::new(),
        removed_pools: old.pools.keys().filter(|p| !plan.pools.contains_key(p)).copied().collect(),
        services: Vec::new(),
        removed_services: Vec::new(),
        published: Published { tables: old.tables.clone(), ..Published::default() },
        room: room.clone(),
    };
    for (&index, pool) in &plan.pools {
        change.pool(old, plan, index, pool)?;
    }
    change.services(old, plan);
    let named = change.published.table_refs();
    change.published.tables.retain(|_, table| named.contains(table));
    Ok(change)
}

/// Refuses numbers that the maps know as somebody else's.
fn check_numbers(old: &Published, plan: &Plan) -> Result<(), ReconcileError> {
    let members = old.groups.values().flat_map(|group| &group.members);
    let owners: HashMap<u32, (BackendId, IpAddr)> =
        members.map(|member| (member.id.index, (member.id, member.address))).collect();
    for (&address, backend) in &plan.backends {
        let index = backend.id.index;
        match owners.get(&index) {
            Some(&(id, owner)) if (id, owner) != (backend.id, address) => {
                return Err(ReconcileError::NumberTaken { address, index, owner });
            }
            _ => {}
        }
    }
    Ok(())
}

impl Change {
    fn pool(
        &mut self,
        old: &Published,
        plan: &Plan,
        index: u32,
        pool: &PlannedPool,
    ) -> Result<(), ReconcileError> {
        let before = old.pools.get(&index);
        let mut groups = Vec::with_capacity(pool.groups.len());
        for group in &pool.groups {
            let there = before.into_iter().flat_map(PublishedPool::groups);
            let same = there.copied().find(|at| is_same(old.groups.get(at), index, group));
            groups.push(match same {
                Some(at) => {
                    self.keep(old, at, group);
                    at
                }
                None => self.add(plan, index, group)?,
            });
        }
        let descriptor = self.descriptor(pool, &groups);
        let published = match before.filter(|before| before.descriptor == descriptor) {
            Some(before) => *before,
            None => {
                self.pools.push(index);
                PublishedPool { at: self.room.descriptors.allocate()?, descriptor }
            }
        };
        self.published.pools.insert(index, published);
        Ok(())
    }

    fn keep(&mut self, old: &Published, at: u32, planned: &PlannedGroup) {
        if let Some(group) = old.groups.get(&at) {
            let members = planned.members.iter().map(published_member).collect();
            self.published.groups.insert(at, PublishedGroup { members, ..group.clone() });
        }
    }

    fn add(
        &mut self,
        plan: &Plan,
        pool: u32,
        planned: &PlannedGroup,
    ) -> Result<u32, ReconcileError> {
        let name = TableName::of(planned.table);
        let table = match self.published.tables.get(&name) {
            Some(table) => *table,
            None => {
                let table = self.room.table(planned.slots)?;
                self.published.tables.insert(name, table);
                if let Some(spec) = plan.tables.get(&planned.table) {
                    self.tables.push((table, name, spec.clone()));
                }
                table
            }
        };
        let members = self.room.members.allocate(planned.members.len() as u32)?;
        let head = GroupHead {
            table: table.0,
            slots: planned.slots,
            members: members.start,
            member_count: members.length,
        };
        let at = self.room.groups.allocate()?;
        let group = Group { head, region: planned.region, meter: 0, reserved: [0; 2] };
        let members = planned.members.iter().map(published_member).collect();
        let group = PublishedGroup { group, pool, table: Some(name), members };
        self.published.groups.insert(at, group);
        self.groups.push(at);
        Ok(at)
    }

    fn descriptor(&self, pool: &PlannedPool, groups: &[u32]) -> Descriptor {
        let mut order = [0; MAX_REGIONS_PER_POOL];
        order[..groups.len()].copy_from_slice(groups);
        let home = groups.first().and_then(|home| self.published.groups.get(home));
        let nowhere = GroupHead { table: 0, slots: 0, members: 0, member_count: 0 };
        Descriptor {
            hash_key: pool.hash_key,
            home: home.map_or(nowhere, |home| home.group.head),
            source_v6: pool.sources.v6.map_or([0; 4], |v6| address_words(v6.into())),
            source_v4: pool.sources.v4.map_or(0, |v4| u32::from_ne_bytes(v4.octets())),
            group_count: groups.len() as u32,
            flags: 0,
            home_meter: 0,
            groups: order,
            spare: [0; 8],
        }
    }

    fn services(&mut self, old: &Published, plan: &Plan) {
        for (key, planned) in &plan.services {
            let service = service(*key, planned);
            if old.services.get(key) != Some(&service) {
                self.services.push(service);
            }
            self.published.services.insert(*key, service);
        }
        let gone = old.services.keys().filter(|key| !plan.services.contains_key(key));
        self.removed_services.extend(gone.copied());
    }

    /// What the change leaves: nobody reads it any more once it is published and a grace period
    /// passed.
    pub(super) fn left(&self, old: &Published) -> Left {
        let kept = &self.published;
        let groups = old.groups.iter().filter(|(at, _)| !kept.groups.contains_key(at));
        let replaced = |index: &u32| kept.pools.get(index).map(|pool| pool.at);
        let pools = old.pools.iter().filter(|(index, pool)| replaced(index) != Some(pool.at));
        Left {
            groups: groups.map(|(at, group)| (*at, group.clone())).collect(),
            descriptors: pools.map(|(_, pool)| pool.at).collect(),
            tables: old.table_refs().difference(&kept.table_refs()).copied().collect(),
        }
    }
}

/// What a change leaves unused.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) groups: BTreeMap<u32, PublishedGroup>,
    pub(super) descriptors: Vec<u32>,
    pub(super) tables: Vec<TableRef>,
}

impl Left {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.descriptors.is_empty() && self.tables.is_empty()
    }

    /// Gives it back.
    pub(super) fn free(&self, room: &mut Room) {
        for (at, group) in &self.groups {
            room.free_group(*at, group);
        }
        for descriptor in &self.descriptors {
            room.descriptors.free(*descriptor);
        }
        for table in &self.tables {
            room.free_table(*table);
        }
    }
}

fn is_same(there: Option<&PublishedGroup>, pool: u32, planned: &PlannedGroup) -> bool {
    there.is_some_and(|there| {
        let members = there.members.iter().map(|member| (member.address, member.id));
        there.pool == pool
            && there.group.region == planned.region
            && there.group.head.slots == planned.slots
            && there.table == Some(TableName::of(planned.table))
            && members.eq(planned.members.iter().map(|member| (member.address, member.id)))
    })
}

fn published_member(planned: &PlannedMember) -> PublishedMember {
    let PlannedMember { address, id, weighted } = *planned;
    PublishedMember { address, id, weighted: Some(weighted) }
}

fn service(key: ServiceKey, planned: &PlannedService) -> Service {
    let flags = if planned.by_address { SERVICE_BY_ADDRESS } else { 0 };
    Service { key, index: planned.index, pool: planned.pool, flags }
}
