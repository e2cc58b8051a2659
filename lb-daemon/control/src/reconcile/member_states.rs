//! What is known of the members of all pools, and how a change of it is written.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use lb_common::abi::member::{Accepts, FULL_RAMP, MemberWord};

use super::Reconciler;
use lb_model::{Name, ids::BackendId, plan::Plan};

/// Status by pool and address. A member's word contains the same; a member without a group has no word.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberStates {
    names: BTreeMap<Name, u32>,
    pools: BTreeMap<u32, HashMap<IpAddr, MemberStatus>>,
    /// Pools of the last plan that contain an address.
    pools_of: HashMap<IpAddr, Vec<u32>>,
    /// Members that only a pool's previous version has. They stay as they were last known.
    leaving: BTreeSet<(u32, IpAddr)>,
    /// Backend states of an earlier daemon, for members that have no word. Used until the first plan.
    recovered: HashMap<(u32, IpAddr), (BackendId, Accepts)>,
}

impl MemberStates {
    /// Takes a member's status from the maps.
    pub(super) fn recover(&mut self, pool: u32, address: IpAddr, status: MemberStatus) {
        self.pools.entry(pool).or_default().insert(address, status);
    }

    /// Takes a backend's state in a pool from the maps.
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

    /// Like [`Self::get`], but only members of the last plan, not those that only a previous version has.
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

    /// What a backend accepts, by pool.
    pub(super) fn accepts_by_pool(&self, address: &IpAddr) -> BTreeMap<u32, Accepts> {
        let pools = self.pools_of.get(address).into_iter().flatten();
        let known =
            pools.filter_map(|pool| Some((*pool, self.get(*pool, address)?.effective_accepts())));
        known.collect()
    }

    /// The members of a plan, which accept nothing if they are new, and those that only a previous version
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
                // A member without a word takes its backend state, because it may have connections.
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
    /// Whether it gets connections that no other member can take.
    pub(super) last_resort: bool,
    /// Share of its slots' new connections that it takes, [`FULL_RAMP`] for all.
    pub(super) ramp: u8,
}

impl MemberStatus {
    pub(super) const NEW: Self =
        Self { state: Accepts::Nothing, last_resort: false, ramp: FULL_RAMP };

    /// A last resort that accepts nothing has a word that says it accepts packets of open connections. That
    /// is taken literally: its checks soon tell, and no harm is done until then.
    pub(super) fn from_word(word: MemberWord) -> Self {
        Self { state: word.accepts(), last_resort: word.is_last_resort(), ramp: word.ramp() }
    }

    /// What the words say: a last resort keeps the connections that it was given.
    pub(super) fn effective_accepts(self) -> Accepts {
        match self.state {
            Accepts::Nothing if self.last_resort => Accepts::OpenOnly,
            state => state,
        }
    }

    /// Writes the status into a member's word.
    pub(super) fn apply_to(self, word: MemberWord) -> MemberWord {
        let word = word.with_accepts(self.effective_accepts()).with_last_resort(self.last_resort);
        word.with_ramp(self.ramp)
    }
}

impl Reconciler {
    /// `None` if the last plan has no such member.
    pub fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        Some(self.states.get_planned(self.states.pool(pool)?, &address)?.state)
    }

    /// Changes a member's state: one store, whatever the size of the pool, and one each for the backend state
    /// and the group's limit if they change. When a member goes down, the group's limit is lowered first;
    /// when it goes up, the limit is raised last. False if the last plan has no such member.
    pub fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) -> bool {
        self.change(pool, address, |standing| MemberStatus { state, ..standing })
    }

    /// Sets whether a member gets connections that no other member can take: one store. False if the last
    /// plan has no such member.
    pub fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool {
        self.change(pool, address, |standing| MemberStatus { last_resort, ..standing })
    }

    /// Sets the share of its slots' new connections that a member takes: one store. False if the last plan
    /// has no such member.
    pub fn set_ramp(&mut self, pool: &Name, address: IpAddr, ramp: u8) -> bool {
        self.change(pool, address, |standing| MemberStatus { ramp, ..standing })
    }

    fn change(
        &mut self,
        pool: &Name,
        address: IpAddr,
        change: impl FnOnce(MemberStatus) -> MemberStatus,
    ) -> bool {
        let Some(pool) = self.states.pool(pool) else { return false };
        let Some(before) = self.states.get_planned(pool, &address) else { return false };
        let after = change(before);
        self.states.set(pool, &address, after);
        let locations = self.locations.get(&address).iter().copied();
        let locations: Vec<_> = locations.filter(|location| location.pool == pool).collect();
        let rises = after.effective_accepts() as u8 > before.effective_accepts() as u8;
        if rises {
            self.write_backend_state(&address);
        } else {
            locations.iter().for_each(|location| self.update_limit(location.group));
        }
        for location in &locations {
            if let Some(word) = self.maps.member(location.word) {
                self.maps.set_member(location.word, after.apply_to(word));
                self.update_standbys_after(location.group, location.rank);
            }
        }
        if rises {
            locations.iter().for_each(|location| self.update_limit(location.group));
        } else {
            self.write_backend_state(&address);
        }
        true
    }
}
