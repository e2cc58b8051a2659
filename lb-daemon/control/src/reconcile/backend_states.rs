//! Hosts: what packets of remembered flows know of a backend, by pool. A flow is at a backend only while the pool
//! that it is of has that backend, in its current version or in the previous one.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_common::abi::{backend_state::BackendStateWord, member::Accepts};

use super::{Reconciler, published::Published};
use lb_base::error_chain;
use lb_maps::MapsError;
use lb_model::ids::BackendId;

/// MemberStates of backends that several pools have: by index of the backend, then by that of the pool. The dead are left
/// out.
pub(super) type SharedStates = BTreeMap<u32, BTreeMap<u32, Accepts>>;

impl Reconciler {
    /// Makes what is said of a host right, and once more where a previous version knows the address by another number.
    /// Whoever raises a member does this first, whoever fells one last, so that no connection is where its host's
    /// word says that it cannot be.
    pub(super) fn write_backend_state(&mut self, address: &IpAddr) {
        let planned = self.backends.get(address).map(|backend| backend.id);
        let ids: BTreeSet<_> = self.located_ids(address).chain(planned).collect();
        for id in ids {
            if let Err(error) = self.settle_backend_state(id, address) {
                // Only to raise a member takes memory, so nobody is sent to who is dead.
                self.stale = true;
                let error = error_chain::message(&error);
                tracing::error!(error, "host {address}: its state in a pool cannot be written");
            }
        }
    }

    /// Raises the hosts of a plan, and of previous versions, to what their members say, before packets see these; what
    /// packets see until then is kept.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(super) fn raise_backend_states(&mut self, published: &Published) -> Result<(), MapsError> {
        for (index, (id, address)) in self.backends_of(published) {
            let there = self.maps.backend_state(index);
            let mut states = self.states.accepts_by_pool(&address);
            if there.incarnation() == id.incarnation {
                // Of one that several pools have the word says nothing, and of another nobody else does.
                keep(&mut states, there.pool(), there.accepts_in(there.pool()));
                for (pool, state) in self.shared.get(&index).into_iter().flatten() {
                    keep(&mut states, *pool, *state);
                }
            }
            self.set_backend_state(id, &address, &states)?;
        }
        Ok(())
    }

    /// Makes right what is said of all hosts of a plan and of previous versions, and the words of all others
    /// [`BackendStateWord::GONE`], once packets see these members and no others.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(super) fn settle_backend_states(&mut self) -> Result<(), MapsError> {
        let hosts = self.backends_of(&self.published);
        for (id, address) in hosts.values() {
            self.settle_backend_state(*id, address)?;
        }
        let there =
            self.maps.backend_states().map(|(index, _)| index).chain(self.shared.keys().copied());
        let others: Vec<_> = there.filter(|index| !hosts.contains_key(index)).collect();
        for index in others {
            self.maps.set_backend_state(index, BackendStateWord::GONE);
            self.set_shared(index, &BTreeMap::new())?;
        }
        Ok(())
    }

    /// Hosts by index: those of the plan, and those that only a previous version names.
    fn backends_of(&self, published: &Published) -> BTreeMap<u32, (BackendId, IpAddr)> {
        let members = published.groups.values().flat_map(|group| &group.members);
        let members = members.map(|member| (member.id, member.address));
        let planned = self.backends.iter().map(|(address, backend)| (backend.id, *address));
        members.chain(planned).map(|(id, address)| (id.index, (id, address))).collect()
    }

    fn located_ids(&self, address: &IpAddr) -> impl Iterator<Item = BackendId> {
        self.locations.get(address).iter().filter_map(|place| {
            let group = self.published.groups.get(&place.group)?;
            Some(group.members.get(usize::from(place.rank))?.id)
        })
    }

    fn settle_backend_state(&mut self, id: BackendId, address: &IpAddr) -> Result<(), MapsError> {
        let states = self.states.accepts_by_pool(address);
        self.set_backend_state(id, address, &states)
    }

    /// Says what a host's states are, by pool: one store where one pool has it. A number that several pools have had
    /// stays one that is asked for by pool, for a packet under way may have seen that it is.
    fn set_backend_state(
        &mut self,
        id: BackendId,
        address: &IpAddr,
        states: &BTreeMap<u32, Accepts>,
    ) -> Result<(), MapsError> {
        let there = self.maps.backend_state(id.index);
        let hop = self.next_hops.index_of(address) as u16;
        let was_shared = there.is_shared() && there.incarnation() == id.incarnation;
        let word = match states.iter().next() {
            Some((pool, state)) if states.len() == 1 && !was_shared => {
                BackendStateWord::new(id.incarnation, *state, hop, *pool)
            }
            _ => BackendStateWord::shared(id.incarnation, hop),
        };
        if word.is_shared() {
            self.set_shared(id.index, states)?;
        }
        if there != word {
            self.maps.set_backend_state(id.index, word);
        }
        Ok(())
    }

    /// Says what the states of a backend are that several pools have.
    fn set_shared(
        &mut self,
        backend: u32,
        states: &BTreeMap<u32, Accepts>,
    ) -> Result<(), MapsError> {
        let known = self.shared.entry(backend).or_default();
        let pools: BTreeSet<u32> = known.keys().chain(states.keys()).copied().collect();
        for pool in pools {
            let state = states.get(&pool).copied().unwrap_or(Accepts::Nothing);
            if known.get(&pool).copied().unwrap_or(Accepts::Nothing) == state {
                continue;
            }
            self.maps.set_shared_backend(pool, backend, state)?;
            if state == Accepts::Nothing {
                known.remove(&pool);
            } else {
                known.insert(pool, state);
            }
        }
        if known.is_empty() {
            self.shared.remove(&backend);
        }
        Ok(())
    }
}

/// Keeps a state that is better than what is known of a pool, or all that is known of it.
fn keep(states: &mut BTreeMap<u32, Accepts>, pool: u32, state: Accepts) {
    if state != Accepts::Nothing {
        let known = states.entry(pool).or_insert(state);
        *known = if *known as u8 > state as u8 { *known } else { state };
    }
}
