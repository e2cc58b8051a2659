//! The part of a change that the owner of member words does, in steps: first what packets must find when they see the
//! change, then, once they see nothing else, what is left of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use lb_common::abi::{
    backend::Backend,
    member::{Accepts, FULL_RAMP, MemberWord},
    service::{IPV4, IPV6, address_of, address_words},
};

use super::{MemberWords, member_states::MemberStatus};
use crate::reconcile::published::PublishedGroup;
use lb_maps::MapsError;
use lb_model::{Name, ids::BackendId, plan::PlannedBackend};

/// The members of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reconcile) struct PoolMembers {
    pub(in crate::reconcile) name: Name,
    /// Members of the current version, with and without a word.
    pub(in crate::reconcile) planned: BTreeSet<IpAddr>,
    /// Those without a word.
    pub(in crate::reconcile) idle: BTreeSet<IpAddr>,
    /// Members that only the previous version has.
    pub(in crate::reconcile) leaving: BTreeSet<IpAddr>,
}

impl PoolMembers {
    pub(super) fn contains(&self, address: &IpAddr) -> bool {
        self.planned.contains(address) || self.leaving.contains(address)
    }

    pub(in crate::reconcile) fn count(&self) -> usize {
        self.planned.len() + self.leaving.len()
    }
}

/// A group that is new, or has other settings.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct NewGroup {
    pub(in crate::reconcile) at: u32,
    pub(in crate::reconcile) group: Arc<PublishedGroup>,
    /// Whether its words are to be written, because packets have not seen the group yet.
    pub(in crate::reconcile) is_new: bool,
}

/// Before packets see a change.
impl MemberWords {
    /// Writes backends that are new or changed.
    pub(in crate::reconcile) fn add_backends(
        &mut self,
        backends: &[(IpAddr, PlannedBackend)],
    ) -> Result<(), MapsError> {
        for (address, planned) in backends {
            self.write_backend(address, planned)?;
            self.backends.insert(*address, *planned);
        }
        Ok(())
    }

    fn write_backend(
        &mut self,
        address: &IpAddr,
        planned: &PlannedBackend,
    ) -> Result<(), MapsError> {
        let index = planned.id.index;
        let there = self.maps.backend(index).filter(|there| is_entry_of(there, address, planned));
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
            Some(_) if self.locations.contains(address) => {
                self.maps.set_backend_mtu(index, &backend);
            }
            Some(_) => self.maps.write_backend(index, &backend),
            None => {
                self.maps.reset_backend_traffic(index)?;
                self.maps.write_backend(index, &backend);
            }
        }
        Ok(())
    }

    /// Adds the members that pools are about to have, and raises the states of their backends.
    pub(in crate::reconcile) fn add_pools(
        &mut self,
        pools: &[(u32, Arc<PoolMembers>)],
    ) -> Result<(), MapsError> {
        for (index, pool) in pools {
            self.states.extend(*index, pool, &self.backends);
        }
        let addresses = pools.iter().flat_map(|(_, pool)| pool.planned.iter().chain(&pool.leaving));
        addresses.into_iter().try_for_each(|address| self.raise_backend_state(address))
    }

    /// Writes the words of groups that packets have not seen yet, and limits that get lower. `limiters` are not in use
    /// yet. From here on changes of health reach these words too. Returns how many limits were lowered.
    pub(in crate::reconcile) fn add_groups(
        &mut self,
        groups: Vec<NewGroup>,
        limiters: &BTreeSet<u32>,
    ) -> Result<usize, MapsError> {
        let mut lowered = 0;
        for NewGroup { at, group, is_new } in groups {
            if let Some(before) = self.groups.insert(at, Arc::clone(&group)) {
                self.replaced.insert(at, before);
            }
            self.changing.insert(group.group.limiter);
            if is_new {
                // Some of its members may offer more than all that the pool had.
                self.raise_pool(group.pool, Accepts::All);
                self.locations.add(at, &group);
                for member in &group.members {
                    self.raise_backend_state(&member.address)?;
                }
            }
            lowered += self.lower_limits(&group, limiters)?;
            if is_new {
                self.write_members(at, &group);
            }
        }
        Ok(lowered)
    }

    fn write_members(&self, at: u32, group: &PublishedGroup) {
        for (rank, member) in group.members.iter().enumerate() {
            let known = self.states.get(group.pool, &member.address);
            let known = known.unwrap_or(MemberStatus::NEW);
            let hop = self.next_hops.word_index(&member.address);
            let BackendId { index, incarnation } = member.id;
            let word = MemberWord::new(index, incarnation, known.state, FULL_RAMP, hop);
            let at = group.group.head.members + rank as u32;
            let word = word.with_marked_out(member.out);
            let word = self.with_limiter(at, member, known.apply_to(word));
            self.maps.set_member(at, word);
        }
        self.write_standbys(at, group);
    }
}

