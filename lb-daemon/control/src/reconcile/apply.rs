//! Bringing the maps to a plan, in the order that never lets a packet see half of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::IpAddr,
    num::NonZero,
    sync::Arc,
    thread,
};

use lb_common::abi::{
    backend::Backend,
    limits::MAX_SERVICE_KEYS,
    member::{FULL_RAMP, MemberWord},
    pool::PoolWord,
    service::{IPV4, IPV6, address_words},
    table_ref::TableRef,
};

use super::{
    ReconcileError, Reconciler,
    change::{self, Change},
    places::Places,
    published::PublishedGroup,
    standing::Standing,
};
use lb_base::error_chain;
use lb_maps::{MapsError, NewTable, TableName};
use lb_model::{
    maglev::TableSpec,
    map_memory::TableMemory,
    plan::{Plan, PlannedBackend},
};

/// Outer packet that any route is taken to carry until the route's own MTU is known, bytes.
const USUAL_MTU: u16 = 1500;

/// Tables that are built before they are published: half a megabyte each.
const TABLES_AT_ONCE: usize = 128;

/// What an apply wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Pools with a new version, new ones included.
    pub pools: usize,
    /// Pools that went.
    pub pools_removed: usize,
    /// Groups written; the others kept their members' words.
    pub groups: usize,
    /// Tables built; the others were there already.
    pub tables: usize,
    /// Entries of services set: one for each port.
    pub services: usize,
    /// Entries of services that went.
    pub services_removed: usize,
    /// Limits that were raised or lowered, with nothing else of their group.
    pub limits: usize,
}

impl Reconciler {
    /// Brings the maps to a plan. What does not differ is not touched; members keep their states,
    /// and new ones are dead until told otherwise. Packets see each pool and each service as it was
    /// before or as it is planned.
    ///
    /// # Errors
    /// [`ReconcileError`]. A plan for which there is no room changes nothing; where the kernel
    /// refuses something half-way, applying again goes on from there.
    pub fn apply(&mut self, plan: &Plan) -> Result<Applied, ReconcileError> {
        if self.stale {
            self.rescan()?;
        }
        let change = self.change_to(plan)?;
        let mut applied = Applied {
            pools: change.pools.len(),
            pools_removed: change.removed_pools.len(),
            groups: change.groups.len(),
            tables: change.tables.len(),
            services: change.services.len(),
            services_removed: change.removed_services.len(),
            limits: 0,
        };
        self.stale = true;
        match self.carry_out(plan, change) {
            Ok(limits) => applied.limits = limits,
            Err(error) => {
                // Until the next try, news must find the words that packets read now.
                if let Err(error) = self.rescan() {
                    tracing::error!(
                        error = error_chain::message(&error),
                        "the maps cannot be read"
                    );
                }
                return Err(error.into());
            }
        }
        self.stale = false;
        Ok(applied)
    }

