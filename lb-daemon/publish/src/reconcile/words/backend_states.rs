//! Backend states: whether packets of remembered connections still go to a backend, by pool. A connection
//! stays at a backend only while its pool has that backend, in the current or the previous version.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_common::abi::{backend::BackendStateWord, member::Accepts};

use super::MemberWords;
use lb_base::error_chain;
use lb_maps::{MapsError, MemberMaps, SharedBackend};
use lb_model::ids::BackendId;

/// States of backends that several pools have, by index of the backend, then of the pool. Pools in which the
/// backend accepts nothing are left out.
pub(super) type SharedStates = BTreeMap<u32, BTreeMap<u32, Accepts>>;

/// States of backends that several pools have, as the maps hold them.
pub(super) fn read_shared(maps: &MemberMaps) -> Result<SharedStates, MapsError> {
    let mut shared = SharedStates::new();
    for SharedBackend { pool, backend, state } in maps.shared_backends()? {
        shared.entry(backend).or_default().insert(pool, state);
    }
    Ok(shared)
}

impl MemberWords {
    /// Updates a backend's state, also under another number by which a previous version knows the address.
    /// When a member goes up this is written first, when it goes down last, so that no connection is where
    /// the backend state forbids it.
    pub(super) fn write_backend_state(&mut self, address: &IpAddr) {
        for id in self.ids_of(address) {
            if let Err(error) = self.settle_backend_state(id, address) {
                // Only a member that goes up needs memory, so no packet goes to a backend that is down.
                self.stale = true;
                let error = error_chain::message(&error);
                tracing::error!(error, "backend {address}: its state cannot be written");
            }
        }
    }

    /// Before packets see a change: raises a backend's state to those of its members. What packets see until then is
    /// kept.
    pub(super) fn raise_backend_state(&mut self, address: &IpAddr) -> Result<(), MapsError> {
        for id in self.ids_of(address) {
            let there = self.maps.backend_state(id.index);
            let mut states = self.states.accepts_by_pool(address);
            if there.incarnation() == id.incarnation {
                // The word of a shared backend holds no state, and `shared` holds none of a backend of one
                // pool.
                keep(&mut states, there.pool(), there.accepts_in(there.pool()));
                for (pool, state) in self.shared.get(&id.index).into_iter().flatten() {
                    keep(&mut states, *pool, *state);
                }
            }
            self.set_backend_state(id, address, &states)?;
        }
        Ok(())
    }

    /// Once packets see a change: updates a backend's state to those of its members.
    pub(super) fn settle_backend_states(&mut self, address: &IpAddr) -> Result<(), MapsError> {
        self.ids_of(address).into_iter().try_for_each(|id| self.settle_backend_state(id, address))
    }

    /// Once no packet finds a backend by a number: remembered connections leave it.
    pub(super) fn remove_backend_state(&mut self, index: u32) -> Result<(), MapsError> {
        if self.maps.backend_state(index) != BackendStateWord::GONE {
            self.maps.set_backend_state(index, BackendStateWord::GONE);
        }
        self.set_shared(index, &BTreeMap::new())
    }

    /// The same for all numbers but those of backends that are published or planned.
    pub(super) fn remove_other_backend_states(&mut self) -> Result<(), MapsError> {
        let members = self.groups.values().flat_map(|group| &group.members);
        let planned = self.backends.values().map(|backend| backend.id.index);
        let known: BTreeSet<u32> = members.map(|member| member.id.index).chain(planned).collect();
        let there =
            self.maps.backend_states().map(|(index, _)| index).chain(self.shared.keys().copied());
        let others: Vec<_> = there.filter(|index| !known.contains(index)).collect();
        others.into_iter().try_for_each(|index| self.remove_backend_state(index))
    }

    /// The numbers by which packets may find a backend.
    fn ids_of(&self, address: &IpAddr) -> BTreeSet<BackendId> {
        let planned = self.backends.get(address).map(|backend| backend.id);
        let located = self.locations.get(address).iter().filter_map(|location| {
            let group = self.groups.get(&location.group)?;
            Some(group.members.get(usize::from(location.rank))?.id)
        });
        located.chain(planned).collect()
    }

    fn settle_backend_state(&mut self, id: BackendId, address: &IpAddr) -> Result<(), MapsError> {
        let states = self.states.accepts_by_pool(address);
        self.set_backend_state(id, address, &states)
    }

    /// Writes a backend's state, with one store if one pool has the backend. A number that several pools have
    /// had stays shared, because a packet under way may have seen that it is.
    fn set_backend_state(
        &mut self,
        id: BackendId,
        address: &IpAddr,
        states: &BTreeMap<u32, Accepts>,
    ) -> Result<(), MapsError> {
        let there = self.maps.backend_state(id.index);
        let hop = self.next_hops.word_index(address);
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

    /// Writes the states of a backend that several pools have.
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

/// Keeps the better one of two states.
fn keep(states: &mut BTreeMap<u32, Accepts>, pool: u32, state: Accepts) {
    if state != Accepts::Nothing {
        let known = states.entry(pool).or_insert(state);
        *known = if *known as u8 > state as u8 { *known } else { state };
    }
}
