//! The inner maps of an array of maps, opened by pins of their own.
//!
//! A look-up in such an array returns only the id of the inner map, and opening a map by id needs CAP_SYS_ADMIN, which
//! the daemon does not need otherwise. So each inner map has a pin named by its index, made before it is published
//! and removed after it is retired. A pin counts if its map has the id that is in the array.

use std::{
    fs,
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
};

use aya::maps::MapData;

use super::{MapsError, maps::map_error, opener::why, raw::inner_id};

/// An array of maps.
pub(super) struct InnerMaps {
    name: &'static str,
    outer: MapData,
    directory: PathBuf,
}

impl InnerMaps {
    pub(super) fn new(name: &'static str, outer: MapData, directory: PathBuf) -> Self {
        Self { name, outer, directory }
    }

    /// Name of the array.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The id of the map at an index.
    pub(super) fn id(&self, index: u32) -> Result<Option<u32>, MapsError> {
        match inner_id(self, index) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(MapsError::Call { map: self.name, source }),
        }
    }

    /// The map at an index, if there is one with a pin.
    pub(super) fn get(&self, index: u32) -> Result<Option<MapData>, MapsError> {
        let Some(id) = self.id(index)? else { return Ok(None) };
        let path = self.pin_of(index);
        let inner = match MapData::from_pin(&path).map_err(|error| why(path, error)) {
            Err(MapsError::Missing { .. }) => return Ok(None),
            opened => opened?,
        };
        let is_it = inner.info().map_err(map_error(self.name))?.id() == id;
        Ok(is_it.then_some(inner))
    }

    /// The indices that have a pin.
    pub(super) fn pinned(&self) -> Result<Vec<u32>, MapsError> {
        let pin_error = |source| MapsError::Pin { path: self.directory.clone(), source };
        let mut indices = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(pin_error)? {
            let name = entry.map_err(pin_error)?.file_name();
            indices.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(indices)
    }

    /// Makes the directory of the pins.
    pub(super) fn make_directory(&self) -> Result<(), MapsError> {
        let pin_error = |source| MapsError::Pin { path: self.directory.clone(), source };
        fs::create_dir_all(&self.directory).map_err(pin_error)
    }

    /// Pins the map for an index. Replaces a pin that a killed daemon left.
    pub(super) fn pin(&self, index: u32, inner: &MapData) -> Result<(), MapsError> {
        self.unpin(index)?;
        let path = self.pin_of(index);
        let pinned = inner.pin(&path);
        pinned.map_err(|error| MapsError::Pin { path, source: io::Error::other(error) })
    }

    /// Removes the pin of an index, if there is one.
    pub(super) fn unpin(&self, index: u32) -> Result<(), MapsError> {
        let path = self.pin_of(index);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(MapsError::Pin { path, source })
            }
            _ => Ok(()),
        }
    }

    fn pin_of(&self, index: u32) -> PathBuf {
        self.directory.join(index.to_string())
    }
}

impl AsFd for InnerMaps {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outer.fd().as_fd()
    }
}
