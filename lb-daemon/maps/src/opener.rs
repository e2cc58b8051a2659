//! Opens a component's pinned maps and checks the shape of each.

use std::{
    io,
    path::{Path, PathBuf},
};

use aya::{
    maps::{Map, MapData, MapError},
    sys::SyscallError,
};
use lb_common::abi::{
    names::{ARRAYS, FLOWS},
    sizes::MapSizes,
};

use super::{
    Arrays, Component, FlowTable, MapsError, Pins, layout,
    raw::{Mapping, MappingMut},
    sizes,
};

/// How the memory of array maps is mapped: to read, or to read and write.
pub trait Access: AsRef<Mapping> + Send + Sync + Sized + 'static {
    /// Maps the first words of an array.
    ///
    /// # Errors
    /// As [`Mapping::new`].
    fn words(map: &MapData, words: usize) -> io::Result<Self>;
}

impl Access for Mapping {
    fn words(map: &MapData, words: usize) -> io::Result<Self> {
        Self::new(map.fd(), words)
    }
}

impl Access for MappingMut {
    fn words(map: &MapData, words: usize) -> io::Result<Self> {
        Self::new(map.fd(), words)
    }
}

/// Opens pins of a component and checks their shapes.
pub(super) struct Opener {
    pins: Pins,
    component: Component,
    /// The sizes that the pinned maps tell, which all of them must have.
    sizes: MapSizes,
}

impl Opener {
    pub(super) fn new(bpffs: &Path, component: Component) -> Result<Self, MapsError> {
        let pins = Pins::new(bpffs, component);
        let sizes = sizes::of_pinned(&pins, component)?;
        Ok(Self { pins, component, sizes })
    }

    pub(super) fn sizes(&self) -> MapSizes {
        self.sizes
    }

    /// A map of any type.
    pub(super) fn typed<T: TryFrom<Map, Error = MapError>>(
        &self,
        name: &'static str,
    ) -> Result<T, MapsError> {
        let (map, path, _) = self.open(name)?;
        Map::from_map_data(map)
            .and_then(T::try_from)
            .map_err(|source| MapsError::Open { path, source })
    }

    pub(super) fn data(&self, name: &'static str) -> Result<MapData, MapsError> {
        self.open(name).map(|(map, _, _)| map)
    }

    /// The directory with the pins of what stands in an array of maps.
    pub(super) fn inner(&self, name: &str) -> PathBuf {
        self.pins.inner(name)
    }

    /// The arrays in memory. Their map may be closed then: the mapping keeps it.
    pub(super) fn arrays<M: Access>(&self) -> Result<Arrays<M>, MapsError> {
        let (map, path, _) = self.open(ARRAYS)?;
        Arrays::new(&map, &self.sizes).map_err(|source| MapsError::Memory { path, source })
    }

    /// The flow table in memory.
    pub(super) fn flows<M: Access>(&self) -> Result<FlowTable<M>, MapsError> {
        let (map, path, lines) = self.open(FLOWS)?;
        FlowTable::new(&map, lines).map_err(|source| MapsError::Memory { path, source })
    }

    /// The map, its pin and its number of entries.
    fn open(&self, name: &'static str) -> Result<(MapData, PathBuf, u32), MapsError> {
        let path = self.pins.map(name);
        let opened = MapData::from_pin(&path).and_then(|map| Ok((map.info()?, map)));
        let (info, map) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(why(path, error)),
        };
        let shape = layout::shapes(self.component).iter().find(|shape| shape.name == name);
        match shape.and_then(|shape| shape.difference(&info, &self.sizes)) {
            Some(difference) => Err(MapsError::Layout { path, difference }),
            None => Ok((map, path, info.max_entries())),
        }
    }
}

pub(super) fn why(path: PathBuf, error: MapError) -> MapsError {
    let kind = match &error {
        MapError::SyscallError(SyscallError { io_error, .. }) => io_error.kind(),
        _ => io::ErrorKind::Other,
    };
    match kind {
        io::ErrorKind::NotFound => MapsError::Missing { path },
        io::ErrorKind::PermissionDenied => MapsError::Permission { path },
        _ => MapsError::Open { path, source: error },
    }
}
