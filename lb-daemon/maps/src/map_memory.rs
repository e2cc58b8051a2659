//! The kernel's memory of a balancer's maps.

use std::{ffi::OsStr, fs, io, os::fd::AsRawFd as _, path::Path};

use aya::maps::MapData;
use lb_common::abi::names::FLOWS;

use super::{Component, MapsError, Pins, chunks::FIRST, opener::why};

/// Bytes of each of a balancer's maps, by name; the array of chunks with the first chunk, which is always there.
///
/// # Errors
/// [`MapsError`] says which pin cannot be opened or read.
pub fn map_memory(bpffs: &Path) -> Result<Vec<(String, u64)>, MapsError> {
    let pins = Pins::new(bpffs, Component::Balancer);
    let unreadable = |path: &Path, source| MapsError::Memory { path: path.into(), source };
    let entries = fs::read_dir(pins.maps()).map_err(|error| unreadable(&pins.maps(), error))?;
    let mut maps = Vec::new();
    let flows = pins.map(FLOWS);
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).chain([Ok(flows.clone())]);
    for path in paths {
        let path = path.map_err(|error| unreadable(&pins.maps(), error))?;
        let map = MapData::from_pin(&path).map_err(|error| why(path.clone(), error))?;
        let mut bytes = locked(&map).map_err(|error| unreadable(&path, error))?;
        let name = if path == flows { Some(OsStr::new(FLOWS)) } else { path.file_name() };
        let name = name.map(|name| name.to_string_lossy().into_owned());
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
