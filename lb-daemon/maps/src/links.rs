//! The interfaces that a component's pinned links are for, and how the kernel has them now.

use nix::net::if_::if_nametoindex;

use super::{AttachedMode, BpffsError, Interface, Pins, detach, pinned};

/// An interface with a pinned link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// Its name.
    pub name: String,
    /// Its index; `None`: there is no interface of this name.
    pub index: Option<u32>,
    /// Whether its place is at tc's hook.
    pub at_tc: bool,
    /// How the link's program is attached; `None`: it is not, though the pin is there.
    pub mode: Option<AttachedMode>,
}

/// The interfaces of a component, by name, read without its daemon; in the network namespace of the
/// calling thread.
///
/// # Errors
/// The directory of the links cannot be read.
pub fn links(pins: &Pins) -> Result<Vec<Linked>, BpffsError> {
    let linked = |name: String| {
        let index = if_nametoindex(name.as_str()).ok();
        let interface = |index| Interface { name: name.clone(), index, mode: None };
        let mode = index.and_then(|index| pinned::mode(pins, &interface(index)));
        let at_tc = pinned::is_for_tc(pins, &name);
        Linked { name, index, at_tc, mode }
    };
    Ok(detach::attached(pins)?.into_iter().map(linked).collect())
}