/// Once packets see a change.
impl MemberWords {
    /// Lets go of the words of groups that packets no longer see.
    pub(in crate::reconcile) fn remove_groups(&mut self, groups: &[u32]) {
        let mut pools = BTreeSet::new();
        for at in groups {
            if let Some(group) = self.groups.remove(at) {
                self.locations.remove(*at, &group);
                pools.insert(group.pool);
            }
        }
        // Their members may have been the best of a pool in which nothing else changes.
        pools.into_iter().for_each(|pool| self.lower_pool(pool));
    }

    /// Writes the remaining limits of groups that were added. Returns how many there were.
    pub(in crate::reconcile) fn settle_groups(&mut self, groups: &[u32]) -> usize {
        let mut raised = 0;
        for at in groups {
            self.replaced.remove(at);
            if let Some(group) = self.groups.get(at) {
                self.changing.remove(&group.group.limiter);
                raised += self.raise_limits(group);
            }
        }
        let pools = groups.iter().filter_map(|at| Some(self.groups.get(at)?.pool)).collect();
        self.settle_pool_accepts(pools);
        raised
    }

    /// Chooses the standbys of groups anew, because only now it is known which members have a weight.
    pub(in crate::reconcile) fn choose_standbys(&self, groups: &[u32]) {
        groups.iter().for_each(|at| self.update_standbys(*at));
    }

    /// Forgets members that pools no longer have, and backends that the plan no longer has.
    pub(in crate::reconcile) fn settle_pools(
        &mut self,
        pools: &[(u32, Option<Arc<PoolMembers>>)],
        removed: &[IpAddr],
    ) -> Result<(), MapsError> {
        for address in removed {
            self.backends.remove(address);
        }
        let mut affected: BTreeSet<IpAddr> = removed.iter().copied().collect();
        for (index, pool) in pools {
            affected.extend(match pool {
                Some(pool) => self.states.settle(*index, pool),
                None => self.states.remove_pool(*index),
            });
        }
        for address in affected {
            self.settle_backend_states(&address)?;
            self.forget_unneeded_next_hop(&address);
        }
        self.settle_pool_accepts(pools.iter().map(|(index, _)| *index).collect());
        Ok(())
    }

    /// Updates the states of backends of which it is not known what an earlier daemon or change has left.
    pub(in crate::reconcile) fn settle_backends(
        &mut self,
        addresses: &[IpAddr],
    ) -> Result<(), MapsError> {
        addresses.iter().try_for_each(|address| self.settle_backend_states(address))
    }

    /// Lets remembered connections leave the backends of these numbers.
    pub(in crate::reconcile) fn remove_backends(
        &mut self,
        numbers: &[u32],
    ) -> Result<(), MapsError> {
        numbers.iter().try_for_each(|index| self.remove_backend_state(*index))
    }

