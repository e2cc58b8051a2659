//! Writes what follows from health and next hops: member words and what goes with them. `reconcile` decides the order.

use std::{collections::BTreeMap, ops::Deref};

use aya::maps::MapError;
use lb_common::abi::{
    backend::Backend,
    limiter::{LimitWord, Limiter},
    limits::STANDBYS_PER_GROUP,
    member::MemberWord,
    names,
    next_hop::{InterfaceWord, NextHopEntry},
    pod::bytes_of,
    slot::StandbyWord,
};

use super::{
    MapsError,
    maps::{Maps, array, map_error},
    opener::Opener,
    raw::MappingMut,
    writable::reset,
};

/// Word of a [`Backend`] that holds version, incarnation and both MTUs, and may change in place.
const BACKEND_MTU_WORD: usize = 2;

/// The balancer's maps, to read all of them and to write member words, standbys, limits, next hops, and states and paths
/// of backends. Panics if an index is out of range, since the allocators of indices know the limits.
#[derive(Debug)]
pub struct MemberMaps {
    pub(super) maps: Maps<MappingMut>,
}

impl Deref for MemberMaps {
    type Target = Maps<MappingMut>;

    fn deref(&self) -> &Self::Target {
        &self.maps
    }
}

impl MemberMaps {
    pub(super) fn open(pins: &Opener) -> Result<Self, MapsError> {
        Ok(Self { maps: Maps::open_with(pins)? })
    }

    /// Changes a limit; what was admitted before still counts.
    pub fn set_limit(&self, limiter: u32, limit: LimitWord) {
        self.maps.limiters.change(limiter, limit, self.maps.now());
    }

    /// Corrects what an earlier daemon may have left: no limiter owes more than a full burst.
    pub fn clamp_limiters(&self) {
        self.maps.limiters.clamp(self.maps.now());
    }

    /// Resets a limiter whose index was used before.
    pub fn reset_limiter(&self, limiter: u32, limit: LimitWord) {
        self.maps.limiters.set(limiter, &Limiter { limit: limit.0, ..Limiter::default() });
    }

    /// Names the limiter of a member. Call this before its word says that it has a limit of its own.
    pub fn set_member_limiter(&self, index: u32, limiter: u32) {
        self.maps.member_limiters.set(index, &u64::from(limiter));
    }

    /// Changes a group's standby by one store.
    pub fn set_standby(&self, group: u32, place: u32, word: StandbyWord) {
        self.maps.standbys.set(group * STANDBYS_PER_GROUP + place, &word.0);
    }

    /// Changes a member by one store.
    pub fn set_member(&self, index: u32, word: MemberWord) {
        self.maps.members.set(index, &word.0);
    }

    /// Writes a backend that no member names.
    pub fn write_backend(&self, index: u32, backend: &Backend) {
        self.maps.backends.set(index, backend);
    }

    /// Changes a backend's MTU and that of its link by one store, which keeps version and incarnation.
    pub fn set_backend_mtu(&self, index: u32, backend: &Backend) {
        let bytes = bytes_of(backend);
        let at = BACKEND_MTU_WORD * size_of::<u64>();
        let word = u64::from_ne_bytes(array(&bytes[at..at + size_of::<u64>()]));
        self.maps.backends.set_word(index, BACKEND_MTU_WORD, word);
    }

    /// Changes a next hop by one store. Its source is written before, and is another one only if nothing names the next
    /// hop yet.
    pub fn set_next_hop(&self, index: u32, hop: &NextHopEntry) {
        if self.maps.next_hop_entry(index).source != hop.source {
            self.maps.next_hops.set(index, &NextHopEntry { word: 0, ..*hop });
        }
        self.maps.next_hops.set_word(index, NextHopEntry::WORD, hop.word);
    }

    /// Allows the programs to send on an interface. Frames leave by `device`, which is the interface itself or the
    /// one below it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn add_interface(
        &mut self,
        index: u32,
        word: InterfaceWord,
        device: u32,
    ) -> Result<(), MapsError> {
        self.maps.interfaces.set(index, &word.0);
        self.maps.devices.insert(index, device, None, 0).map_err(|error| MapsError::Map {
            map: names::DEVICES,
            source: match error {
                aya::maps::xdp::XdpMapError::MapError(source) => source,
                aya::maps::xdp::XdpMapError::ChainedProgramNotSupported => {
                    MapError::ElementNotFound
                }
            },
        })
    }

    /// Sets which interfaces are ports of which bonds. Stores only what changed.
    pub fn set_bonds(&self, bonds: &BTreeMap<u32, u32>) {
        for port in 0..self.maps.bonds.entries() {
            let bond = bonds.get(&port).map_or(0, |bond| u64::from(*bond));
            if self.maps.bonds.get(port) != Some(bond) {
                self.maps.bonds.set(port, &bond);
            }
        }
    }

    /// Resets a group's counters, because its limiter was used before.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn reset_group_connections(&mut self, limiter: u32) -> Result<(), MapsError> {
        reset(&mut self.maps.group_counters, limiter).map_err(map_error(names::GROUP_COUNTERS))
    }

    /// Resets a backend's counters, because another backend used its index before.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn reset_backend_traffic(&mut self, index: u32) -> Result<(), MapsError> {
        reset(&mut self.maps.backend_counters, index).map_err(map_error(names::BACKEND_COUNTERS))
    }
}

const _: () = assert!(std::mem::offset_of!(Backend, version) == BACKEND_MTU_WORD * 8);
