//! Writes what is published: services, pools, groups and tables. Each call is one step; `reconcile` decides the order.

use std::{collections::BTreeSet, io::ErrorKind, ops::Deref};

use aya::maps::{MapData, MapError, PerCpuArray, PerCpuValues};
use lb_common::abi::{
    clock::Coarse,
    counter::TrafficCounter,
    names,
    pod::bytes_of,
    pool::{Descriptor, Group, PoolLine, PoolWord},
    service::{ANY_PORT_WORDS, Service, ServiceKey, VipKey, VipWord},
    slot::SlotWord,
    zone::{Zone, ZoneRange},
};

use super::{
    MapsError, NewTable,
    chunks::ChunkArray,
    clock,
    flow_table::cells_end,
    maps::{Maps, array, map_error},
    opener::Opener,
    raw::MappingMut,
    service_index::{IndexMemory, ServiceWriter},
};

/// The words of [`lb_common::abi::arrays::Array::AnyPorts`].
pub type AnyPorts = [u64; ANY_PORT_WORDS as usize];

/// The balancer's maps, to read all of them and to write what is published. Panics if an index is out of range, since the
/// allocators of indices know the limits.
#[derive(Debug)]
pub struct WritableMaps {
    pub(super) maps: Maps<MappingMut>,
    services: ServiceWriter,
    chunks: ChunkArray,
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
        })
    }

    /// Publishes a pool's version, or none, by one store.
    pub fn set_pool(&self, index: u32, word: PoolWord) {
        self.maps.pools.set_word(index, PoolLine::WORD, word.0);
    }

    /// Says which zones a pool has, by one store. Its flows' cells name them.
    pub fn set_pool_zones(&self, index: u32, zones: ZoneRange) {
        self.maps.pools.set_word(index, PoolLine::ZONES, zones.0);
    }

    /// Keeps the displaced checks of a pool on for as long as its cells live, before its flows get other zones.
    ///
    /// # Errors
    /// The clock cannot be read.
    pub fn keep_checks_on(&self, index: u32) -> Result<(), MapsError> {
        let line = self.maps.pool_line(index);
        if !line.has_displaced() {
            return Ok(());
        }
        let now = clock::now().map_err(|source| MapsError::Call { map: names::ARRAYS, source })?;
        let until = cells_end(Coarse::from_nanoseconds(now));
        self.maps.pools.set_word(index, PoolLine::LAST_DISPLACED, until);
        let zones = line.zones();
        for zone in (zones.first()..).take(zones.count() as usize) {
            self.maps.zones.set_word(zone, Zone::LAST_DISPLACED, until);
        }
        Ok(())
    }

    /// Writes a descriptor that no word names.
    pub fn write_descriptor(&self, index: u32, descriptor: &Descriptor) {
        self.maps.descriptors.set(index, descriptor);
    }

    /// Writes a group that no descriptor names.
    pub fn write_group(&self, index: u32, group: &Group) {
        self.maps.groups.set(index, group);
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

    /// Adds an address of services, or gives it another word.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set_vip(&mut self, vip: &VipKey, word: VipWord) -> Result<(), MapsError> {
        self.maps.vips.insert(array(bytes_of(vip)), word.0, 0).map_err(map_error(names::ADDRESSES))
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

pub(super) fn reset<const N: usize>(
    counters: &mut PerCpuArray<MapData, [u64; N]>,
    index: u32,
) -> Result<(), MapError> {
    let cpus = counters.get(&index, 0)?.len();
    counters.set(index, PerCpuValues::try_from(vec![[0; N]; cpus])?, 0)
}

const _: () = assert!(std::mem::offset_of!(PoolLine, word) == PoolLine::WORD * 8);
const _: () = assert!(std::mem::offset_of!(PoolLine, zones) == PoolLine::ZONES * 8);
const _: () = assert!(size_of::<TrafficCounter>() == 24);
