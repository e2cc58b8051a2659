//! Removing pins, when asked.

use std::{collections::BTreeSet, fs, io, path::Path};

use super::{BpffsError, Pins, Role, bpffs::PinsLock, pinned, pins::interface_of};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detached {
    /// Interfaces that had the role's program, by name.
    pub interfaces: Vec<String>,
    /// Maps, counters among them; tables are not counted.
    pub maps: u32,
}

/// Takes a role's program off its interfaces and removes all its pins, maps last. Nothing to remove
/// is no error.
///
/// # Errors
/// [`BpffsError::InUse`] while a daemon of the role runs, or what cannot be removed.
pub fn detach(bpffs: &Path, role: Role) -> Result<Detached, BpffsError> {
    let pins = Pins::new(bpffs, role);
    if !pins.root().exists() {
        return Ok(Detached::default());
    }
    let _lock = PinsLock::take(&pins)?;
    clear(&pins)
}

/// Does so for who has the lock.
///
/// # Errors
/// What cannot be removed.
pub(super) fn clear(pins: &Pins) -> Result<Detached, BpffsError> {
    let mut detached = Detached::default();
    for interface in attached(pins)? {
        pinned::remove(pins, &interface)?;
        detached.interfaces.push(interface);
    }
    pinned::remove_unplaced(pins)?;
    for map in files(&pins.maps())? {
        let pin = pins.map(&map);
        remove(&pin, fs::remove_file(&pin))?;
        detached.maps += 1;
    }
    let inner = pins.all_inner();
    for array in files(&inner)? {
        let array = inner.join(array);
        for index in files(&array)? {
            let pin = array.join(index);
            remove(&pin, fs::remove_file(&pin))?;
        }
        remove(&array, fs::remove_dir(&array))?;
    }
    for program in [pins.program(), pins.next_program()] {
        remove(&program, fs::remove_file(&program))?;
    }
    for directory in [&inner, &pins.maps(), &pins.links(), &pins.filters(), pins.root()] {
        remove(directory, fs::remove_dir(directory))?;
    }
    // Another role may have its pins there.
    if let Some(all) = pins.root().parent() {
        let _still_used = fs::remove_dir(all);
    }
    Ok(detached)
}

/// Interfaces that have a pinned link, or a pin of what is in their filter, by name.
pub(super) fn attached(pins: &Pins) -> Result<Vec<String>, BpffsError> {
    let pinned = [files(&pins.links())?, files(&pins.filters())?].concat();
    let names: BTreeSet<_> = pinned.iter().map(|pin| interface_of(pin)).collect();
    Ok(names.into_iter().collect())
}

/// Names of a directory's files; none where it is missing.
fn files(directory: &Path) -> Result<Vec<String>, BpffsError> {
    let names = fs::read_dir(directory).and_then(|files| {
        files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect()
    });
    match names {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(BpffsError::File { path: directory.into(), source }),
        Ok(names) => {
            let mut names: Vec<String> = names;
            names.sort();
            Ok(names)
        }
    }
}

/// What came of a removal: that there was nothing to remove is no error.
fn remove(path: &Path, removed: io::Result<()>) -> Result<(), BpffsError> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(|source| BpffsError::File { path: path.into(), source }),
    }
}
