//! What is known of every pool's members.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use lb_common::abi::member::{Accepts, FULL_RAMP, MemberWord};

use lb_model::{Name, ids::BackendId, plan::Plan};

/// Standings by pool and address. A member's word says the same; one in no group has only this.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberStates {
    names: BTreeMap<Name, u32>,
    pools: BTreeMap<u32, HashMap<IpAddr, MemberStatus>>,
    /// Pools of the last plan that have an address.
    pools_of: HashMap<IpAddr, Vec<u32>>,
    /// Members that only a pool's previous version has: they stay as they were last known.
    leaving: BTreeSet<(u32, IpAddr)>,
    /// MemberStates of recovered by pool, as an earlier daemon left them, for members that have no word; until the
    /// first plan.
    recovered: HashMap<(u32, IpAddr), (BackendId, Accepts)>,
}

impl MemberStates {
    /// A status read from the maps.
    pub(super) fn recover(&mut self, pool: u32, address: IpAddr, status: MemberStatus) {
        self.pools.entry(pool).or_default().insert(address, status);
    }

    /// A host's state in a pool, read from the maps.
    pub(super) fn recover_backend_state(
        &mut self,
        pool: u32,
        address: IpAddr,
        id: BackendId,
        state: Accepts,
    ) {
        self.recovered.insert((pool, address), (id, state));
    }

    /// Index of a pool of the last plan.
    pub(super) fn pool(&self, name: &Name) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(super) fn get(&self, pool: u32, address: &IpAddr) -> Option<MemberStatus> {
        self.pools.get(&pool)?.get(address).copied()
    }

    pub(super) fn set(&mut self, pool: u32, address: &IpAddr, status: MemberStatus) {
        if let Some(known) = self.pools.get_mut(&pool).and_then(|pool| pool.get_mut(address)) {
            *known = status;
        }
    }

    /// The same for a member of the last plan, which one of a previous version alone is not.
    pub(super) fn get_planned(&self, pool: u32, address: &IpAddr) -> Option<MemberStatus> {
        self.get(pool, address).filter(|_| !self.leaving.contains(&(pool, *address)))
    }

    /// Forgets members of previous versions that are gone.
    pub(super) fn forget(&mut self, leaving: BTreeSet<(u32, IpAddr)>) {
        for (pool, address) in self.leaving.difference(&leaving) {
            if let Some(members) = self.pools.get_mut(pool) {
                members.remove(address);
            }
            if let Some(pools) = self.pools_of.get_mut(address) {
                pools.retain(|of| of != pool);
            }
        }
        self.leaving = leaving;
    }

    /// A host's states in its pools, as words say them.
    pub(super) fn accepts_by_pool(&self, address: &IpAddr) -> BTreeMap<u32, Accepts> {
        let pools = self.pools_of.get(address).into_iter().flatten();
        let known =
            pools.filter_map(|pool| Some((*pool, self.get(*pool, address)?.effective_accepts())));
        known.collect()
    }

    /// Those of a plan's members, dead where they are new, and of those that only a previous version
    /// will have.
    pub(super) fn for_plan(&self, plan: &Plan, mut leaving: BTreeSet<(u32, IpAddr)>) -> Self {
        let mut next = Self::default();
        for (&index, pool) in &plan.pools {
            next.names.insert(pool.name.clone(), index);
            let members = pool.groups.iter().flat_map(|group| &group.members);
            let addresses: BTreeSet<_> =
                members.map(|member| member.address).chain(pool.idle.iter().copied()).collect();
            for address in &addresses {
                next.pools_of.entry(*address).or_default().push(index);
            }
            let status = |address: IpAddr| {
                let known = self.get(index, &address);
                // One without a word lives as its host does in the pool: connections may be there.
                let id = plan.backends.get(&address).filter(|_| pool.idle.contains(&address));
                let host = self.recovered.get(&(index, address));
                let host = host.filter(|host| id.is_some_and(|b| b.id == host.0));
                let host =
                    host.map(|(_, state)| MemberStatus { state: *state, ..MemberStatus::NEW });
                known.or(host).unwrap_or(MemberStatus::NEW)
            };
            let statuses = addresses.into_iter().map(|address| (address, status(address)));
            next.pools.insert(index, statuses.collect());
        }
        leaving.retain(|(pool, address)| next.get(*pool, address).is_none());
        for (pool, address) in &leaving {
            let status = self.get(*pool, address).unwrap_or(MemberStatus::NEW);
            next.recover(*pool, *address, status);
            next.pools_of.entry(*address).or_default().push(*pool);
        }
        Self { leaving, ..next }
    }
}

/// What is known of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberStatus {
    pub(super) state: Accepts,
    /// Whether it may have what nobody else may.
    pub(super) last_resort: bool,
    /// Share of its slots' new connections that it takes, [`FULL_RAMP`] for all.
    pub(super) ramp: u8,
}

impl MemberStatus {
    /// A new member's.
    pub(super) const NEW: Self =
        Self { state: Accepts::Nothing, last_resort: false, ramp: FULL_RAMP };

    /// What a word says of its member. A last resort that is dead says that it is unfit, and is
    /// taken at its word: its checks soon know better, and nothing breaks until then.
    pub(super) fn from_word(word: MemberWord) -> Self {
        Self { state: word.accepts(), last_resort: word.is_last_resort(), ramp: word.ramp() }
    }

    /// The state that words say: a last resort keeps the connections that it was given.
    pub(super) fn effective_accepts(self) -> Accepts {
        match self.state {
            Accepts::Nothing if self.last_resort => Accepts::OpenOnly,
            state => state,
        }
    }

    /// The same word with what is known now.
    pub(super) fn apply_to(self, word: MemberWord) -> MemberWord {
        let word = word.with_accepts(self.effective_accepts()).with_last_resort(self.last_resort);
        word.with_ramp(self.ramp)
    }
}
