//! What is known of the members of all pools, and how a change of it is written.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
};

use lb_common::abi::member::{Accepts, FULL_RAMP, MemberWord};

use super::{MemberWords, PoolMembers};
use lb_model::{Name, ids::BackendId, plan::PlannedBackend};

/// Status by pool and address. A member's word contains the same; a member without a group has no word.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberStates {
    /// Indices of the pools of the last plan.
    names: BTreeMap<Name, u32>,
    pools: HashMap<u32, PoolStates>,
    /// Pools that contain an address.
    pools_of: HashMap<IpAddr, Vec<u32>>,
    /// Backend states of an earlier daemon, for members that have no word. Used until the first plan is published.
    recovered: HashMap<(u32, IpAddr), (BackendId, Accepts)>,
}

#[derive(Clone, Debug, Default)]
struct PoolStates {
    /// `None` until a plan has named the pool.
    name: Option<Name>,
    members: HashMap<IpAddr, MemberStatus>,
    /// Members that only the pool's previous version has. They stay as they were last known.
    leaving: BTreeSet<IpAddr>,
}

impl MemberStates {
    /// Takes a member's status from the maps.
    pub(super) fn recover(&mut self, pool: u32, address: IpAddr, status: MemberStatus) {
        self.add(pool, address, status);
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
        self.pools.get(&pool)?.members.get(address).copied()
    }

    pub(super) fn set(&mut self, pool: u32, address: &IpAddr, status: MemberStatus) {
        let pool = self.pools.get_mut(&pool);
        if let Some(known) = pool.and_then(|pool| pool.members.get_mut(address)) {
            *known = status;
        }
    }

    /// Like [`Self::get`], but only members of the last plan, not those that only a previous version has.
    pub(super) fn get_planned(&self, pool: u32, address: &IpAddr) -> Option<MemberStatus> {
        let pool = self.pools.get(&pool).filter(|pool| !pool.leaving.contains(address))?;
        pool.members.get(address).copied()
    }

    /// What a backend accepts, by pool.
    pub(super) fn accepts_by_pool(&self, address: &IpAddr) -> BTreeMap<u32, Accepts> {
        let pools = self.pools_of.get(address).into_iter().flatten();
        let known =
            pools.filter_map(|pool| Some((*pool, self.get(*pool, address)?.effective_accepts())));
        known.collect()
    }

    /// Adds the members that a pool is about to have. New ones accept nothing. Those that it has now stay.
    pub(super) fn extend(
        &mut self,
        index: u32,
        pool: &PoolMembers,
        backends: &HashMap<IpAddr, PlannedBackend>,
    ) {
        self.names.insert(pool.name.clone(), index);
        for address in pool.planned.iter().chain(&pool.leaving) {
            if self.get(index, address).is_none() {
                // A member without a word takes its backend state, because it may have connections.
                let host = self.recovered.get(&(index, *address));
                let id = backends.get(address).filter(|_| pool.idle.contains(address));
                let host = host.filter(|host| id.is_some_and(|backend| backend.id == host.0));
                let status =
                    host.map(|(_, state)| MemberStatus { state: *state, ..MemberStatus::NEW });
                self.add(index, *address, status.unwrap_or(MemberStatus::NEW));
            }
        }
        let there = self.pools.entry(index).or_default();
        there.name = Some(pool.name.clone());
        there.leaving.retain(|address| !pool.planned.contains(address));
    }

    /// Forgets all members of a pool but these. Returns the addresses that it forgot.
    pub(super) fn settle(&mut self, index: u32, pool: &PoolMembers) -> Vec<IpAddr> {
        let Some(there) = self.pools.get_mut(&index) else { return Vec::new() };
        there.leaving.clone_from(&pool.leaving);
        let gone: Vec<_> = there.members.extract_if(|address, _| !pool.contains(address)).collect();
        let gone: Vec<_> = gone.into_iter().map(|(address, _)| address).collect();
        gone.iter().for_each(|address| self.leave(index, address));
        gone
    }

    /// Forgets a pool. Returns the addresses of its members.
    pub(super) fn remove_pool(&mut self, index: u32) -> Vec<IpAddr> {
        let Some(pool) = self.pools.remove(&index) else { return Vec::new() };
        if let Some(name) = pool.name.filter(|name| self.names.get(name) == Some(&index)) {
            self.names.remove(&name);
        }
        let gone: Vec<_> = pool.members.into_keys().collect();
        gone.iter().for_each(|address| self.leave(index, address));
        gone
    }

