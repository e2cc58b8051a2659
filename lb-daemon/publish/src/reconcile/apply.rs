//! Brings the maps to a plan, in an order in which no packet sees a partial change.

use std::{
    collections::HashSet,
    num::NonZero,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ScopedJoinHandle},
};

use lb_common::abi::{pool::PoolWord, zone::ZoneRange};

use super::{
    MemberWords, ReconcileError, Reconciler,
    map_change::{self, MapChange, Unused},
    members_change::{MembersChange, PlannedMembers},
    published::PublishedPool,
};
use lb_base::error_chain;
use lb_maps::{MapsError, NewTable};
use lb_model::{
    maglev::{BuiltTables, TableSpec},
    plan::Plan,
};

/// Tables that are built between two heartbeats.
const TABLES_AT_ONCE: usize = 128;

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
    /// VIPs that are new, or have another word.
    pub vips: usize,
    /// Limits raised or lowered in groups that did not change otherwise.
    pub limits: usize,
}

impl Reconciler {
    /// Reads the maps again if a change failed half-way, or a write of the owner of member words.
    pub(super) async fn rescan_if_stale(&mut self) -> Result<(), ReconcileError> {
        self.stale |= self.steps.take(MemberWords::take_stale).await?;
        if self.stale { self.rescan().await } else { Ok(()) }
    }

    /// Reads the maps again after a change that failed: until the next try, changes of health and next hops must find the
    /// words that packets read now.
    pub(super) async fn rescan_after(&mut self, failure: &ReconcileError) {
        if matches!(failure, ReconcileError::Stopping) {
            return;
        }
        if let Err(error) = self.rescan().await {
            tracing::error!(error = error_chain::message(&error), "the maps cannot be read");
        }
    }

    pub(super) fn change_to(&self, plan: &Plan) -> Result<MapChange, ReconcileError> {
        let (published, free_space, host) = (&self.published, &self.free_space, &self.host);
        map_change::plan_change(published, free_space, plan, host).map_err(|error| {
            let pools =
                self.published.pools.values().filter(|pool| pool.previous.is_some()).count();
            match error {
                ReconcileError::Full(full) if pools > 0 => ReconcileError::Settling { full, pools },
                error => error,
            }
        })
    }

    /// Returns how many limits changed.
    pub(super) async fn write_change(
        &mut self,
        plan: &Plan,
        change: MapChange,
        built: &BuiltTables,
    ) -> Result<usize, ReconcileError> {
        let planned = PlannedMembers::new(plan, &change.published, self.planned.as_ref());
        let members = MembersChange::between(
            self.planned.as_ref(),
            &planned,
            &self.published,
            &change.published,
        );
        self.reset_services(&change)?;
        let (there, chunks) = (self.maps.chunks(), change.free_space.tables.chunks());
        let new: Vec<u32> = chunks.difference(there).copied().collect();
        self.maps.add_chunks(&new)?;
        for tables in change.tables.chunks(TABLES_AT_ONCE) {
            self.build_tables(tables, built)?;
            // For the heartbeat.
            tokio::task::yield_now().await;
        }
        // Unless all steps get through, everything is sent again.
        self.planned = None;
        let lowered = members.prepare(&change, &self.steps).await?;
        for at in &change.groups {
            self.maps.write_group(*at, &change.published.groups[at].group);
        }
        for index in &change.pools {
            let PublishedPool { current, zones, .. } = &change.published.pools[index];
            self.maps.write_descriptor(current.at, &current.descriptor);
            // Of a pool that is there they are the same.
            self.maps.set_pool_zones(*index, ZoneRange::new(zones.start, zones.length));
        }
        for (index, pool) in
            change.pools.iter().map(|index| (*index, &change.published.pools[index]))
        {
            if self.published.pools.get(&index).is_some_and(|before| pool.changes_zones(before)) {
                self.maps.keep_checks_on(index)?;
            }
        }
        // From here on packets see the change.
        for index in &change.pools {
            self.maps.set_pool(*index, change.published.pools[index].word());
        }
        self.publish_services(&change)?;
        let unused = change.unused(&self.published);
        self.published = change.published;
        self.free_space = change.free_space;
        self.show();
        let raised = members.finish(&self.steps).await?;
        self.planned = Some(planned);
        self.free_after_readers(unused, &change.removed_pools).await?;
        Ok(lowered + raised)
    }

    /// Once packets see only what is published: frees what is unused, when no packet from before reads it any more. No
    /// service leads to `removed_pools`.
    pub(super) async fn free_after_readers(
        &mut self,
        unused: Unused,
        removed_pools: &[u32],
    ) -> Result<(), ReconcileError> {
        let next_hops = self.steps.take(|words| words.unreleased_next_hops()).await?;
        if unused.is_empty() && next_hops == 0 {
            return Ok(());
        }
        self.maps.wait_for_readers()?;
        // Only now, because packets that found a service of the previous generation needed its pool.
        for index in removed_pools {
            self.maps.set_pool(*index, PoolWord::new(0, 0));
        }
        unused.free(&mut self.free_space);
        self.maps.remove_chunks(&self.free_space.tables.remove_empty())?;
        self.steps.take(move |words| words.release_next_hops(next_hops)).await
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
    fn build_tables(
        &self,
        tables: &[(NewTable, Arc<TableSpec>)],
        built: &BuiltTables,
    ) -> Result<(), MapsError> {
        let (maps, next) = (&self.maps, AtomicUsize::new(0));
        let build = || {
            while let Some((table, spec)) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                maps.write_table(table, |set| built.fill(spec, set))?;
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

    /// Adds new services before it removes old ones. The word of a VIP is there before its first service, and until after its
    /// last one.
    fn publish_services(&mut self, change: &MapChange) -> Result<(), MapsError> {
        change.vips.set.iter().try_for_each(|(vip, word)| self.maps.set_vip(vip, *word))?;
        let (before, after) = (self.published.any_ports(), change.published.any_ports());
        self.maps.set_any_ports(&std::array::from_fn(|word| before[word] | after[word]));
        self.maps.change_services(&change.services, &change.removed_services)?;
        self.maps.set_any_ports(&after);
        change.vips.removed.iter().try_for_each(|vip| self.maps.remove_vip(vip))
    }
}
