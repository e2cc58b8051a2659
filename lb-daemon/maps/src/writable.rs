//! Writes the balancer's maps. Each call is one step of publishing; `reconcile` decides the order.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    ops::Deref,
};

use aya::maps::{MapData, MapError, PerCpuArray, PerCpuValues};
use lb_common::abi::{
    backend::Backend,
    counter::TrafficCounter,
    limiter::{LimitWord, Limiter},
    limits::STANDBYS_PER_GROUP,
    member::MemberWord,
    names,
    next_hop::{InterfaceWord, NextHopWord},
    pod::bytes_of,
    pool::{Descriptor, Group, PoolLine, PoolWord},
    service::{ANY_PORT_WORDS, Service, ServiceKey, VipKey},
    slot::{SlotWord, StandbyWord},
};

use super::{
    MapsError, NewTable,
    chunks::ChunkArray,
    maps::{Maps, array, map_error},
    opener::Opener,
    raw::MappingMut,
    service_index::{IndexMemory, ServiceWriter},
};

/// The words of [`lb_common::abi::arrays::Array::AnyPorts`].
pub type AnyPorts = [u64; ANY_PORT_WORDS as usize];

/// Value in maps that are sets, where only the key counts.
const PRESENT: u32 = 1;
/// Word of a [`Backend`] that holds version, incarnation and both MTUs, and may change in place.
const BACKEND_MTU_WORD: usize = 2;

/// The balancer's maps, to read and write. Panics if an index is out of range, since the allocators of indices know
/// the limits.
#[derive(Debug)]
pub struct WritableMaps {
    pub(super) maps: Maps<MappingMut>,
    services: ServiceWriter,
    chunks: ChunkArray,
    /// Entries of the tables of displaced IPv4 and IPv6 connections.
    pub(super) safe_displaced_entries: [u32; 2],
}

impl Deref for WritableMaps {
    type Target = Maps<MappingMut>;

    fn deref(&self) -> &Self::Target {
        &self.maps
    }
}

impl WritableMaps {
    pub(super) fn open(pins: &Opener) -> Result<Self, MapsError> {
        let maps = Maps::open_with(pins)?;
        Ok(Self {
            services: ServiceWriter::open(&maps, maps.service_capacity()),
            chunks: ChunkArray::open(pins, &maps.chunks)?,
            maps,
            safe_displaced_entries: [
                pins.entries(names::DISPLACED_V4)?,
                pins.entries(names::DISPLACED_V6)?,
            ],
        })
    }

    /// Publishes a pool's version, or none, by one store.
    pub fn set_pool(&self, index: u32, word: PoolWord) {
        self.maps.pools.set_word(index, PoolLine::WORD, word.0);
    }

    /// Changes a limit by one store.
    pub fn set_limit(&self, limiter: u32, limit: LimitWord) {
        self.maps.limiters.set_word(limiter, 0, limit.0);
    }

    /// Resets a limiter whose index was used before.
    pub fn reset_limiter(&self, limiter: u32, limit: LimitWord) {
        self.maps.limiters.set(limiter, &Limiter { limit: limit.0, ..Limiter::default() });
    }

    /// Names the limiter of a member. Call this before its word says that it has a limit of its own.
    pub fn set_member_limiter(&self, index: u32, limiter: u32) {
        self.maps.member_limiters.set(index, &u64::from(limiter));
    }

    /// Writes a descriptor that no word names.
    pub fn write_descriptor(&self, index: u32, descriptor: &Descriptor) {
        self.maps.descriptors.set(index, descriptor);
    }

