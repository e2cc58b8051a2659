//! A packet path that takes any plan, and has no packets.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lb_common::abi::member::Accepts;
use lb_model::{
    Name,
    capacity::{GroupName, GroupReading, PortionsInForce},
    ids::Named,
    maglev::BuiltTables,
    map_memory::TableMemory,
    next_hop::NextHop,
    overrides::Overrides,
    plan::Plan,
    unserved::LocalHost,
};
use lb_net::{Bonds, ConfiguredInterfaces};
use lb_publish::{
    publisher::{MovedSlots, PacketPath, PublishedPools},
    reconcile::{ApplySummary, InterfaceStatus, MemberPath, PathReader, ReconcileError},
};

/// The plan, and how its members are.
#[derive(Debug, Default)]
struct Content {
    plan: Plan,
    states: BTreeMap<(Name, IpAddr), Accepts>,
}

/// Clones share what they hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Quiet(Arc<Mutex<Content>>);

impl Quiet {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, pool: &Name, address: IpAddr) -> bool {
        self.content().states.contains_key(&(pool.clone(), address))
    }
}

impl PacketPath for Quiet {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        let content = self.content();
        let gone = content.plan.tables.keys().filter(|id| !plan.tables.contains_key(id)).count();
        let chunks = plan.tables.len() as u32;
        Ok(TableMemory { chunks, peak: chunks + gone as u32 })
    }

    async fn publish(
        &mut self,
        plan: &Plan,
        _: &BuiltTables,
    ) -> Result<ApplySummary, ReconcileError> {
        let members = plan.pools.values().flat_map(|pool| {
            let members = pool.groups.iter().flat_map(|group| &group.members);
            let addresses = members.map(|member| member.address).chain(pool.idle.iter().copied());
            addresses.map(|address| (pool.name.clone(), address))
        });
        let mut content = self.content();
        let state = |member: &_| content.states.get(member).copied().unwrap_or(Accepts::Nothing);
        content.states = members.map(|member| (member.clone(), state(&member))).collect();
        content.plan = plan.clone();
        Ok(ApplySummary::default())
    }

    fn follow_host(&mut self, _: Arc<LocalHost>) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn named(&self) -> Named {
        let content = self.content();
        let plan = &content.plan;
        let groups = plan.pools.values().flat_map(|pool| &pool.groups);
        let backends = plan.backends.values().map(|it| (it.id.index, it.id.incarnation));
        Named {
            backends: backends.collect(),
            services: plan.services.values().map(|service| service.index).collect(),
            pools: plan.pools.keys().copied().collect(),
            regions: groups.map(|group| group.region).collect(),
        }
    }

    fn moved_slots(&self, _: &Plan) -> Result<BTreeMap<u32, MovedSlots>, ReconcileError> {
        Ok(BTreeMap::new())
    }

    async fn forget_previous(&mut self, _: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        Ok(())
    }

    async fn free_next_hops(&mut self) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn published(&self) -> PublishedPools {
        PublishedPools::default()
    }
}

impl MemberPath for Quiet {
    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        self.content().states.get(&(pool.clone(), address)).copied()
    }

    fn set_states(&mut self, pool: &Name, states: &[(IpAddr, Accepts)]) {
        let mut content = self.content();
        for (address, state) in states {
            if let Some(known) = content.states.get_mut(&(pool.clone(), *address)) {
                *known = *state;
            }
        }
    }

    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, _: bool) -> bool {
        self.has(pool, address)
    }

    fn set_ramps(&mut self, pool: &Name, ramps: &[(IpAddr, u8)]) -> bool {
        ramps.iter().all(|(address, _)| self.has(pool, *address))
    }

    fn set_overrides(&mut self, _: Arc<Overrides>) {}

    fn update_limits(&mut self, _: &Name, _: &[IpAddr]) {}

    fn set_portions(&mut self, _: PortionsInForce) {}

    fn update_group_limits(&mut self, groups: &[GroupName]) -> usize {
        groups.len()
    }

    fn groups(&self) -> Vec<GroupName> {
        Vec::new()
    }

    fn is_described(&self) -> bool {
        true
    }

    fn await_next_hop(&mut self, _: IpAddr) -> bool {
        false
    }

    fn set_next_hop(&mut self, _: IpAddr, _: Option<NextHop>) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn keep_next_hops(&mut self, _: &BTreeSet<IpAddr>) {}

    fn set_configured_interfaces(&mut self, _: &ConfiguredInterfaces) {}
    fn set_bonds(&mut self, _: &Bonds) {}
}

impl PathReader for Quiet {
    fn pool_checksums(&mut self) -> Result<BTreeMap<u32, u64>, ReconcileError> {
        Ok(BTreeMap::new())
    }

    fn checksum(&mut self) -> Result<u64, ReconcileError> {
        Ok(0)
    }

    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError> {
        Ok(Vec::new())
    }

    fn interfaces(&self) -> Vec<InterfaceStatus> {
        Vec::new()
    }
}