    /// After the first change since the maps were read: forgets all that is not of this plan or of previous versions.
    pub(in crate::reconcile) fn forget_others(
        &mut self,
        backends: &BTreeSet<IpAddr>,
        pools: &BTreeMap<u32, Arc<PoolMembers>>,
    ) -> Result<(), MapsError> {
        self.backends.retain(|address, _| backends.contains(address));
        let others: Vec<_> = self.states.pools().filter(|pool| !pools.contains_key(pool)).collect();
        others.into_iter().for_each(|pool| drop(self.states.remove_pool(pool)));
        self.states.forget_recovered();
        self.described = true;
        let known: Vec<_> = self.next_hops.backends().copied().collect();
        for address in known {
            self.forget_unneeded_next_hop(&address);
        }
        self.remove_other_backend_states()
    }

    pub(super) fn forget_unneeded_next_hop(&mut self, address: &IpAddr) {
        if !self.backends.contains_key(address) && !self.locations.contains(address) {
            self.next_hops.forget(address);
        }
    }

    /// Next-hop words that may be used again after a grace period.
    pub(in crate::reconcile) fn unreleased_next_hops(&self) -> usize {
        self.next_hops.unreleased()
    }

    /// A grace period has passed since [`Self::unreleased_next_hops`] returned this number.
    pub(in crate::reconcile) fn release_next_hops(&mut self, words: usize) {
        self.next_hops.release(words);
    }
}

/// At the start, and after a change that failed half-way.
impl MemberWords {
    /// Whether a write failed since this was last asked, so that the maps must be read again.
    pub(in crate::reconcile) fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.stale)
    }

    /// Takes over the groups that packets see. What sensors reported is kept.
    pub(in crate::reconcile) fn see_again(
        &mut self,
        groups: &BTreeMap<u32, Arc<PublishedGroup>>,
    ) -> Result<(), MapsError> {
        self.see_groups(groups)?;
        self.rewrite_member_words();
        self.settle_pool_accepts(groups.values().map(|group| group.pool).collect());
        Ok(())
    }

    /// Corrects the words of members. A change that failed half-way may have published words that missed a
    /// report of a sensor, and a daemon may have died between two words of one backend. Standbys follow with
    /// the next plan.
    pub(super) fn rewrite_member_words(&self) {
        for group in self.groups.values() {
            for (at, member) in (group.group.head.members..).zip(&group.members) {
                let Some(there) = self.maps.member(at) else { continue };
                let known = self.states.get(group.pool, &member.address);
                let known = known.unwrap_or_else(|| MemberStatus::from_word(there));
                let hop = self.next_hops.word_index(&member.address);
                let word = known.apply_to(there).with_next_hop(hop);
                if word != there {
                    self.maps.set_member(at, word);
                }
            }
        }
    }

    /// Reads status and next hops from the words of members and backends.
    pub(super) fn recover(&mut self) {
        for group in self.groups.values() {
            for (at, member) in (group.group.head.members..).zip(&group.members) {
                let word = self.maps.member(at).unwrap_or(MemberWord(0));
                self.states.recover(group.pool, member.address, MemberStatus::from_word(word));
                let index = u32::from(word.next_hop());
                self.next_hops.recover(member.address, index, self.maps.next_hop_entry(index));
            }
        }
        for (index, word) in self.maps.backend_states() {
            let backend = self.maps.backend(index);
            let Some(backend) = backend.filter(|b| b.incarnation == word.incarnation()) else {
                continue;
            };
            let address = address_of(&backend.address, backend.version);
            let id = BackendId { index, incarnation: word.incarnation() };
            if word.is_shared() {
                for (pool, state) in self.shared.get(&index).into_iter().flatten() {
                    self.states.recover_backend_state(*pool, address, id, *state);
                }
            } else {
                let state = word.accepts_in(word.pool());
                self.states.recover_backend_state(word.pool(), address, id, state);
            }
            let index = u32::from(word.next_hop());
            self.next_hops.recover(address, index, self.maps.next_hop_entry(index));
        }
    }
}

/// Whether an entry belongs to the planned backend.
fn is_entry_of(there: &Backend, address: &IpAddr, planned: &PlannedBackend) -> bool {
    let version = if address.is_ipv4() { IPV4 } else { IPV6 };
    there.address == address_words(*address)
        && (there.version, there.incarnation) == (version, planned.id.incarnation)
}
