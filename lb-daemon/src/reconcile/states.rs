//! The state of every pool's members.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use lb_common::abi::member::MemberState;

use crate::{model::Name, plan::Plan};

/// States by pool and address. A member's word says the same; one in no group has only this.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    names: BTreeMap<Name, u32>,
    pools: BTreeMap<u32, HashMap<IpAddr, MemberState>>,
}

impl States {
    /// A state read from the maps.
    pub(super) fn found(&mut self, pool: u32, address: IpAddr, state: MemberState) {
        self.pools.entry(pool).or_default().insert(address, state);
    }

    /// Index of a pool of the last plan.
    pub(super) fn pool(&self, name: &Name) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(super) fn get(&self, pool: u32, address: &IpAddr) -> Option<MemberState> {
        self.pools.get(&pool)?.get(address).copied()
    }

    pub(super) fn set(&mut self, pool: u32, address: &IpAddr, state: MemberState) -> bool {
        let known = self.pools.get_mut(&pool).and_then(|pool| pool.get_mut(address));
        known.map(|known| *known = state).is_some()
    }

    /// Those of a plan's members, dead where they are new.
    pub(super) fn planned(&self, plan: &Plan) -> Self {
        let mut next = Self::default();
        for (&index, pool) in &plan.pools {
            next.names.insert(pool.name.clone(), index);
            let members = pool.groups.iter().flat_map(|group| &group.members);
            let addresses: BTreeSet<_> =
                members.map(|member| member.address).chain(pool.idle.iter().copied()).collect();
            let state = |address| self.get(index, &address).unwrap_or(MemberState::Dead);
            let states = addresses.into_iter().map(|address| (address, state(address)));
            next.pools.insert(index, states.collect());
        }
        next
    }
}
