//! What must be written to get from the published state to a plan. It is computed before anything is written,
//! so that a plan that does not fit changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use lb_common::abi::{
    clock::Coarse,
    limiter::NO_LIMITER,
    limits::MAX_REGIONS_PER_POOL,
    pool::{Descriptor, Group, GroupHead, ISOLATED, LIMITED, PANIC},
    service::{
        SERVICE_BY_ADDRESS, SERVICE_BY_PORT, SERVICE_FRAGMENTS, SERVICE_REJECTS, SERVICE_TRACKED,
        Service, ServiceKey,
    },
    slot::{TABLE_HEAD, TableRef, TableShape},
};

use super::{
    ReconcileError,
    free_space::{Extent, FreeSpace, Indices},
    published::{LimitTerms, Published, PublishedGroup, PublishedMember, PublishedPool, Version},
    vips::{self, VipChange},
};
use lb_maps::{NewTable, TableName};
use lb_model::{
    Affinity,
    ids::BackendId,
    maglev::TableSpec,
    plan::{Plan, PlannedGroup, PlannedMember, PlannedPool, PlannedService},
    unserved::LocalHost,
};

#[derive(Debug)]
pub(super) struct MapChange {
    /// Newly allocated limiters, which no packet reads yet.
    pub(super) limiters: BTreeSet<u32>,
    pub(super) tables: Vec<(NewTable, Arc<TableSpec>)>,
    /// Indices of groups to write.
    pub(super) groups: Vec<u32>,
    /// Indices of pools whose word changes.
    pub(super) pools: Vec<u32>,
    /// Indices of removed pools.
    pub(super) removed_pools: Vec<u32>,
    /// New and changed services.
    pub(super) services: Vec<Service>,
    pub(super) removed_services: Vec<ServiceKey>,
    /// Addresses of services.
    pub(super) vips: VipChange,
    /// All that is published after the change.
    pub(super) published: Published,
    /// What is free after the change; what the change replaces is still taken.
    pub(super) free_space: FreeSpace,
}

/// # Errors
/// [`ReconcileError::Full`] or [`ReconcileError::NumberTaken`].
pub(super) fn plan_change(
    old: &Published,
    free_space: &FreeSpace,
    plan: &Plan,
    host: &LocalHost,
) -> Result<MapChange, ReconcileError> {
    if !Arc::ptr_eq(&old.backends, &plan.backends) {
        check_numbers(old, plan)?;
    }
    let mut change = MapChange {
        limiters: BTreeSet::new(),
        tables: Vec::new(),
        groups: Vec::new(),
        pools: Vec::new(),
        removed_pools: old.pools.keys().filter(|p| !plan.pools.contains_key(p)).copied().collect(),
        services: Vec::new(),
        removed_services: Vec::new(),
        vips: VipChange::default(),
        published: Published {
            planned: plan.pools.clone(),
            backends: Arc::clone(&plan.backends),
            unserved: plan.unserved.clone(),
            tables: old.tables.clone(),
            ..Published::default()
        },
        free_space: free_space.clone(),
    };
    for (&index, pool) in &plan.pools {
        let before = old.planned.get(&index).filter(|before| Arc::ptr_eq(before, pool));
        match before.and_then(|_| old.pools.get(&index)) {
            Some(published) => change.keep_pool(old, index, published),
            None => change.pool(old, plan, index, pool)?,
        }
    }
    change.services(old, plan, host);
    let named = change.published.table_refs();
    change.published.tables.retain(|_, table| named.contains(table));
    Ok(change)
}

