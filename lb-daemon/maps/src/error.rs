use std::{io, path::PathBuf};

use aya::maps::MapError;
use lb_common::abi::names;

use super::IndexFull;

/// Why pinned maps cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MapsError {
    /// No daemon of this component has run since boot, or its pins were removed.
    #[error(
        "{}: no such pin: no spillwayd of this component has run here since boot, or it uses another \
         --bpffs", .path.display()
    )]
    Missing {
        /// The pin.
        path: PathBuf,
    },
    /// Only root may open pins.
    #[error("{}: permission denied: run as root", .path.display())]
    Permission {
        /// The pin.
        path: PathBuf,
    },
    /// A pin is there but cannot be opened.
    #[error("{}", .path.display())]
    Open {
        /// The pin.
        path: PathBuf,
        source: MapError,
    },
    /// The map was made by another build.
    #[error(
        "{}: has {difference}: another build of spillwayd made it; remove its pins with \
         `spillway detach`", .path.display()
    )]
    Layout {
        /// The pin.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// The map's memory cannot be mapped.
    #[error("{}: cannot be mapped", .path.display())]
    Memory {
        /// The pin.
        path: PathBuf,
        source: io::Error,
    },
    /// An operation on an open map failed.
    #[error("map {map}")]
    Map {
        /// Name of the map.
        map: &'static str,
        source: MapError,
    },
    /// A call on an open map failed.
    #[error("map {map}")]
    Call {
        /// Name of the map.
        map: &'static str,
        source: io::Error,
    },
    /// A group names a slot table that is not there.
    #[error("map {}: no slot table at word {word}", names::TABLES)]
    NoTable {
        /// [`lb_common::abi::slot::TableRef`] of it.
        word: u32,
    },
    /// A chunk's pin cannot be made or removed.
    #[error("{}", .path.display())]
    Pin {
        /// The pin.
        path: PathBuf,
        source: io::Error,
    },
    /// A reader was overtaken by changes every time.
    #[error("pool {pool}: changed each time it was read")]
    Changing {
        /// Index of the pool.
        pool: u32,
    },
    /// A reader was overtaken by changes every time.
    #[error("services: changed each time they were read")]
    ServicesChanging,
    /// There are more services than the maps were made for.
    #[error("services")]
    ServicesFull(#[source] IndexFull),
}
