//! A packet path that takes any plan, and has no packets.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_common::abi::member::Accepts;
use lb_control::{
    command::InterfaceStatus,
    reconcile::{ApplySummary, PoolHomes, ReconcileError},
    state::PacketPath,
};
use lb_model::{
    Name, capacity::GroupReading, ids::Named, map_memory::TableMemory, next_hop::NextHop,
    plan::Plan,
};
use lb_net::Bonds;

/// The plan, and how its members are.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    plan: Plan,
    states: BTreeMap<(Name, IpAddr), Accepts>,
}

impl Quiet {
    fn has(&self, pool: &Name, address: IpAddr) -> bool {
        self.states.contains_key(&(pool.clone(), address))
    }
}

impl PacketPath for Quiet {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        let gone = self.plan.tables.keys().filter(|id| !plan.tables.contains_key(id)).count();
        let chunks = plan.tables.len() as u32;
        Ok(TableMemory { chunks, peak: chunks + gone as u32 })
    }

    fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError> {
        let members = plan.pools.values().flat_map(|pool| {
            let members = pool.groups.iter().flat_map(|group| &group.members);
            let addresses = members.map(|member| member.address).chain(pool.idle.iter().copied());
            addresses.map(|address| (pool.name.clone(), address))
        });
        let state = |member: &_| self.states.get(member).copied().unwrap_or(Accepts::Nothing);
        self.states = members.map(|member| (member.clone(), state(&member))).collect();
        self.plan = plan.clone();
        Ok(ApplySummary::default())
    }

    fn named(&self) -> Named {
        let (plan, groups) = (&self.plan, self.plan.pools.values().flat_map(|pool| &pool.groups));
        let backends = plan.backends.values().map(|it| (it.id.index, it.id.incarnation));
        Named {
            backends: backends.collect(),
            services: plan.services.values().map(|service| service.index).collect(),
            pools: plan.pools.keys().copied().collect(),
            regions: groups.map(|group| group.region).collect(),
        }
    }

    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        self.states.get(&(pool.clone(), address)).copied()
    }

    fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) -> bool {
        let known = self.states.get_mut(&(pool.clone(), address));
        known.map(|known| *known = state).is_some()
    }

    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, _: bool) -> bool {
        self.has(pool, address)
    }

    fn set_ramp(&mut self, pool: &Name, address: IpAddr, _: u8) -> bool {
        self.has(pool, address)
    }

    fn set_next_hop(&mut self, _: IpAddr, _: Option<NextHop>) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn set_bonds(&mut self, _: &Bonds) {}

    fn checksum(&mut self) -> Result<u64, ReconcileError> {
        Ok(0)
    }

    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError> {
        Ok(Vec::new())
    }

    fn homes(&self) -> BTreeMap<u32, PoolHomes> {
        BTreeMap::new()
    }

    fn set_adopting(&mut self, _: u32, _: bool) {}

    fn forget_previous(&mut self, _: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        Ok(())
    }

    fn leaving(&self) -> BTreeSet<IpAddr> {
        BTreeSet::new()
    }

    fn adoptions_refused(&self) -> Result<u64, ReconcileError> {
        Ok(0)
    }

    fn interfaces(&self) -> Vec<InterfaceStatus> {
        Vec::new()
    }
}
