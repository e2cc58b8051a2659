//! Brings the maps to a plan, in an order in which no packet sees a partial change.

use std::{
    collections::{BTreeSet, HashSet},
    net::IpAddr,
    num::NonZero,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ScopedJoinHandle},
};

use lb_common::abi::{
    backend::Backend,
    member::{FULL_RAMP, MemberWord},
    pool::PoolWord,
    service::{IPV4, IPV6, address_words},
};

use super::{
    ReconcileError, Reconciler,
    map_change::{self, MapChange, Unused},
    member_states::MemberStatus,
    published::MemberLocations,
    published::PublishedGroup,
};
use lb_base::error_chain;
use lb_maps::{MapsError, NewTable, TableName};
use lb_model::{
    maglev::TableSpec,
    map_memory::TableMemory,
    plan::{Plan, PlannedBackend},
};

/// Until its MTU is known, a route is assumed to carry outer packets of this size, bytes.
const USUAL_MTU: u16 = 1500;

/// What an apply wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplySummary {
    /// Pools with a new version, including new pools.
    pub pools: usize,
    pub pools_removed: usize,
    /// Groups written; the others kept their members' words.
    pub groups: usize,
    /// Tables built; the others existed.
    pub tables: usize,
    /// Entries of services set, one per port.
    pub services: usize,
    pub services_removed: usize,
    /// Limits raised or lowered in groups that did not change otherwise.
    pub limits: usize,
}

