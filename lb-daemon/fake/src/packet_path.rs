//! A packet path in memory that behaves like the real one, for tests of the state loop.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, mpsc},
    time::Duration,
};

use lb_base::{heartbeat::Heartbeat, loops::LoopEnd};
use lb_common::abi::{
    clock::USUAL_TICK, counter::GroupCounter, limiter::LimitWord, member::Accepts, sizes::MapSizes,
};

use lb_control::state::Loops;
use lb_model::{
    Name,
    capacity::{
        Capacity, GroupName, GroupReading, Member, Portion, PortionsInForce, Share, is_lower,
    },
    ids::Named,
    maglev::{BuiltTables, TableId, TableSpec},
    map_memory::TableMemory,
    next_hop::NextHop,
    overrides::Overrides,
    plan::{Plan, PlannedGroup, PlannedMember, PlannedPool},
    unserved::LocalHost,
};
use lb_net::{Bonds, ConfiguredInterfaces};
use lb_publish::{
    publisher::{MovedSlots, PacketPath, PublishedPools},
    reconcile::{
        ApplySummary, Full, FullMap, Home, InterfaceStatus, MemberPath, PathReader, PoolHomes,
        ReconcileError,
    },
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the packet path holds. Tests read it, and make the packet path fail, through
/// [`FakePacketPath::content`].
#[derive(Debug, Default)]
pub struct Content {
    pub plan: Plan,
    pub states: BTreeMap<(Name, IpAddr), Accepts>,
    pub last_resorts: BTreeSet<(Name, IpAddr)>,
    pub ramps: BTreeMap<(Name, IpAddr), u8>,
    /// What limits are written under.
    pub overrides: Arc<Overrides>,
    /// Pools whose limits were written again, in order.
    pub limit_writes: Vec<Name>,
    /// The portions that limits are written under.
    pub portions: PortionsInForce,
    /// Limits of groups, and of members with a limit of their own, as written.
    pub limits: BTreeMap<Limited, LimitWord>,
    /// All limits of groups that were changed, in order.
    pub limit_changes: Vec<(GroupName, LimitWord)>,
    /// Most groups whose limits are written in one go; `None`: all.
    pub groups_at_once: Option<usize>,
    /// No plan has described the groups yet.
    pub is_undescribed: bool,
    /// What this host is to VIPs.
    pub host: Arc<LocalHost>,
    pub next_hops: BTreeMap<IpAddr, NextHop>,
    /// Backends that lost theirs and await another.
    pub awaited: BTreeSet<IpAddr>,
    pub bonds: Bonds,
    /// All states that were set, in order.
    pub state_writes: Vec<(Name, IpAddr, Accepts)>,
    /// Previous homes that are not forgotten yet.
    pub previous_homes: BTreeMap<u32, Arc<PlannedPool>>,
    /// All tables that were published.
    pub tables: BTreeMap<TableId, Arc<TableSpec>>,
    /// Whether each new table of the last plan was built before.
    pub built: Vec<bool>,
    /// Number of plans that were applied.
    pub applied: usize,
    /// Counters by index of the region.
    pub counted: BTreeMap<u32, GroupCounter>,
    /// The program is not attached.
    pub detached: bool,
    /// How much the maps hold.
    pub sizes: MapSizes,
    /// There is no room for any plan.
    pub full: bool,
    /// This many applies will fail.
    pub failures: usize,
    /// The next apply sends on the first channel and waits until the other end of the second is dropped.
    stall: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

/// What has a limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limited {
    Group(GroupName),
    Member(Name, IpAddr),
}

/// Heartbeats that a test looks at.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    pub state: Heartbeat,
    pub publisher: Heartbeat,
}

impl Heartbeats {
    pub fn every(interval: Duration) -> Self {
        let [state, publisher] = [(); 2].map(|()| Heartbeat::unwatched(interval));
        Self { state, publisher }
    }
}