    /// Indices of all pools that it knows.
    pub(super) fn pools(&self) -> impl Iterator<Item = u32> {
        self.pools.keys().copied()
    }

    /// Forgets what was recovered for members without a word.
    pub(super) fn forget_recovered(&mut self) {
        self.recovered.clear();
    }

    fn add(&mut self, pool: u32, address: IpAddr, status: MemberStatus) {
        if self.pools.entry(pool).or_default().members.insert(address, status).is_none() {
            self.pools_of.entry(address).or_default().push(pool);
        }
    }

    fn leave(&mut self, pool: u32, address: &IpAddr) {
        if let Some(pools) = self.pools_of.get_mut(address) {
            pools.retain(|of| *of != pool);
            if pools.is_empty() {
                self.pools_of.remove(address);
            }
        }
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

/// A member that changed.
struct Changed {
    address: IpAddr,
    before: MemberStatus,
    after: MemberStatus,
}

impl Changed {
    /// Whether it accepts more than before.
    fn rises(&self) -> bool {
        self.after.effective_accepts() as u8 > self.before.effective_accepts() as u8
    }

    fn falls(&self) -> bool {
        (self.after.effective_accepts() as u8) < self.before.effective_accepts() as u8
    }

    /// Whether packets of its pool may find more with it than before.
    fn offers_more(&self) -> bool {
        self.after.offers() as u8 > self.before.offers() as u8
    }

    fn offers_less(&self) -> bool {
        (self.after.offers() as u8) < self.before.offers() as u8
    }

    /// Whether it counts differently for its group's capacity.
    fn counts_anew(&self) -> bool {
        let counts = |status: MemberStatus| (status.state, status.last_resort);
        counts(self.before) != counts(self.after)
    }
}

impl MemberWords {
    /// Changes members of a pool. Limits and standbys of a group are written once, however many of its members change.
    /// Returns how many of the members the last plan has.
    pub(super) fn change_members<T: Copy>(
        &mut self,
        pool: &Name,
        changes: &[(IpAddr, T)],
        change: impl Fn(&mut MemberStatus, T),
    ) -> usize {
        let Some(pool) = self.states.pool(pool) else { return 0 };
        let mut changed = Vec::with_capacity(changes.len());
        for (address, to) in changes {
            let Some(before) = self.states.get_planned(pool, address) else { continue };
            let mut after = before;
            change(&mut after, *to);
            self.states.set(pool, address, after);
            changed.push(Changed { address: *address, before, after });
        }
        let mut limits: BTreeSet<u32> = BTreeSet::new();
        let mut ranks: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        let mut rises = false;
        // No search finds a member without a word.
        let has_word =
            |each: &&Changed| self.locations.get(&each.address).iter().any(|at| at.pool == pool);
        let offered = changed.iter().filter(|each| each.offers_more()).filter(has_word);
        let most = offered.map(|each| each.after.offers()).max_by_key(|offers| *offers as u8);
        if let Some(most) = most {
            self.raise_pool(pool, most);
        }
        for each in &changed {
            let own = self.locations.get(&each.address).iter().filter(|at| at.pool == pool);
            for location in own {
                ranks.entry(location.group).or_default().push(location.rank);
                if each.counts_anew() {
                    limits.insert(location.group);
                }
            }
            rises |= each.rises();
        }
        for each in changed.iter().filter(|each| each.rises()) {
            self.write_backend_state(&each.address);
        }
        if !rises {
            limits.iter().for_each(|group| self.update_limit(*group));
        }
        for each in &changed {
            let own = self.locations.get(&each.address).iter().filter(|at| at.pool == pool);
            for location in own {
                if let Some(word) = self.maps.member(location.word) {
                    self.maps.set_member(location.word, each.after.apply_to(word));
                }
            }
        }
        ranks.iter().for_each(|(group, ranks)| self.update_standbys_after(*group, ranks));
        if rises {
            limits.iter().for_each(|group| self.update_limit(*group));
        }
        for each in changed.iter().filter(|each| each.falls()) {
            self.write_backend_state(&each.address);
        }
        if changed.iter().any(Changed::offers_less) {
            self.lower_pool(pool);
        }
        changed.len()
    }
}
