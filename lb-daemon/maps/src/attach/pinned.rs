//! What stands behind the pins of an interface: a link at one of the two hooks, or before Linux 6.6 the program
//! of a filter at tc's.

use std::{fs, io, path::Path};

use nix::net::if_::if_indextoname;

use aya::programs::{
    ProgramInfo,
    links::{FdLink, LinkInfo, LinkType, PinnedLink},
};

use super::{
    detach::files,
    filter,
    hook::{self, AttachedMode, Attachment},
};
use crate::{BpffsError, Pins, raw};

/// What the kernel says of a pinned link; `None` where there is none.
fn link(pin: &Path) -> Option<LinkInfo> {
    FdLink::from(PinnedLink::from_pin(pin).ok()?).info().ok()
}

/// What hook a pinned link is for; `None` where there is none.
pub(super) fn kind(pin: &Path) -> Option<LinkType> {
    link(pin)?.link_type().ok()
}

/// The program of a pinned link; `None` where there is none.
pub(super) fn program(pin: &Path) -> Option<u32> {
    Some(link(pin)?.program_id())
}

/// The index of the interface that a pinned link is on; `None`: of none any more, or there is no link.
fn link_interface(pin: &Path) -> Option<u32> {
    raw::open_link(pin).and_then(raw::link_interface).ok().filter(|index| *index != 0)
}

/// The name that the interface with an index has now.
pub(super) fn name_of(index: u32) -> Option<String> {
    if_indextoname(index).ok()?.into_string().ok()
}

/// Names the pin of each link after the interface that it is on: a link stays on its interface when that gets another
/// name. The caller has the lock.
///
/// # Errors
/// A pin cannot be renamed.
pub(super) fn follow_names(pins: &Pins) -> Result<(), BpffsError> {
    let all = files(&pins.links())?.into_iter().filter_map(|file| {
        let pin = pins.links().join(file);
        let wanted = pins.link(&name_of(index_here(&pin)?)?);
        Some((pin, wanted))
    });
    let (right, moved): (Vec<_>, Vec<_>) = all.partition(|(pin, wanted)| pin == wanted);
    let moved = moved.into_iter().filter(|(_, wanted)| right.iter().all(|(it, _)| it != wanted));
    // Two may have exchanged their names, and a pin that is overwritten takes its link along. No interface has a blank in
    // its name; where a daemon ends in between, the next one goes on from here.
    let mut aside = Vec::new();
    for (number, (pin, wanted)) in moved.enumerate() {
        let place = pins.links().join(format!("renamed {number}"));
        rename(&pin, &place)?;
        aside.push((place, wanted));
    }
    aside.iter().try_for_each(|(place, wanted)| rename(place, wanted))
}

/// The index of the interface that a pinned link is on, if that is in this network namespace: one that was moved to another
/// namespace takes its link along, and its index may be that of another interface here.
pub(super) fn index_here(pin: &Path) -> Option<u32> {
    let index = link_interface(pin)?;
    let (is_tc, own) = (kind(pin)? == LinkType::Tcx, program(pin)?);
    let is_here = is_tc || hook::attachment(index).ok()?.is_some_and(|now| now.program == own);
    is_here.then_some(index)
}

fn rename(from: &Path, to: &Path) -> Result<(), BpffsError> {
    fs::rename(from, to).map_err(|source| BpffsError::File { path: from.into(), source })
}

/// The program that a component has pinned.
pub(super) fn own_program(pins: &Pins) -> Option<u32> {
    ProgramInfo::from_pin(pins.program()).ok().map(|program| program.id())
}

/// Whether what is pinned for an interface has its place at tc's hook.
pub(super) fn is_for_tc(pins: &Pins, interface: &str) -> bool {
    pins.filter(interface).exists() || kind(&pins.link(interface)) == Some(LinkType::Tcx)
}

/// The program that is at tc's hook of an interface, if it is there by a pin.
pub(super) fn at_tc(pins: &Pins, interface: &str, index: u32) -> Option<u32> {
    let filter = pins.filter(interface);
    if filter.exists() {
        let program = ProgramInfo::from_pin(filter).ok()?.id();
        let now = filter::installed(index, filter::HANDLE).ok()??;
        return (now.program == program).then_some(program);
    }
    let pin = pins.link(interface);
    let is_there = kind(&pin) == Some(LinkType::Tcx) && link_interface(&pin)? == index;
    if is_there { program(&pin) } else { None }
}

/// The program on an interface by a pin of its name, and how it is attached; `None`: there is none.
pub(super) fn attached(pins: &Pins, interface: &str, index: u32) -> Option<Attachment> {
    if let Some(program) = at_tc(pins, interface, index) {
        return Some(Attachment { mode: AttachedMode::Tc, program });
    }
    let pin = pins.link(interface);
    let program = program(&pin).filter(|_| link_interface(&pin) == Some(index))?;
    hook::attachment(index).ok()?.filter(|now| now.program == program)
}

/// Takes a component's program off an interface, and removes its pins.
///
/// # Errors
/// What cannot be removed.
pub(super) fn remove(pins: &Pins, interface: &str) -> Result<(), BpffsError> {
    let of = |path| move |source| BpffsError::File { path, source };
    remove_filter(pins, interface).map_err(of(pins.filter(interface)))?;
    remove_link(&pins.link(interface)).map_err(of(pins.link(interface)))
}

/// Removes a link that was on its way to its place when a daemon ended.
///
/// # Errors
/// What cannot be removed.
pub(super) fn remove_unplaced(pins: &Pins) -> Result<(), BpffsError> {
    let path = pins.next_link();
    remove_link(&path).map_err(|source| BpffsError::File { path, source })
}

/// Takes off what an interface has in a filter, if it has, and removes its pin.
///
/// # Errors
/// What the kernel answers.
pub(super) fn remove_filter(pins: &Pins, interface: &str) -> io::Result<()> {
    let pin = pins.filter(interface);
    if pin.exists() { filter::remove(interface, &pin) } else { Ok(()) }
}

/// Detaches a pinned link and removes its pin, if it is there.
///
/// # Errors
/// What the kernel answers.
pub(super) fn remove_link(pin: &Path) -> io::Result<()> {
    if !pin.exists() {
        return Ok(());
    }
    let detached = raw::open_link(pin).and_then(raw::detach_link);
    fs::remove_file(pin)?;
    match detached {
        // The interface is gone, and the link's program with it.
        Err(error) if error.raw_os_error() != Some(libc::ENOLINK) => Err(error),
        _ => Ok(()),
    }
}