/// Runs all loops as tasks. Returns the state loop's.
pub fn spawn<P, W, R>(
    loops: Loops<P, W, R>,
    heartbeats: &Heartbeats,
    stop: &CancellationToken,
) -> JoinHandle<LoopEnd>
where
    P: PacketPath + 'static,
    W: MemberPath + 'static,
    R: PathReader + 'static,
{
    let Loops { state, publisher, members, overrides, status, .. } = loops;
    let Heartbeats { state: state_beat, publisher: publisher_beat } = heartbeats.clone();
    let unwatched = Heartbeat::unwatched(state_beat.interval());
    let state = tokio::spawn(state.run(state_beat, stop.clone().cancelled_owned()));
    // They end with the state loop.
    tokio::spawn(publisher.run(publisher_beat));
    tokio::spawn(members.run(unwatched.clone(), std::future::pending()));
    tokio::spawn(overrides.run(unwatched.clone(), stop.clone().cancelled_owned()));
    tokio::spawn(status.run(unwatched, stop.clone().cancelled_owned()));
    state
}

/// A packet path that outlives the loops, as pinned maps do.
#[derive(Clone, Debug, Default)]
pub struct FakePacketPath(Arc<Mutex<Content>>);

impl FakePacketPath {
    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    /// Makes the publisher wait in the next plan until the stall is dropped.
    pub fn stall(&self) -> Stall {
        let (stalled, begun) = mpsc::channel();
        let (release, released) = mpsc::channel();
        self.content().stall = Some((stalled, released));
        Stall { begun, _release: release }
    }
}

/// A publisher that waits.
#[derive(Debug)]
pub struct Stall {
    begun: mpsc::Receiver<()>,
    _release: mpsc::Sender<()>,
}

impl Stall {
    /// Waits until it waits. The publisher needs its own thread for this.
    pub async fn begun(self) -> Self {
        let wait = tokio::task::spawn_blocking(move || self.begun.recv().map(|()| self).unwrap());
        wait.await.unwrap()
    }
}

impl Content {
    /// Numbers that packets may still meet.
    pub fn named(&self) -> Named {
        let plan = &self.plan;
        let previous_homes = self.previous_homes.values().flat_map(|pool| members(pool));
        let ids =
            plan.backends.values().map(|backend| backend.id).chain(previous_homes.map(|m| m.id));
        Named {
            backends: ids.map(|id| (id.index, id.incarnation)).collect(),
            services: plan.services.values().map(|service| service.index).collect(),
            pools: plan.pools.keys().copied().collect(),
            regions: plan.pools.values().flat_map(|p| &p.groups).map(|g| g.region).collect(),
        }
    }

    fn homes(&self) -> BTreeMap<u32, PoolHomes> {
        let homes = self.plan.pools.iter().map(|(index, pool)| {
            let out = pool.groups.first().into_iter().flat_map(|group| &group.members);
            let homes = PoolHomes {
                current: home(pool),
                has_previous: self.previous_homes.contains_key(index),
                regions: pool.groups.iter().map(|group| group.region).collect(),
                out: out.filter(|member| member.out).map(|member| member.address).collect(),
            };
            (*index, homes)
        });
        homes.collect()
    }

    /// This balancer's limit of a group, as the last change wrote it.
    pub fn limit(&self, pool: &str, region: &str) -> LimitWord {
        let name = |text| Name::new(text).unwrap();
        self.limits[&Limited::Group((name(pool), name(region)))]
    }

    /// Writes the limits of the groups of these names, and of their members.
    fn write_limits(&mut self, is_asked: impl Fn(&PlannedPool, &PlannedGroup) -> bool) {
        let pools = self.plan.pools.values();
        let groups = pools.flat_map(|pool| pool.groups.iter().map(move |group| (pool, group)));
        let groups = groups.filter(|(pool, group)| is_asked(pool, group));
        let mut limits = Vec::new();
        for (pool, group) in groups {
            let share = self.share(pool, group);
            for member in &group.members {
                let key = Limited::Member(pool.name.clone(), member.address);
                limits.extend(member.rate.map(|rate| (key, share.member_limit(rate))));
            }
            let overridden = self.overrides.group(&pool.name, &group.name);
            let settings = overridden.apply_to(group.settings);
            let capacity = Capacity::of_members(settings, self.capacity_members(pool, group));
            let name = (pool.name.clone(), group.name.clone());
            limits.push((Limited::Group(name), share.group_limit(capacity)));
        }
        // As in the maps: what gets lower, before packets see a plan, and then what gets higher.
        let is_raised = |(key, limit): &(Limited, LimitWord)| {
            self.limits.get(key).is_some_and(|there| is_lower(*there, *limit))
        };
        let (raised, others): (Vec<_>, Vec<_>) = limits.into_iter().partition(is_raised);
        for (key, limit) in others.into_iter().chain(raised) {
            if self.limits.insert(key.clone(), limit) != Some(limit)
                && let Limited::Group(name) = key
            {
                self.limit_changes.push((name, limit));
            }
        }
    }

