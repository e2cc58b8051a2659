//! Removing pins, when asked.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::pinned;
use crate::{BpffsError, Component, Pins, bpffs::PinsLock, pins::interface_of};

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detached {
    /// Layouts of the pins, lowest first: one, unless daemons of several versions were here.
    pub layouts: Vec<u32>,
    /// Interfaces that had the component's program, by name.
    pub interfaces: Vec<String>,
    /// Maps, counters among them; tables are not counted.
    pub maps: u32,
}

/// Takes a component's programs off its interfaces and removes all its pins, links first: those of this version's
/// layout and those that daemons of other versions left. Nothing to remove is no error.
///
/// # Errors
/// [`BpffsError::InUse`] while a daemon of the component runs, whatever its layout, and nothing is removed
/// then; or what cannot be removed.
pub fn detach(bpffs: &Path, component: Component) -> Result<Detached, BpffsError> {
    let layouts = Pins::layouts(bpffs, component);
    let layouts =
        layouts.map_err(|source| BpffsError::File { path: bpffs.join("spillway"), source })?;
    LockedPins::lock(bpffs, component, &layouts)?.remove()
}

/// Removes the flow tables of all versions, once no layout has them in common any more. Returns how many there were.
pub(super) fn remove_flows(bpffs: &Path) -> Result<u32, BpffsError> {
    let all = Pins::new(bpffs, Component::Balancer).root().with_file_name("");
    let tables: Vec<_> =
        files(&all)?.into_iter().filter(|name| Pins::is_flow_table(name)).collect();
    for name in &tables {
        let path = all.join(name);
        remove(&path, fs::remove_file(&path))?;
    }
    // Another component may have its pins there.
    let _still_used = fs::remove_dir(all);
    Ok(tables.len() as u32)
}

/// Pins that no daemon uses until this is dropped.
#[derive(Debug)]
pub struct LockedPins {
    bpffs: PathBuf,
    component: Component,
    /// Of each layout.
    pins: Vec<(u32, Pins, PinsLock)>,
}

impl LockedPins {
    /// Locks a component's pins of these layouts. Layouts without pins are left out.
    ///
    /// # Errors
    /// [`BpffsError::InUse`] while a daemon uses one of them.
    pub fn lock(bpffs: &Path, component: Component, layouts: &[u32]) -> Result<Self, BpffsError> {
        let mut locked = Vec::new();
        for layout in layouts {
            let pins = Pins::with_layout(bpffs, component, *layout);
            if pins.root().exists() {
                let lock = PinsLock::take(&pins)?;
                locked.push((*layout, pins, lock));
            }
        }
        Ok(Self { bpffs: bpffs.into(), component, pins: locked })
    }

    /// Names of the interfaces whose packets a program of these layouts gets.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn interfaces(&self) -> Result<BTreeSet<String>, BpffsError> {
        let mut names = BTreeSet::new();
        for (_, pins, _) in &self.pins {
            names.extend(attached(pins)?);
        }
        Ok(names)
    }

    /// Takes the programs off their interfaces and removes the pins; with those of the last layout of a balancer the flow
    /// table.
    ///
    /// # Errors
    /// What cannot be removed.
    pub fn remove(self) -> Result<Detached, BpffsError> {
        let mut detached = Detached::default();
        for (layout, pins, _lock) in self.pins {
            let Detached { interfaces, maps, .. } = clear(&pins)?;
            detached.layouts.push(layout);
            detached.interfaces.extend(interfaces);
            detached.maps += maps;
        }
        detached.interfaces.sort();
        detached.interfaces.dedup();
        if self.component == Component::Balancer {
            let left = Pins::layouts(&self.bpffs, self.component)
                .map_err(|source| BpffsError::File { path: self.bpffs.join("spillway"), source })?;
            if left.is_empty() {
                detached.maps += remove_flows(&self.bpffs)?;
            }
        }
        Ok(detached)
    }
}

/// Removes a layout's pins and takes its programs off; the caller has the lock.
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
    detached.maps = files(&pins.maps())?.len().try_into().unwrap_or(u32::MAX);
    // All that is left, with what a daemon of another layout has pinned in places of its own.
    remove(pins.root(), fs::remove_dir_all(pins.root()))?;
    // Another component may have its pins there.
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
pub(super) fn files(directory: &Path) -> Result<Vec<String>, BpffsError> {
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
pub(super) fn remove(path: &Path, removed: io::Result<()>) -> Result<(), BpffsError> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(|source| BpffsError::File { path: path.into(), source }),
    }
}