    /// Writes a group that no descriptor names.
    pub fn write_group(&self, index: u32, group: &Group) {
        self.maps.groups.set(index, group);
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

    /// Changes a next hop by one store.
    pub fn set_next_hop(&self, index: u32, word: NextHopWord) {
        self.maps.next_hops.set(index, &word.0);
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

    /// Sets which addresses may have an any-port service, one store a word. Packets to other addresses skip that
    /// look-up.
    pub fn set_any_ports(&self, words: &AnyPorts) {
        for (index, word) in (0..).zip(words) {
            self.maps.any_ports.set(index, word);
        }
    }

    /// Publishes services, and replaces those with the same keys. Then unpublishes those of `removed`. Waits for a
    /// grace period if there is no room before.
    ///
    /// # Errors
    /// What the kernel answers, or [`MapsError::ServicesFull`].
    pub fn change_services(
        &mut self,
        services: &[Service],
        removed: &[ServiceKey],
    ) -> Result<(), MapsError> {
        if self.services.change(&self.maps, services, removed).is_ok() {
            return Ok(());
        }
        self.wait_for_readers()?;
        self.services.change(&self.maps, services, removed).map_err(MapsError::ServicesFull)
    }

    /// Adds an address of services.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn add_vip(&mut self, vip: &VipKey) -> Result<(), MapsError> {
        self.maps.vips.insert(array(bytes_of(vip)), PRESENT, 0).map_err(map_error(names::ADDRESSES))
    }

    /// Removes an address that no service has any more.
    ///
    /// # Errors
    /// What the kernel answers; one that is not there is no error.
    pub fn remove_vip(&mut self, vip: &VipKey) -> Result<(), MapsError> {
        ignore_missing(self.maps.vips.remove(&array(bytes_of(vip))))
            .map_err(map_error(names::ADDRESSES))
    }

    /// Indices of the chunks of slot tables, whether or not a group names a table in them.
    pub fn chunks(&self) -> &BTreeSet<u32> {
        self.chunks.present()
    }

    /// Adds empty chunks, in batches.
    ///
    /// # Errors
    /// What the kernel answers; some chunks may be there then.
    pub fn add_chunks(&mut self, indices: &[u32]) -> Result<(), MapsError> {
        self.chunks.add(&self.maps.chunks, indices)
    }

    /// Frees the memory of chunks but the first, which stays. Unpublish all groups that name tables in them first, then
    /// call [`Self::wait_for_readers`], then this.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn remove_chunks(&mut self, indices: &[u32]) -> Result<(), MapsError> {
        self.chunks.remove(&self.maps.chunks, indices)
    }

    /// Writes a table that no group names yet. `fill` sets the list of each slot, in any order. Several tables may be
    /// written at a time.
    ///
    /// # Errors
    /// Its chunk is not there, or what the kernel answers.
    pub fn write_table(
        &self,
        table: &NewTable,
        fill: impl FnOnce(&mut dyn FnMut(u32, SlotWord)),
    ) -> Result<(), MapsError> {
        let (chunk, first) = self.maps.place(table.at, table.shape)?;
        table.write(&chunk, first, fill);
        Ok(())
    }

    /// Waits for one grace period, after which no packet from before is still in a program.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn wait_for_readers(&mut self) -> Result<(), MapsError> {
        self.chunks.wait_for_readers()?;
        self.services.released();
        Ok(())
    }

    /// Resets a service's counters, because another service used its index before.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn reset_service_traffic(&mut self, index: u32) -> Result<(), MapsError> {
        reset(&mut self.maps.service_counters, index).map_err(map_error(names::SERVICE_COUNTERS))
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

impl IndexMemory for Maps<MappingMut> {
    fn set_word(&self, at: u32, word: u64) {
        self.service_index.set(at, &word);
    }

    fn set_record(&self, index: u32, service: &Service) {
        self.services.set(index, service);
    }
}

/// Accepts that what is removed did not exist.
pub(super) fn ignore_missing(removed: Result<(), MapError>) -> Result<(), MapError> {
    match removed {
        Err(MapError::SyscallError(error)) if error.io_error.kind() == ErrorKind::NotFound => {
            Ok(())
        }
        removed => removed,
    }
}

fn reset<const N: usize>(
    counters: &mut PerCpuArray<MapData, [u64; N]>,
    index: u32,
) -> Result<(), MapError> {
    let cpus = counters.get(&index, 0)?.len();
    counters.set(index, PerCpuValues::try_from(vec![[0; N]; cpus])?, 0)
}

const _: () = assert!(std::mem::offset_of!(Backend, version) == BACKEND_MTU_WORD * 8);
const _: () = assert!(std::mem::offset_of!(PoolLine, word) == PoolLine::WORD * 8);
const _: () = assert!(std::mem::offset_of!(Limiter, limit) == 0);
const _: () = assert!(size_of::<TrafficCounter>() == 24);