    fn share(&self, pool: &PlannedPool, group: &PlannedGroup) -> Share {
        let portion = self.portions.of(&pool.name, &group.name, pool.balancers);
        Share { portion, tick: USUAL_TICK }
    }

    fn capacity_members(&self, pool: &PlannedPool, group: &PlannedGroup) -> Vec<Member> {
        let members = group.members.iter().map(|member| {
            let state = self.states.get(&(pool.name.clone(), member.address));
            Member {
                weighted: member.weighted,
                healthy: state == Some(&Accepts::All),
                last_resort: false,
                rate: member.rate,
            }
        });
        members.collect()
    }

    fn leaving(&self) -> BTreeSet<IpAddr> {
        let members = self
            .previous_homes
            .values()
            .flat_map(|pool| members(pool))
            .map(|member| member.address);
        members.filter(|address| !self.plan.backends.contains_key(address)).collect()
    }

    /// Keeps the home from before the first of several changes.
    fn change_homes(&mut self, plan: &Plan) {
        for (index, pool) in &plan.pools {
            let Some(before) = self.plan.pools.get(index) else { continue };
            if home(before) != home(pool) {
                self.previous_homes.entry(*index).or_insert_with(|| Arc::clone(before));
            }
        }
        let settled = |index: &u32, previous: &PlannedPool| {
            plan.pools.get(index).is_none_or(|pool| home(pool) == home(previous))
        };
        self.previous_homes
            .retain(|index, previous| home(previous).is_some() && !settled(index, previous));
    }
}

fn home(pool: &PlannedPool) -> Option<Home> {
    let group = pool.groups.first()?;
    let mut hasher = DefaultHasher::new();
    (group.region, group.table, group.slots).hash(&mut hasher);
    let members = group.members.iter().map(|member| (member.address, member.id, member.out));
    members.collect::<Vec<_>>().hash(&mut hasher);
    Some(Home::new(pool.hash_key, hasher.finish() as u32))
}

fn members(pool: &PlannedPool) -> impl Iterator<Item = &PlannedMember> {
    pool.groups.iter().flat_map(|group| &group.members)
}

fn refused() -> ReconcileError {
    Full { map: FullMap { what: "groups", size: None }, needed: 1, free: 0 }.into()
}

