//! Tables of what is remembered by connection, to walk through.

use std::{fmt, path::Path};

use aya::maps::{HashMap, MapData, MapError};
use lb_common::abi::names;

use super::{
    MapsError, Role,
    limiters::sure_room,
    maps::of,
    opener::Opener,
    raw::{Elements, lookup_batch},
};

/// Elements read by one call where only their number is wanted.
const CHUNK: u32 = 65_536;

/// A table with keys of `N` words: [`lb_common::abi::connection`].
pub struct FlowTable<const N: usize> {
    name: &'static str,
    map: HashMap<MapData, [u64; N], u64>,
    /// The same map: aya hides the descriptor of the typed one.
    data: MapData,
    room: u32,
}

impl<const N: usize> fmt::Debug for FlowTable<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).finish_non_exhaustive()
    }
}

impl<const N: usize> FlowTable<N> {
    pub(super) fn open(pins: &Opener, name: &'static str) -> Result<Self, MapsError> {
        let (map, data) = (pins.typed(name)?, pins.data(name)?);
        Ok(Self { name, map, data, room: pins.entries(name)? })
    }

    /// Entries there is room for.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Entries that can be there without that one of them has had to go.
    pub fn sure_room(&self) -> u32 {
        sure_room(self.room)
    }

    /// Some entries, `most` at the most, and where to go on; `None`: those were the last. What is there
    /// all the while is read exactly once, and to the kernel that is no use of it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn read(&self, from: Option<u32>, most: u32) -> Result<Elements<N>, MapsError> {
        lookup_batch(&self.data, from, most)
            .map_err(|source| MapsError::Call { map: self.name, source })
    }

    /// Entries that are there.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn held(&self) -> Result<u64, MapsError> {
        let (mut held, mut from) = (0, None);
        loop {
            let (entries, next) = self.read(from, CHUNK)?;
            held += entries.len() as u64;
            match next {
                Some(next) => from = Some(next),
                None => return Ok(held),
            }
        }
    }

    /// What an entry says now.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn get(&self, key: &[u64; N]) -> Result<Option<u64>, MapsError> {
        match self.map.get(key, 0) {
            Ok(word) => Ok(Some(word)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(source) => Err(of(self.name)(source)),
        }
    }

    /// Adds an entry, or changes it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set(&mut self, key: &[u64; N], word: u64) -> Result<(), MapsError> {
        self.map.insert(key, word, 0).map_err(of(self.name))
    }

    /// Takes an entry out; one that is not there is none the less gone.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn remove(&mut self, key: &[u64; N]) -> Result<(), MapsError> {
        match self.map.remove(key) {
            Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error))
                if error.io_error.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            result => result.map_err(of(self.name)),
        }
    }
}

/// All four of the balancer's.
#[derive(Debug)]
pub struct FlowTables {
    /// Displaced entries of IPv4 connections.
    pub displaced_v4: FlowTable<2>,
    /// Displaced entries of IPv6 connections.
    pub displaced_v6: FlowTable<5>,
    /// Tracked flows of IPv4.
    pub flows_v4: FlowTable<2>,
    /// Tracked flows of IPv6.
    pub flows_v6: FlowTable<5>,
}

impl FlowTables {
    /// Opens them by their pins.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Role::Balancer);
        Ok(Self {
            displaced_v4: FlowTable::open(&pins, names::DISPLACED_V4)?,
            displaced_v6: FlowTable::open(&pins, names::DISPLACED_V6)?,
            flows_v4: FlowTable::open(&pins, names::FLOWS_V4)?,
            flows_v6: FlowTable::open(&pins, names::FLOWS_V6)?,
        })
    }
}
