//! What stands behind the pins of an interface: a link at one of the two hooks, or before Linux 6.6 the program
//! of a filter at tc's.

use std::{fs, io, path::Path};

use aya::programs::{
    ProgramInfo,
    links::{FdLink, LinkInfo, LinkType, PinnedLink},
};

use super::{
    filter,
    hook::{self, AttachedMode},
    interface::Interface,
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

/// Whether what is pinned for an interface has its place at tc's hook.
pub(super) fn is_for_tc(pins: &Pins, interface: &str) -> bool {
    pins.filter(interface).exists() || kind(&pins.link(interface)) == Some(LinkType::Tcx)
}

/// The program that is at tc's hook of an interface, if it is there by a pin.
pub(super) fn at_tc(pins: &Pins, interface: &str, index: u32) -> Option<u32> {
    let filter = pins.filter(interface);
    if filter.exists() {
        let program = ProgramInfo::from_pin(filter).ok()?.id();
        let now = filter::installed(index).ok()??;
        return (now.program == program).then_some(program);
    }
    let pin = pins.link(interface);
    let is_there = kind(&pin) == Some(LinkType::Tcx)
        && raw::open_link(&pin).and_then(raw::link_interface).ok()? == index;
    if is_there { program(&pin) } else { None }
}

/// How an interface's program is attached now, if it is one that is pinned.
pub(super) fn mode(pins: &Pins, interface: &Interface) -> Option<AttachedMode> {
    if at_tc(pins, &interface.name, interface.index).is_some() {
        return Some(AttachedMode::Tc);
    }
    let program = program(&pins.link(&interface.name))?;
    let now = hook::attachment(interface.index).ok()??;
    (now.program == program).then_some(now.mode)
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