impl PacketPath for FakePacketPath {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        let content = self.content();
        let gone = content.plan.tables.keys().filter(|id| !plan.tables.contains_key(id)).count();
        if content.full {
            Err(refused())
        } else {
            // As if each table filled a chunk.
            let chunks = plan.tables.len() as u32;
            Ok(TableMemory { chunks, peak: chunks + gone as u32 })
        }
    }

    async fn publish(
        &mut self,
        plan: &Plan,
        built: &BuiltTables,
    ) -> Result<ApplySummary, ReconcileError> {
        let stall = self.content().stall.take();
        if let Some((stalled, release)) = stall {
            stalled.send(()).unwrap();
            let _ = release.recv();
        }
        let mut content = self.content();
        if content.failures > 0 {
            content.failures -= 1;
            return Err(refused());
        }
        let previous = std::mem::take(&mut content.states);
        for pool in plan.pools.values() {
            let members = pool.groups.iter().flat_map(|group| &group.members);
            for address in members.map(|member| member.address).chain(pool.idle.iter().copied()) {
                let key = (pool.name.clone(), address);
                let state = previous.get(&key).copied().unwrap_or(Accepts::Nothing);
                content.states.insert(key, state);
            }
        }
        content.change_homes(plan);
        let new = plan.tables.keys().filter(|id| !content.plan.tables.contains_key(id));
        content.built = new.map(|id| built.has(id)).collect();
        let tables = plan.tables.iter().map(|(id, spec)| (*id, Arc::clone(spec)));
        content.tables.extend(tables);
        content.plan = plan.clone();
        let plan = &content.plan;
        let groups = plan.pools.values().flat_map(|pool| {
            pool.groups.iter().map(|group| (pool.name.clone(), group.name.clone()))
        });
        let groups: BTreeSet<GroupName> = groups.collect();
        content.limits.retain(|key, _| match key {
            Limited::Group(name) => groups.contains(name),
            Limited::Member(..) => false,
        });
        content.write_limits(|_, _| true);
        content.is_undescribed = false;
        content.applied += 1;
        Ok(ApplySummary::default())
    }

    fn follow_host(&mut self, host: Arc<LocalHost>) -> Result<(), ReconcileError> {
        self.content().host = host;
        Ok(())
    }

    fn named(&self) -> Named {
        self.content().named()
    }

    fn published(&self) -> PublishedPools {
        let content = self.content();
        PublishedPools { homes: content.homes(), leaving: content.leaving(), is_incomplete: false }
    }

    fn moved_slots(&self, plan: &Plan) -> Result<BTreeMap<u32, MovedSlots>, ReconcileError> {
        let content = self.content();
        let owners = |content: &Content, pool: &PlannedPool| -> Vec<IpAddr> {
            let group = &pool.groups[0];
            let owners = content.tables[&group.table].owners();
            owners.iter().map(|rank| group.members[usize::from(*rank)].address).collect()
        };
        let pools = content.previous_homes.iter().filter_map(|(index, before)| {
            let (after, planned) = (content.plan.pools.get(index)?, plan.pools.get(index)?);
            let goes_on = home(planned) != home(after) && home(planned) != home(before);
            let (before, after) = (owners(&content, before), owners(&content, after));
            let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
            let moved = MovedSlots { moved: moved.count() as u32, of: before.len() as u32 };
            goes_on.then_some((*index, moved))
        });
        Ok(pools.collect())
    }

    async fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        let mut content = self.content();
        content.previous_homes.retain(|pool, _| !pools.contains(pool));
        Ok(())
    }

    async fn free_next_hops(&mut self) -> Result<(), ReconcileError> {
        Ok(())
    }
}