/// Refuses numbers that other backends have in the maps.
fn check_numbers(old: &Published, plan: &Plan) -> Result<(), ReconcileError> {
    let members = old.groups.values().flat_map(|group| &group.members);
    let owners: HashMap<u32, (BackendId, IpAddr)> =
        members.map(|member| (member.id.index, (member.id, member.address))).collect();
    for (&address, backend) in &*plan.backends {
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

impl MapChange {
    /// Keeps a pool that is planned as it was.
    fn keep_pool(&mut self, old: &Published, index: u32, pool: &PublishedPool) {
        for at in pool.versions().flat_map(Version::groups) {
            if let Some(group) = old.groups.get(at) {
                self.published.groups.insert(*at, Arc::clone(group));
            }
        }
        self.published.pools.insert(index, *pool);
    }

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
            let versions = before.into_iter().flat_map(PublishedPool::versions);
            let mut there = versions.flat_map(Version::groups).copied();
            let same = there.find(|at| is_same(old.groups.get(at).map(Arc::as_ref), index, group));
            groups.push(match same {
                Some(at) => {
                    self.keep(old, (index, pool), (at, group))?;
                    at
                }
                None => self.add(old, plan, (index, pool), group)?,
            });
        }
        let descriptor = self.descriptor(pool, &groups);
        let published = match before.filter(|before| before.current.descriptor == descriptor) {
            Some(before) => *before,
            None => {
                self.pools.push(index);
                let current = Version { at: self.free_space.descriptors.allocate()?, descriptor };
                let zones = match before {
                    Some(before) => before.zones,
                    None => self.free_space.allocate_zones()?,
                };
                after(before, current, zones)
            }
        };
        if let Some(previous) = &published.previous {
            self.keep_previous(old, previous);
        }
        self.published.pools.insert(index, published);
        Ok(())
    }

    /// Keeps the groups of a previous version as they are. They get no new connections, so they need no
    /// limits.
    fn keep_previous(&mut self, old: &Published, previous: &Version) {
        for at in previous.groups() {
            if let (None, Some(group)) = (self.published.groups.get(at), old.groups.get(at)) {
                let without = PublishedGroup { terms: None, ..(**group).clone() };
                self.keep_group(*at, group, without);
            }
        }
    }

    fn keep(
        &mut self,
        old: &Published,
        (index, pool): (u32, &PlannedPool),
        (at, planned): (u32, &PlannedGroup),
    ) -> Result<(), ReconcileError> {
        if let Some(group) = old.groups.get(&at) {
            let members = self.members(old, index, planned)?;
            let terms = Some(terms(pool, planned));
            let after = PublishedGroup { members, terms, ..(**group).clone() };
            self.keep_group(at, group, after);
        }
        Ok(())
    }

    fn keep_group(&mut self, at: u32, before: &Arc<PublishedGroup>, after: PublishedGroup) {
        let group = if **before == after { Arc::clone(before) } else { Arc::new(after) };
        self.published.groups.insert(at, group);
    }

    fn add(
        &mut self,
        old: &Published,
        plan: &Plan,
        (index, pool): (u32, &PlannedPool),
        planned: &PlannedGroup,
    ) -> Result<u32, ReconcileError> {
        let name = TableName(planned.table.words());
        let members = planned.members.len() as u32;
        let shape = TableShape { slots: planned.slots, members };
        let table = match self.published.tables.get(&name) {
            Some(table) => *table,
            None => {
                let words = self.free_space.tables.allocate(shape.words())?;
                let at = TableRef(words.start + TABLE_HEAD);
                self.published.tables.insert(name, at);
                if let Some(spec) = plan.tables.get(&planned.table) {
                    self.tables.push((NewTable { at, name, shape }, spec.clone()));
                }
                at
            }
        };
        let words = self.free_space.members.allocate(members)?;
        let head = GroupHead {
            table: table.0,
            slots: planned.slots,
            members: words.start,
            member_count: words.length,
        };
        let at = self.free_space.groups.allocate()?;
        let versions = old.pools.get(&index).into_iter().flat_map(PublishedPool::versions);
        let mut before = versions.flat_map(|version| groups_of(old, version));
        let before = before.find(|group| group.group.region == planned.region);
        let before = before.map_or(NO_LIMITER, |group| group.group.limiter);
        let limiter = self.limiter(before, |free| &mut free.group_limiters)?;
        let group = Group { head, region: planned.region, limiter, reserved: [0; 2] };
        let members = self.members(old, index, planned)?;
        let (terms, table) = (Some(terms(pool, planned)), Some(name));
        let group = PublishedGroup { group, pool: index, table, terms, members };
        self.published.groups.insert(at, Arc::new(group));
        self.groups.push(at);
        Ok(at)
    }

    /// The members of a planned group. A limited member keeps its limiter.
    fn members(
        &mut self,
        old: &Published,
        pool: u32,
        planned: &PlannedGroup,
    ) -> Result<Vec<PublishedMember>, ReconcileError> {
        let limited = planned.members.iter().any(|member| member.rate.is_some());
        let limiters: HashMap<BackendId, u32> = old
            .pools
            .get(&pool)
            .filter(|_| limited)
            .into_iter()
            .flat_map(|pool| groups_of(old, &pool.current))
            .flat_map(|group| &group.members)
            .map(|member| (member.id, member.limiter))
            .collect();
        let member = |planned: &PlannedMember| {
            let PlannedMember { address, id, weighted, rate, out } = *planned;
            let limiter = match rate {
                None => NO_LIMITER,
                Some(_) => {
                    let before = limiters.get(&id).copied().unwrap_or(NO_LIMITER);
                    self.limiter(before, |free| &mut free.member_limiters)?
                }
            };
            Ok(PublishedMember { address, id, weighted: Some(weighted), rate, limiter, out })
        };
        planned.members.iter().map(member).collect()
    }

    /// Keeps a limiter or allocates one.
    fn limiter(
        &mut self,
        before: u32,
        indices: fn(&mut FreeSpace) -> &mut Indices,
    ) -> Result<u32, ReconcileError> {
        if before != NO_LIMITER {
            return Ok(before);
        }
        let limiter = indices(&mut self.free_space).allocate()?;
        self.limiters.insert(limiter);
        Ok(limiter)
    }

    fn descriptor(&self, pool: &PlannedPool, groups: &[u32]) -> Descriptor {
        let mut order = [0; MAX_REGIONS_PER_POOL];
        order[..groups.len()].copy_from_slice(groups);
        let home = groups.first().and_then(|home| self.published.groups.get(home));
        let nowhere = GroupHead { table: 0, slots: 0, members: 0, member_count: 0 };
        let source = pool.source_prefix;
        let in_packet = |address: Ipv4Addr| u32::from_ne_bytes(address.octets());
        Descriptor {
            hash_key: pool.hash_key,
            home: home.map_or(nowhere, |home| home.group.head),
            source_v4: source.map_or(0, |prefix| in_packet(prefix.first())),
            source_hosts_v4: source.map_or(0, |prefix| in_packet(prefix.hosts())),
            flags: flags(pool),
            home_limiter: home.map_or(NO_LIMITER, |home| home.group.limiter),
            groups: order,
            group_count: groups.len() as u32,
            spare: [0; 11],
        }
    }

    fn services(&mut self, old: &Published, plan: &Plan, host: &LocalHost) {
        for (key, planned) in &plan.services {
            let service = service(*key, planned);
            if old.services.get(key) != Some(&service) {
                self.services.push(service);
            }
            self.published.services.insert(*key, service);
        }
        let gone = old.services.keys().filter(|key| !plan.services.contains_key(key));
        self.removed_services.extend(gone.copied());
        self.published.vips = vips::words(&plan.unserved, host);
        self.vips = VipChange::between(&old.vips, &self.published.vips);
    }

    /// What the change replaces. It is free once the change is published and a grace period has passed.
    pub(super) fn unused(&self, old: &Published) -> Unused {
        Unused::between(old, &self.published)
    }
}

