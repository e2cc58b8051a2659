//! Backend states, which packets of remembered flows read.

use aya::maps::MapError;
use lb_common::abi::{
    backend::{BackendStateWord, shared_key, split_shared_key},
    member::Accepts,
    names,
};

use super::{
    MapsError, MemberMaps,
    maps::{Maps, map_error},
    raw::Mapping,
    writable::ignore_missing,
};

/// The state of a backend that several pools have, in one of them where it accepts packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBackend {
    pub pool: u32,
    pub backend: u32,
    pub state: Accepts,
}

impl<M: AsRef<Mapping>> Maps<M> {
    /// A backend's state over all pools.
    pub fn backend_state(&self, backend: u32) -> BackendStateWord {
        BackendStateWord(self.backend_states.get(backend).unwrap_or(0))
    }

    /// A backend's state in one pool.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn state_in(&self, pool: u32, backend: u32) -> Result<Accepts, MapsError> {
        let host = self.backend_state(backend);
        if host.is_shared() {
            self.shared_backend(pool, backend)
        } else {
            Ok(host.accepts_in(pool))
        }
    }

    /// The state of a backend that several pools have, in one of them.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn shared_backend(&self, pool: u32, backend: u32) -> Result<Accepts, MapsError> {
        match self.shared_backends.get(&shared_key(pool, backend), 0) {
            Ok(state) => Ok(Accepts::from_number(state as u8)),
            Err(MapError::KeyNotFound) => Ok(Accepts::Nothing),
            Err(source) => Err(map_error(names::SHARED_BACKENDS)(source)),
        }
    }

    /// The states of all backends that several pools have.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn shared_backends(&self) -> Result<Vec<SharedBackend>, MapsError> {
        let entries = self.shared_backends.iter().map(|entry| {
            let (key, state) = entry?;
            let (pool, backend) = split_shared_key(key);
            Ok(SharedBackend { pool, backend, state: Accepts::from_number(state as u8) })
        });
        entries.collect::<Result<_, _>>().map_err(map_error(names::SHARED_BACKENDS))
    }

    /// The states of the backends that exist, by backend index.
    pub fn backend_states(&self) -> impl Iterator<Item = (u32, BackendStateWord)> + '_ {
        let states =
            (0..self.backend_states.entries()).map(|index| (index, self.backend_state(index)));
        states.filter(|(_, state)| *state != BackendStateWord::GONE)
    }
}

impl MemberMaps {
    /// Sets the state of a backend that one pool has, or marks it as shared by several, by one store.
    pub fn set_backend_state(&self, backend: u32, word: BackendStateWord) {
        self.maps.backend_states.set(backend, &word.0);
    }

    /// Sets the state of a backend in one of several pools that have it. One that accepts nothing takes no entry.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set_shared_backend(
        &mut self,
        pool: u32,
        backend: u32,
        state: Accepts,
    ) -> Result<(), MapsError> {
        let key = shared_key(pool, backend);
        let result = match state {
            Accepts::Nothing => ignore_missing(self.maps.shared_backends.remove(&key)),
            state => self.maps.shared_backends.insert(key, state as u64, 0),
        };
        result.map_err(map_error(names::SHARED_BACKENDS))
    }
}