impl MemberPath for FakePacketPath {
    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        self.content().states.get(&(pool.clone(), address)).copied()
    }

    fn set_states(&mut self, pool: &Name, states: &[(IpAddr, Accepts)]) {
        let mut content = self.content();
        for (address, state) in states {
            content.state_writes.push((pool.clone(), *address, *state));
            if let Some(known) = content.states.get_mut(&(pool.clone(), *address)) {
                *known = *state;
            }
        }
        content.write_limits(|of, _| of.name == *pool);
    }

    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool {
        let key = (pool.clone(), address);
        let mut content = self.content();
        if last_resort {
            content.last_resorts.insert(key.clone());
        } else {
            content.last_resorts.remove(&key);
        }
        content.states.contains_key(&key)
    }

    fn set_ramps(&mut self, pool: &Name, ramps: &[(IpAddr, u8)]) -> bool {
        let mut content = self.content();
        let keys = ramps.iter().map(|(address, ramp)| ((pool.clone(), *address), *ramp));
        let keys: Vec<_> = keys.collect();
        content.ramps.extend(keys.iter().cloned());
        keys.iter().all(|(key, _)| content.states.contains_key(key))
    }

    fn set_overrides(&mut self, overrides: Arc<Overrides>) {
        self.content().overrides = overrides;
    }

    fn update_limits(&mut self, pool: &Name, _: &[IpAddr]) {
        let mut content = self.content();
        content.limit_writes.push(pool.clone());
        content.write_limits(|of, _| of.name == *pool);
    }

    fn set_portions(&mut self, portions: PortionsInForce) {
        self.content().portions = portions;
    }

    fn update_group_limits(&mut self, groups: &[GroupName]) -> usize {
        let mut content = self.content();
        let count = content.groups_at_once.unwrap_or(groups.len()).min(groups.len());
        for (pool, region) in &groups[..count] {
            content.write_limits(|of, group| of.name == *pool && group.name == *region);
        }
        count
    }

    fn groups(&self) -> Vec<GroupName> {
        let content = self.content();
        let pools = content.plan.pools.values();
        let names = pools.flat_map(|pool| {
            pool.groups.iter().map(|group| (pool.name.clone(), group.name.clone()))
        });
        names.collect()
    }

    fn is_described(&self) -> bool {
        !self.content().is_undescribed
    }

    fn await_next_hop(&mut self, backend: IpAddr) -> bool {
        let mut content = self.content();
        if content.next_hops.remove(&backend).is_some() {
            content.awaited.insert(backend);
        }
        content.awaited.contains(&backend)
    }

    fn set_next_hop(
        &mut self,
        backend: IpAddr,
        hop: Option<NextHop>,
    ) -> Result<(), ReconcileError> {
        let mut content = self.content();
        content.next_hops.remove(&backend);
        content.awaited.remove(&backend);
        if let Some(hop) = hop {
            if hop.interface > 65_535 {
                return Err(ReconcileError::InterfaceIndex(hop.interface));
            }
            content.next_hops.insert(backend, hop);
        }
        Ok(())
    }

    fn keep_next_hops(&mut self, backends: &BTreeSet<IpAddr>) {
        let mut content = self.content();
        content.next_hops.retain(|address, _| backends.contains(address));
        content.awaited.retain(|address| backends.contains(address));
    }

    fn set_configured_interfaces(&mut self, _: &ConfiguredInterfaces) {}

    fn set_bonds(&mut self, bonds: &Bonds) {
        self.content().bonds.clone_from(bonds);
    }
}

impl PathReader for FakePacketPath {
    fn pool_checksums(&mut self) -> Result<BTreeMap<u32, u64>, ReconcileError> {
        let digest = |pool: &PlannedPool| {
            let mut hasher = DefaultHasher::new();
            format!("{pool:?}").hash(&mut hasher);
            hasher.finish()
        };
        let pools = self.content().plan.pools.clone();
        Ok(pools.iter().map(|(index, pool)| (*index, digest(pool))).collect())
    }

    fn checksum(&mut self) -> Result<u64, ReconcileError> {
        let content = self.content();
        let mut hasher = DefaultHasher::new();
        for (key, service) in &content.plan.services {
            key.hash(&mut hasher);
            (service.affinity.name(), service.fragments).hash(&mut hasher);
            (service.rejects, service.tracked).hash(&mut hasher);
            let pool = &content.plan.pools[&service.pool];
            (pool.hash_key, &pool.idle, pool.isolated, pool.panics).hash(&mut hasher);
            for group in &pool.groups {
                group.slots.hash(&mut hasher);
                let members: BTreeSet<_> =
                    group.members.iter().map(|member| (member.address, member.weighted)).collect();
                members.hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError> {
        let content = self.content();
        let mut readings = Vec::new();
        for (&index, pool) in &content.plan.pools {
            for group in &pool.groups {
                // Readings show settings and portions as configured, and limits as written.
                let name = Limited::Group((pool.name.clone(), group.name.clone()));
                readings.push(GroupReading {
                    pool: index,
                    region: group.region,
                    settings: group.settings,
                    portion: Portion::equal(pool.balancers),
                    members: content.capacity_members(pool, group),
                    limit: content.limits.get(&name).copied().unwrap_or(LimitWord::UNLIMITED),
                    counters: content.counted.get(&group.region).copied().unwrap_or_default(),
                });
            }
        }
        Ok(readings)
    }

    fn interfaces(&self) -> Vec<InterfaceStatus> {
        let mode = (!self.content().detached).then(|| "native".into());
        vec![InterfaceStatus { name: "eth0".into(), mode }]
    }
}