impl Reconciler {
    /// Brings the maps to a plan, and writes only what differs. Members keep their states; new ones accept
    /// nothing until a state is set. Packets see each pool and each service either as before or as planned.
    ///
    /// # Errors
    /// If there is no room for the plan, nothing changes. If the kernel refuses a step, applying again
    /// continues from there.
    pub fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError> {
        if self.stale {
            self.rescan()?;
        }
        let change = self.change_to(plan)?;
        let mut applied = ApplySummary {
            pools: change.pools.len(),
            pools_removed: change.removed_pools.len(),
            groups: change.groups.len(),
            tables: change.tables.len(),
            services: change.services.len(),
            services_removed: change.removed_services.len(),
            limits: 0,
        };
        self.stale = true;
        match self.write_change(plan, change) {
            Ok(limits) => applied.limits = limits,
            Err(error) => {
                // Until the next try, changes of health and next hops must find the words that packets read
                // now.
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

    /// Checks that a plan fits and that its numbers are free, and returns what its tables take. Changes nothing.
    ///
    /// # Errors
    /// Those of [`Self::apply`], except what only the kernel knows.
    pub fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        let change = self.change_to(plan)?;
        let mut tables = change.free_space.tables;
        let peak = tables.chunks().len() as u32;
        // A table that the plan names stays. Other tables go now, or when previous homes are forgotten.
        let planned: BTreeSet<_> = plan.tables.keys().map(|id| TableName(id.words())).collect();
        let groups = change.published.groups.values().chain(self.published.groups.values());
        let gone: BTreeSet<_> = groups
            .filter(|group| group.table.is_none_or(|name| !planned.contains(&name)))
            .map(PublishedGroup::table_extent)
            .collect();
        gone.into_iter().for_each(|table| tables.free(table));
        tables.remove_empty();
        Ok(TableMemory { chunks: tables.chunks().len() as u32, peak })
    }

    fn change_to(&self, plan: &Plan) -> Result<MapChange, ReconcileError> {
        map_change::plan_change(&self.published, &self.free_space, plan).map_err(|error| {
            let pools =
                self.published.pools.values().filter(|pool| pool.previous.is_some()).count();
            match error {
                ReconcileError::Full(full) if pools > 0 => ReconcileError::Settling { full, pools },
                error => error,
            }
        })
    }

    /// Returns how many limits changed.
    fn write_change(&mut self, plan: &Plan, change: MapChange) -> Result<usize, MapsError> {
        self.write_backends(plan)?;
        self.reset_services(&change)?;
        let (there, chunks) = (self.maps.chunks(), change.free_space.tables.chunks());
        let new: Vec<u32> = chunks.difference(there).copied().collect();
        self.maps.add_chunks(&new)?;
        self.build_tables(&change.tables)?;
        self.states = self.states.for_plan(plan, change.published.leaving());
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
        // From here on packets see the change.
        for index in &change.pools {
            self.maps.set_pool(*index, change.published.pools[index].word());
        }
        self.publish_services(&change)?;
        Ok(lowered + self.finish(change)?)
    }

    /// Everything is published: frees what was replaced, once no packet reads it. Returns how many limits
    /// changed.
    fn finish(&mut self, change: MapChange) -> Result<usize, MapsError> {
        let unused = change.unused(&self.published);
        let unknown =
            self.published.groups.iter().filter(|(at, group)| {
                change.published.groups.contains_key(at) && !group.is_weighed()
            });
        let unknown: Vec<u32> = unknown.map(|(at, _)| *at).collect();
        self.published = change.published;
        self.free_space = change.free_space;
        self.locations = MemberLocations::new(&self.published);
        self.retain_next_hops();
        let raised = self.raise_limits();
        // No service leads to removed pools any more. The next hops of removed backends are free after the
        // wait.
        self.settle_backend_states()?;
        for group in unknown {
            self.update_standbys(group);
        }
        if !unused.is_empty() || self.next_hops.has_unreleased() {
            self.maps.wait_for_readers()?;
            // Only now, because packets that found a service of the previous generation needed its pool.
            for index in change.removed_pools {
                self.maps.set_pool(index, PoolWord::new(0, 0));
            }
            self.free(&unused)?;
        }
        Ok(raised)
    }

    /// Frees what no packet reads any more.
    pub(super) fn free(&mut self, unused: &Unused) -> Result<(), MapsError> {
        unused.free(&mut self.free_space);
        self.next_hops.release();
        self.maps.remove_chunks(&self.free_space.tables.remove_empty())
    }

    fn write_backends(&mut self, plan: &Plan) -> Result<(), MapsError> {
        let members = self.published.groups.values().flat_map(|group| &group.members);
        let named: HashSet<u32> = members.map(|member| member.id.index).collect();
        for (address, planned) in &plan.backends {
            let index = planned.id.index;
            let there =
                self.maps.backend(index).filter(|there| is_entry_of(there, address, planned));
            let backend = Backend {
                address: address_words(*address),
                version: if address.is_ipv4() { IPV4 } else { IPV6 },
                incarnation: planned.id.incarnation,
                mtu: self.mtu_of(address, planned.mtu, there.map(|there| there.mtu)),
                on_link: self
                    .next_hops
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

    /// Largest outer packet towards a backend, by configuration and route. Until a sensor reports the route,
    /// the value found in the maps, `before`, counts.
    pub(super) fn mtu_of(
        &self,
        address: &IpAddr,
        configured: Option<u16>,
        before: Option<u16>,
    ) -> u16 {
        let route = self.next_hops.mtu(address).or(before);
        match (configured, route) {
            (Some(configured), Some(route)) => configured.min(route),
            (configured, route) => configured.or(route).unwrap_or(USUAL_MTU),
        }
    }

    /// Counters of new services start at zero.
    fn reset_services(&mut self, change: &MapChange) -> Result<(), MapsError> {
        let mut there: HashSet<u32> =
            self.published.services.values().map(|service| service.index).collect();
        for service in &change.services {
            // Once per service, not per port.
            if there.insert(service.index) {
                self.maps.reset_service_traffic(service.index)?;
            }
        }
        Ok(())
    }

    /// Builds tables in their chunks, on all CPUs.
    fn build_tables(&self, tables: &[(NewTable, Arc<TableSpec>)]) -> Result<(), MapsError> {
        let (maps, next) = (&self.maps, AtomicUsize::new(0));
        let build = || {
            while let Some((table, spec)) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                maps.write_table(table, |set| spec.fill(set))?;
            }
            Ok(())
        };
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| {
            let others: Vec<_> = (1..cpus.min(tables.len())).map(|_| scope.spawn(build)).collect();
            let own = build();
            let join =
                |other: ScopedJoinHandle<'_, _>| other.join().unwrap_or_else(|p| resume_unwind(p));
            others.into_iter().map(join).fold(own, Result::and)
        })
    }

    fn write_group(&self, at: u32, group: &PublishedGroup) {
        for (rank, member) in group.members.iter().enumerate() {
            let known = self.states.get(group.pool, &member.address);
            let known = known.unwrap_or(MemberStatus::NEW);
            let hop = self.next_hops.index_of(&member.address) as u16;
            let (index, incarnation) = (member.id.index, member.id.incarnation);
            let word = MemberWord::new(index, incarnation, known.state, FULL_RAMP, hop);
            let at = group.group.head.members + rank as u32;
            let word = word.with_marked_out(member.out);
            let word = self.with_limiter(at, member, known.apply_to(word));
            self.maps.set_member(at, word);
        }
        self.maps.write_group(at, &group.group);
        self.write_standbys(at, group);
    }

    /// Adds new services before it removes old ones.
    fn publish_services(&mut self, change: &MapChange) -> Result<(), MapsError> {
        let (before, after) = (self.published.any_ports(), change.published.any_ports());
        self.maps.set_any_ports(&std::array::from_fn(|word| before[word] | after[word]));
        self.maps.change_services(&change.services, &change.removed_services)?;
        self.maps.set_any_ports(&after);
        // Removals first, to make room.
        change.removed_vips.iter().try_for_each(|vip| self.maps.remove_vip(vip))?;
        change.vips.iter().try_for_each(|vip| self.maps.add_vip(vip))
    }
}

/// Whether an entry belongs to the planned backend.
fn is_entry_of(there: &Backend, address: &IpAddr, planned: &PlannedBackend) -> bool {
    let version = if address.is_ipv4() { IPV4 } else { IPV6 };
    there.address == address_words(*address)
        && (there.version, there.incarnation) == (version, planned.id.incarnation)
}