/// A pool's versions after a new current one. The previous version is the one before the first of several
/// changes, unless its home is the same as the current one.
fn after(before: Option<&PublishedPool>, current: Version, zones: Extent) -> PublishedPool {
    let alone = PublishedPool { current, previous: None, zones };
    let Some(before) = before else { return alone };
    let moved = before.current.home() != current.home();
    let previous = before.previous.or_else(|| Some(before.current).filter(|_| moved));
    let previous = previous.filter(|f| f.home().is_some() && f.home() != current.home());
    PublishedPool { previous, ..alone }
}

/// What a change leaves unused.
#[derive(Debug, Default)]
pub(super) struct Unused {
    pub(super) groups: BTreeMap<u32, Arc<PublishedGroup>>,
    pub(super) descriptors: Vec<u32>,
    pub(super) tables: Vec<Extent>,
    pub(super) limiters: Vec<u32>,
    pub(super) zones: Vec<Extent>,
}

impl Unused {
    /// What `old` has and `kept` has not.
    pub(super) fn between(old: &Published, kept: &Published) -> Self {
        let groups = old.groups.iter().filter(|(at, _)| !kept.groups.contains_key(at));
        Self {
            groups: groups.map(|(at, group)| (*at, group.clone())).collect(),
            descriptors: old.descriptors().difference(&kept.descriptors()).copied().collect(),
            tables: old.table_extents().difference(&kept.table_extents()).copied().collect(),
            limiters: old.limiters().difference(&kept.limiters()).copied().collect(),
            zones: old.zones().difference(&kept.zones()).copied().collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
            && self.descriptors.is_empty()
            && self.tables.is_empty()
            && self.limiters.is_empty()
            && self.zones.is_empty()
    }

    pub(super) fn free(&self, free_space: &mut FreeSpace) {
        for (at, group) in &self.groups {
            free_space.free_group(*at, group);
        }
        for descriptor in &self.descriptors {
            free_space.descriptors.free(*descriptor);
        }
        for table in &self.tables {
            free_space.tables.free(*table);
        }
        for limiter in &self.limiters {
            free_space.free_limiter(*limiter);
        }
        for zones in &self.zones {
            free_space.free_zones(*zones);
        }
    }
}

fn is_same(there: Option<&PublishedGroup>, pool: u32, planned: &PlannedGroup) -> bool {
    there.is_some_and(|there| {
        let members = there.members.iter().map(|member| (member.address, member.id, member.out));
        there.pool == pool
            && there.group.limiter != NO_LIMITER
            && there.group.region == planned.region
            && there.group.head.slots == planned.slots
            && there.table == Some(TableName(planned.table.words()))
            && members
                .eq(planned.members.iter().map(|member| (member.address, member.id, member.out)))
    })
}

fn groups_of<'p>(
    published: &'p Published,
    version: &'p Version,
) -> impl Iterator<Item = &'p PublishedGroup> {
    version.groups().iter().filter_map(|at| published.groups.get(at).map(Arc::as_ref))
}

