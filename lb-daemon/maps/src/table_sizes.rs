//! How much the tables of connections hold.

use std::{fs, io, os::fd::AsRawFd as _, path::Path};

use aya::maps::MapData;
use lb_common::abi::{
    limits::{DEFAULT_DISPLACED_V4, DEFAULT_FLOWS_V4},
    names,
};

use super::{Component, MapsError, Pins, chunks::FIRST, opener::why};

/// Entries of the tables of IPv4; those of IPv6 have a quarter. `None`: what a pinned table has, or
/// else the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Displaced entries.
    pub displaced: Option<u32>,
    /// Tracked flows of UDP.
    pub udp_flows: Option<u32>,
}

/// IPv4 entries to one of IPv6.
const V4_TO_V6: u32 = 4;

impl TableSizes {
    /// The least of either: below, a few CPUs would have all free places among them.
    pub const LEAST: u32 = 4_096;
    /// The most of either, 1.8 GiB with those of IPv6.
    pub const MOST: u32 = 16_777_216;

    /// Entries to make a map with; `None`: it is pinned, or no table of connections.
    ///
    /// A pinned table of another size is kept, and the log says what to do: it holds where open
    /// connections are, and a balancer without daemon would be worse off than one whose table is smaller
    /// than somebody wished.
    pub(super) fn entries_for_new(&self, map: &str, pinned: Option<u32>) -> Option<u32> {
        let (asked, default, share) = match map {
            names::DISPLACED_V4 => (self.displaced, DEFAULT_DISPLACED_V4, 1),
            names::DISPLACED_V6 => (self.displaced, DEFAULT_DISPLACED_V4, V4_TO_V6),
            names::FLOWS_V4 => (self.udp_flows, DEFAULT_FLOWS_V4, 1),
            names::FLOWS_V6 => (self.udp_flows, DEFAULT_FLOWS_V4, V4_TO_V6),
            _ => return None,
        };
        let Some(there) = pinned else { return Some(asked.unwrap_or(default) / share) };
        if let Some(asked) = asked.map(|asked| asked / share).filter(|asked| *asked != there) {
            tracing::warn!(
                "map {map}: keeps its {there} entries, because it holds open connections; to get {asked}, \
                 stop the daemon, run `spillway detach` and start the daemon again, which breaks those connections"
            );
        }
        None
    }
}

/// Bytes of each of a balancer's maps, by name; the array of chunks with the first chunk, which is always there.
///
/// # Errors
/// [`MapsError`] says which pin cannot be opened or read.
pub fn map_memory(bpffs: &Path) -> Result<Vec<(String, u64)>, MapsError> {
    let pins = Pins::new(bpffs, Component::Balancer);
    let unreadable = |path: &Path, source| MapsError::Memory { path: path.into(), source };
    let entries = fs::read_dir(pins.maps()).map_err(|error| unreadable(&pins.maps(), error))?;
    let mut maps = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(&pins.maps(), error))?.path();
        let map = MapData::from_pin(&path).map_err(|error| why(path.clone(), error))?;
        let mut bytes = locked(&map).map_err(|error| unreadable(&path, error))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let chunk = pins.inner(&name).join(FIRST.to_string());
        if chunk.exists() {
            let map = MapData::from_pin(&chunk).map_err(|error| why(chunk.clone(), error))?;
            bytes += locked(&map).map_err(|error| unreadable(&chunk, error))?;
        }
        maps.push((name, bytes));
    }
    maps.sort();
    Ok(maps)
}

/// `memlock` of the map's descriptor (Linux, kernel/bpf/syscall.c, `bpf_map_show_fdinfo`).
fn locked(map: &MapData) -> io::Result<u64> {
    use std::os::fd::AsFd as _;
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", map.fd().as_fd().as_raw_fd()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("memlock:"));
    let bytes = line.and_then(|bytes| bytes.trim().parse().ok());
    bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no memlock in its fdinfo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_table_is_as_large_as_asked_and_a_pinned_one_stays() {
        let table_sizes = TableSizes { displaced: Some(10_000), udp_flows: None };
        assert_eq!(table_sizes.entries_for_new(names::DISPLACED_V4, None), Some(10_000));
        assert_eq!(table_sizes.entries_for_new(names::DISPLACED_V6, None), Some(2_500));
        assert_eq!(table_sizes.entries_for_new(names::FLOWS_V4, None), Some(262_144));
        assert_eq!(table_sizes.entries_for_new(names::FLOWS_V6, None), Some(65_536));
        assert_eq!(table_sizes.entries_for_new(names::DISPLACED_V4, Some(524_288)), None);
        assert_eq!(table_sizes.entries_for_new(names::POOLS, None), None);
    }
}
