//! What the publisher has the reconciler do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    ApplySummary, ReconcileError, Reconciler,
    map_change::Unused,
    published::{Published, PublishedPool},
    vips,
};
use crate::publisher::{MovedSlots, PacketPath, PublishedPools};
use lb_maps::TableName;
use lb_model::{
    ids::Named, maglev::BuiltTables, map_memory::TableMemory, plan::Plan, unserved::LocalHost,
};

impl PacketPath for Reconciler {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        let change = self.change_to(plan)?;
        let mut tables = change.free_space.tables;
        let peak = tables.chunks().len() as u32;
        // A table that the plan names stays. Other tables go now, or when previous homes are forgotten.
        let planned: BTreeSet<_> = plan.tables.keys().map(|id| TableName(id.words())).collect();
        let groups = change.published.groups.values().chain(self.published.groups.values());
        let gone: BTreeSet<_> = groups
            .filter(|group| group.table.is_none_or(|name| !planned.contains(&name)))
            .map(|group| group.table_extent())
            .collect();
        gone.into_iter().for_each(|table| tables.free(table));
        tables.remove_empty();
        Ok(TableMemory { chunks: tables.chunks().len() as u32, peak })
    }

    async fn publish(
        &mut self,
        plan: &Plan,
        built: &BuiltTables,
    ) -> Result<ApplySummary, ReconcileError> {
        self.rescan_if_stale().await?;
        let change = self.change_to(plan)?;
        let mut applied = ApplySummary {
            pools: change.pools.len(),
            pools_removed: change.removed_pools.len(),
            groups: change.groups.len(),
            tables: change.tables.len(),
            services: change.services.len(),
            services_removed: change.removed_services.len(),
            vips: change.vips.set.len(),
            limits: 0,
        };
        self.stale = true;
        match self.write_change(plan, change, built).await {
            Ok(limits) => applied.limits = limits,
            Err(error) => {
                self.rescan_after(&error).await;
                return Err(error);
            }
        }
        self.stale = false;
        Ok(applied)
    }

    fn moved_slots(&self, plan: &Plan) -> Result<BTreeMap<u32, MovedSlots>, ReconcileError> {
        let change = self.change_to(plan)?;
        let pools = self.published.pools.iter().filter_map(|(index, before)| {
            let after = change.published.pools.get(index)?;
            let goes_on = after.previous.is_some() && after.current.home() != before.current.home();
            goes_on.then(|| self.moved_slots_of(before)).flatten().map(|moved| (*index, moved))
        });
        Ok(pools.collect())
    }

    async fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        self.rescan_if_stale().await?;
        let mut kept = Published { groups: BTreeMap::new(), ..self.published.clone() };
        for index in pools {
            let Some(pool) = kept.pools.get_mut(index).filter(|pool| pool.previous.is_some())
            else {
                continue;
            };
            pool.previous = None;
            self.maps.set_pool(*index, pool.word());
        }
        for at in kept.pools.values().flat_map(PublishedPool::versions).flat_map(|v| v.groups()) {
            let group = self.published.groups.get(at).map(|group| (*at, group.clone()));
            kept.groups.extend(group);
        }
        let named = kept.table_refs();
        kept.tables.retain(|_, table| named.contains(table));
        let unused = Unused::between(&self.published, &kept);
        let before = std::mem::replace(&mut self.published, kept);
        self.show();
        self.stale = true;
        let done = self.release(&before, unused).await;
        if let Err(error) = &done {
            self.rescan_after(error).await;
        }
        self.stale &= done.is_err();
        done
    }

    fn follow_host(&mut self, host: Arc<LocalHost>) -> Result<(), ReconcileError> {
        self.host = host;
        // What is known of the maps may be wrong then. The plan is published again, with the words that follow from this host.
        if self.stale {
            return Ok(());
        }
        let words = vips::words(&self.published.unserved, &self.host);
        // Those that no plan has described yet stay as an earlier daemon left them.
        for (vip, word) in words {
            if self.published.vips.get(&vip).is_some_and(|there| *there != word) {
                self.maps.set_vip(&vip, word)?;
                self.published.vips.insert(vip, word);
            }
        }
        Ok(())
    }

    async fn free_next_hops(&mut self) -> Result<(), ReconcileError> {
        if self.is_incomplete() {
            // A word that a change left half-way may still name one.
            return Ok(());
        }
        self.free_after_readers(Unused::default(), &[]).await
    }

    fn named(&self) -> Named {
        let mut named = Named::default();
        for service in self.published.services.values() {
            named.services.insert(service.index);
            named.pools.insert(service.pool);
        }
        named.pools.extend(self.published.pools.keys());
        for group in self.published.groups.values() {
            named.regions.insert(group.group.region);
            let members = group.members.iter();
            named.backends.extend(members.map(|member| (member.id.index, member.id.incarnation)));
        }
        named
            .backends
            .extend(self.maps.backend_states().map(|(index, host)| (index, host.incarnation())));
        named
    }

    fn published(&self) -> PublishedPools {
        PublishedPools {
            homes: self.homes(),
            leaving: self.leaving(),
            is_incomplete: self.is_incomplete(),
        }
    }
}