fn terms(pool: &PlannedPool, group: &PlannedGroup) -> LimitTerms {
    LimitTerms {
        pool: pool.name.clone(),
        region: group.name.clone(),
        settings: group.settings,
        balancers: pool.balancers,
    }
}

fn flags(pool: &PlannedPool) -> u32 {
    let flags = [(pool.is_limited(), LIMITED), (pool.isolated, ISOLATED), (pool.panics, PANIC)];
    let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
    flags | pool.form.flags()
}

fn service(key: ServiceKey, planned: &PlannedService) -> Service {
    let tracked = planned.tracked.map(|idle| {
        // A started second counts in full. The configured maximum of 18 hours fits into 16 bits.
        let seconds = idle.as_secs() + u64::from(idle.subsec_nanos() > 0);
        SERVICE_TRACKED | (Coarse::units(seconds) as u32) << 16
    });
    let affinity = match planned.affinity {
        Affinity::Connection => 0,
        Affinity::Client => SERVICE_BY_ADDRESS,
        Affinity::Port => SERVICE_BY_PORT,
    };
    let flags = tracked.unwrap_or(0)
        | affinity
        | if planned.rejects { SERVICE_REJECTS } else { 0 }
        | if planned.fragments { SERVICE_FRAGMENTS } else { 0 };
    Service { key, index: planned.index, pool: planned.pool, flags }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use lb_common::abi::{form::Form, sizes::MapSizes, zone::ZONES};
    use lb_model::Name;
    use proptest::{collection::btree_map, collection::vec, prelude::*};

    use super::*;

    /// Pools by index, each with what its hash key is.
    fn plan(pools: &BTreeMap<u32, u64>) -> Plan {
        let pool = |(&index, &key): (&u32, &u64)| {
            let pool = PlannedPool {
                name: Name::new(&format!("pool-{index}")).unwrap(),
                hash_key: [key, 0],
                source_prefix: None,
                groups: Vec::new(),
                idle: BTreeSet::new(),
                balancers: NonZeroU32::MIN,
                isolated: false,
                panics: false,
                form: Form::from_flags(0),
            };
            (index, Arc::new(pool))
        };
        Plan { pools: pools.iter().map(pool).collect(), ..Plan::default() }
    }

    fn overlap(one: Extent, other: Extent) -> bool {
        one.start < other.start + other.length && other.start < one.start + one.length
    }

    proptest! {
        /// A pool has the same zones as long as it is there, whatever changes, also for a daemon that starts and reads what is
        /// published. Those of a pool that is removed are another's only after packets from before have gone.
        #[test]
        fn zones_are_a_pools_own_until_it_is_gone(
            plans in vec((btree_map(1..12_u32, 0..3_u64, 0..9), any::<bool>()), 1..20),
        ) {
            let sizes = MapSizes::DEFAULT;
            let mut published = Published::default();
            let mut free_space = FreeSpace::from_published(&published, &sizes, &BTreeSet::new());
            for (pools, starts) in plans {
                let before: BTreeMap<u32, Extent> =
                    published.pools.iter().map(|(index, pool)| (*index, pool.zones)).collect();
                let (plan, host) = (plan(&pools), LocalHost::default());
                let change = plan_change(&published, &free_space, &plan, &host).unwrap();
                let after: BTreeMap<u32, Extent> =
                    change.published.pools.iter().map(|(at, pool)| (*at, pool.zones)).collect();
                prop_assert!(after.keys().eq(pools.keys()));
                for (index, zones) in &after {
                    prop_assert!(zones.length > 0 && zones.start + zones.length <= ZONES);
                    prop_assert!(before.get(index).is_none_or(|had| had == zones), "{index} moved");
                    // Packets still use those of pools that this change removes.
                    for (other, others) in before.iter().chain(&after) {
                        prop_assert!(other == index || !overlap(*zones, *others), "{index} {other}");
                    }
                }
                let unused = change.unused(&published);
                (published, free_space) = (change.published, change.free_space);
                unused.free(&mut free_space);
                if starts {
                    let found = FreeSpace::from_published(&published, &sizes, &BTreeSet::new());
                    let (mut kept, mut read) = (free_space.clone(), found.clone());
                    for _ in 0..3 {
                        prop_assert_eq!(kept.allocate_zones(), read.allocate_zones());
                    }
                    free_space = found;
                }
            }
        }
    }
}
