//! The program that an interface has, whoever put it there, and how it is taken off.

use std::{fmt, io};

use aya::programs::{
    links::{LinkError, LinkType},
    loaded_links, loaded_programs,
};
use nix::net::if_::if_nametoindex;

use super::{
    detach,
    hook::{self, AttachedMode},
    pinned,
};
use crate::{BpffsError, Pins};

/// What keeps a program on its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The interface itself, as `ip link set dev IF xdp` does.
    Interface,
    /// A link: one of these, by their ids, of which each keeps the program somewhere.
    Links(Vec<u32>),
    /// To see links takes CAP_SYS_ADMIN.
    Unknown,
}

/// A program on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// Name and id of the program.
    pub program: String,
    /// What keeps it there.
    pub hold: Hold,
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)
    }
}

impl Occupant {
    /// What takes it off an interface.
    pub fn removal(&self, interface: &str) -> String {
        let off = format!("ip link set dev {interface} xdp off");
        match &self.hold {
            Hold::Interface => format!("`{off}`"),
            Hold::Links(ids) => match ids[..] {
                [id] => format!("`bpftool link detach id {id}`, since a link holds it"),
                _ => {
                    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
                    let ids = ids.join(", ");
                    format!("`bpftool link detach id ID`, since one of the links {ids} holds it")
                }
            },
            Hold::Unknown => format!(
                "`{off}`, or if a link holds it (see `bpftool link`), with `bpftool link detach id ID`"
            ),
        }
    }
}

/// The program of an interface, by index; `None`: it has none.
///
/// # Errors
/// What netlink answers.
pub fn occupant(interface: u32) -> io::Result<Option<Occupant>> {
    let attached = hook::attachment(interface)?;
    Ok(attached.map(|now| describe_occupant(now.program)))
}

/// A program that is on some interface.
pub(super) fn describe_occupant(program: u32) -> Occupant {
    Occupant { program: describe(program), hold: hold(program) }
}

fn hold(program: u32) -> Hold {
    let mut links = Vec::new();
    for link in loaded_links() {
        match link {
            Ok(link) if link.program_id() != program => {}
            Ok(link) if link.link_type().is_ok_and(|kind| kind == LinkType::Xdp) => {
                links.push(link.id());
            }
            Ok(_) => {}
            Err(error) if is_denied(&error) => return Hold::Unknown,
            // It went meanwhile.
            Err(_) => {}
        }
    }
    if links.is_empty() { Hold::Interface } else { Hold::Links(links) }
}

fn is_denied(error: &LinkError) -> bool {
    matches!(error, LinkError::SyscallError(error)
        if error.io_error.kind() == io::ErrorKind::PermissionDenied)
}

/// A program's name and id.
pub(super) fn describe(id: u32) -> String {
    let programs = loaded_programs().filter_map(Result::ok);
    let name = programs.filter(|program| program.id() == id).find_map(|program| {
        program.name_as_str().filter(|name| !name.is_empty()).map(str::to_owned)
    });
    name.map_or_else(|| format!("{id}"), |name| format!("{name} (id {id})"))
}

/// An interface with a pinned link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// Its name now; of one that is gone its last.
    pub name: String,
    /// Its index; `None`: it is gone.
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
    let linked = |pinned_as: String| {
        let on = pinned::index_here(&pins.link(&pinned_as));
        let index = on.or_else(|| if_nametoindex(pinned_as.as_str()).ok());
        let attached = index.and_then(|index| pinned::attached(pins, &pinned_as, index));
        let (at_tc, mode) = (pinned::is_for_tc(pins, &pinned_as), attached.map(|it| it.mode));
        let name = on.and_then(pinned::name_of).unwrap_or(pinned_as);
        Linked { name, index, at_tc, mode }
    };
    Ok(detach::attached(pins)?.into_iter().map(linked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_link_holds_only_the_link_lets_go() {
        let removal = |hold| Occupant { program: "x (id 7)".into(), hold }.removal("eth0");
        assert_eq!(removal(Hold::Interface), "`ip link set dev eth0 xdp off`");
        assert_eq!(
            removal(Hold::Links(vec![3])),
            "`bpftool link detach id 3`, since a link holds it"
        );
        assert_eq!(
            removal(Hold::Links(vec![3, 5])),
            "`bpftool link detach id ID`, since one of the links 3, 5 holds it"
        );
        let unknown = removal(Hold::Unknown);
        assert!(unknown.contains("xdp off`, or if a link holds it"), "{unknown}");
    }
}