    /// Whether there is room for a plan, and its numbers are free, and what its tables take beside
    /// those that are there: changes nothing.
    ///
    /// # Errors
    /// As [`Self::apply`] would, but for what only the kernel knows.
    pub fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        self.change_to(plan)?;
        // A table that is there and is of the plan keeps its place; what is of no group of the plan
        // goes, now or when what home meant before is forgotten.
        let planned: BTreeSet<_> =
            plan.tables.keys().map(|id| TableName::from_digest(*id)).collect();
        let there: BTreeMap<_, _> = (self.published.groups.values())
            .filter(|group| group.table.is_none_or(|name| !planned.contains(&name)))
            .map(|group| (group.group.head.table, group.group.head.slots))
            .collect();
        Ok(TableMemory::count(plan.tables.values().map(|table| table.slots()), there.into_values()))
    }

    fn change_to(&self, plan: &Plan) -> Result<Change, ReconcileError> {
        change::change(&self.published, &self.room, plan).map_err(|error| {
            let pools =
                self.published.pools.values().filter(|pool| pool.previous.is_some()).count();
            match error {
                ReconcileError::Full(full) if pools > 0 => ReconcileError::Settling { full, pools },
                error => error,
            }
        })
    }

    /// How many limits it changed.
    fn carry_out(&mut self, plan: &Plan, change: Change) -> Result<usize, MapsError> {
        self.write_backends(plan)?;
        self.reset_services(&change)?;
        self.build_tables(&change.tables)?;
        self.states = self.states.planned(plan, change.published.leaving());
        self.backends = plan.backends.clone();
        self.raise_backend_states(&change.published)?;
        let lowered = self.lower_limits(&change)?;
        for at in &change.groups {
            self.write_group(*at, &change.published.groups[at]);
        }
        for index in &change.pools {
            let current = &change.published.pools[index].current;
            self.maps.write_descriptor(current.at, &current.descriptor);
        }
        // From here on packets see it.
        for index in &change.pools {
            self.maps.set_pool(*index, change.published.pools[index].word());
        }
        self.publish_services(&change)?;
        Ok(lowered + self.settle(change)?)
    }

    /// Everything is published: what was replaced is given back, once nobody reads it. How many
    /// limits it changed.
    fn settle(&mut self, change: Change) -> Result<usize, MapsError> {
        let left = change.left(&self.published);
        let unknown =
            self.published.groups.iter().filter(|(at, group)| {
                change.published.groups.contains_key(at) && !group.is_weighed()
            });
        let unknown: Vec<u32> = unknown.map(|(at, _)| *at).collect();
        self.published = change.published;
        self.room = change.room;
        self.places = Places::of(&self.published);
        self.retain_hops();
        let raised = self.raise_limits();
        // No service leads to pools that go; the next hops of hosts that go are free after the wait.
        self.settle_backend_states()?;
        for group in unknown {
            self.repoint_all(group);
        }
        if !left.is_empty() || self.hops.is_leaving() {
            self.maps.wait_for_readers()?;
            // Only now: a packet that met a service of the former generation needed its pool.
            for index in change.removed_pools {
                self.maps.set_pool(index, PoolWord::new(0, 0));
            }
            self.maps.retire_tables(&left.tables)?;
            left.free(&mut self.room);
            self.hops.release();
        }
        Ok(raised)
    }

    fn write_backends(&mut self, plan: &Plan) -> Result<(), MapsError> {
        let members = self.published.groups.values().flat_map(|group| &group.members);
        let named: HashSet<u32> = members.map(|member| member.id.index).collect();
        for (address, planned) in &plan.backends {
            let index = planned.id.index;
            let there = self.maps.backend(index).filter(|there| is_of(there, address, planned));
            let backend = Backend {
                address: address_words(*address),
                version: if address.is_ipv4() { IPV4 } else { IPV6 },
                incarnation: planned.id.incarnation,
                mtu: self.mtu_of(address, planned.mtu, there.map(|there| there.mtu)),
                on_link: self
                    .hops
                    .on_link(address)
                    .or(there.map(|there| there.on_link))
                    .unwrap_or(0),
                reserved: [0; 5],
            };
            match there {
                Some(there) if there == backend => {}
                Some(_) if named.contains(&index) => self.maps.set_backend_mtu(index, &backend),
                Some(_) => self.maps.write_backend(index, &backend),
                None => {
                    self.maps.reset_backend_traffic(index)?;
                    self.maps.write_backend(index, &backend);
                }
            }
        }
        Ok(())
    }

    /// Largest outer packet towards a backend: what the configuration and the route allow. Until a
    /// sensor reports the route, `before` stands for it where it is stricter.
    pub(super) fn mtu_of(
        &self,
        address: &IpAddr,
        configured: Option<u16>,
        before: Option<u16>,
    ) -> u16 {
        let route = self.hops.mtu(address).or(before);
        match (configured, route) {
            (Some(configured), Some(route)) => configured.min(route),
            (configured, route) => configured.or(route).unwrap_or(USUAL_MTU),
        }
    }

    /// New services count from zero.
    fn reset_services(&mut self, change: &Change) -> Result<(), MapsError> {
        let mut there: HashSet<u32> =
            self.published.services.values().map(|service| service.index).collect();
        for service in &change.services {
            // Once, however many ports it has.
            if there.insert(service.index) {
                self.maps.reset_service_traffic(service.index)?;
            }
        }
        Ok(())
    }

    fn build_tables(
        &mut self,
        wanted: &[(TableRef, TableName, Arc<TableSpec>)],
    ) -> Result<(), MapsError> {
        for some in wanted.chunks(TABLES_AT_ONCE) {
            self.maps.publish_tables(&build(some))?;
        }
        Ok(())
    }

    fn write_group(&self, at: u32, group: &PublishedGroup) {
        for (rank, member) in group.members.iter().enumerate() {
            let known = self.states.get(group.pool, &member.address);
            let known = known.unwrap_or(Standing::NEW);
            let hop = self.hops.of_backend(&member.address) as u16;
            let (index, incarnation) = (member.id.index, member.id.incarnation);
            let word = MemberWord::new(index, incarnation, known.state, FULL_RAMP, hop);
            let at = group.group.head.members + rank as u32;
            let word = word.with_marked_out(member.out);
            let word = self.with_limiter(at, member, known.put_in(word));
            self.maps.set_member(at, word);
        }
        self.maps.write_group(at, &group.group);
        self.point_standbys(at, group);
    }

    /// New services come before old ones go, so that no element of the hash map is used anew under
    /// a reader; only a full map makes it the other way round, with a grace period in between.
    fn publish_services(&mut self, change: &Change) -> Result<(), MapsError> {
        let most = self.published.services.len() + change.services.len();
        let full = most > MAX_SERVICE_KEYS as usize;
        let (before, after) = (self.published.any_ports(), change.published.any_ports());
        self.maps.set_any_ports(&std::array::from_fn(|word| before[word] | after[word]));
        if full {
            self.remove_services(change)?;
            self.maps.wait_for_readers()?;
        }
        for service in &change.services {
            self.maps.set_service(service)?;
        }
        if !full {
            self.remove_services(change)?;
        }
        self.maps.set_any_ports(&after);
        // Those that go first, so that there is room.
        change.removed_vips.iter().try_for_each(|vip| self.maps.remove_vip(vip))?;
        change.vips.iter().try_for_each(|vip| self.maps.add_vip(vip))
    }

    fn remove_services(&mut self, change: &Change) -> Result<(), MapsError> {
        change.removed_services.iter().try_for_each(|key| self.maps.remove_service(key))
    }
}

/// Whether an entry is the planned backend's.
fn is_of(there: &Backend, address: &IpAddr, planned: &PlannedBackend) -> bool {
    let version = if address.is_ipv4() { IPV4 } else { IPV6 };
    there.address == address_words(*address)
        && (there.version, there.incarnation) == (version, planned.id.incarnation)
}

/// Builds tables, on all CPUs.
fn build(wanted: &[(TableRef, TableName, Arc<TableSpec>)]) -> Vec<NewTable> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let share = wanted.len().div_ceil(cpus).max(1);
    let build = |(at, name, spec): &(TableRef, TableName, Arc<TableSpec>)| NewTable {
        at: *at,
        name: *name,
        words: spec.build().words().to_vec(),
    };
    thread::scope(|scope| {
        let mut shares = wanted.chunks(share);
        let own = shares.next_back().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(build).collect::<Vec<_>>()))
            .collect();
        let own: Vec<_> = own.iter().map(build).collect();
        let others = others.into_iter().flat_map(|other| match other.join() {
            Ok(tables) => tables,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        others.chain(own).collect()
    })
}
