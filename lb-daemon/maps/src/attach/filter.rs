//! The tc filter that a program is in where the kernel has no links for tc (before Linux 6.6).
//!
//! Nothing but its place tells that a filter is ours, so the interface has a pin of the program beside it, made
//! before the filter is. The qdisc that filters are in stays when ours goes: others may have theirs there.

use std::{io, mem, path::Path};

use aya::programs::{
    ProgramError, SchedClassifier, TcAttachType,
    links::Link as _,
    tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcError, TcHandle, qdisc_add_clsact},
};
use netlink_packet_route::{
    RouteNetlinkMessage,
    tc::{TcAttribute, TcFilterBpfOption, TcHandle as Handle, TcMessage, TcOption},
};
use nix::net::if_::if_nametoindex;

use super::hook::ask;

/// Priority of the filter: none comes before it.
pub(super) const PRIORITY: u16 = 1;
/// Its handle among those of that priority.
pub(super) const HANDLE: u16 = 0x5b1;
/// The program's name, which is the filter's.
const NAME: &str = crate::pins::RECEIVER_TC;

/// A filter in our place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    /// Id of its program.
    pub(super) program: u32,
    pub(super) name: String,
}

/// What is in our place of an interface, by its handle.
///
/// # Errors
/// What netlink answers, `ENODEV` where there is no such interface.
pub(super) fn installed(interface: u32, handle: u16) -> io::Result<Option<Filter>> {
    /// ETH_P_ALL.
    const EVERY_PROTOCOL: u16 = 3;
    let mut wanted = TcMessage::with_index(i32::try_from(interface).map_err(io::Error::other)?);
    wanted.header.parent = Handle { major: Handle::CLSACT.major, minor: Handle::MIN_INGRESS };
    wanted.header.handle = Handle { major: 0, minor: handle };
    wanted.header.info = u32::from(PRIORITY) << 16 | u32::from(EVERY_PROTOCOL.to_be());
    let found = match ask(RouteNetlinkMessage::GetTrafficFilter(wanted)) {
        Ok(RouteNetlinkMessage::NewTrafficFilter(filter)) => filter,
        // Another kind of filter has the place, or there is no qdisc for filters.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => {
            return Ok(None);
        }
        Ok(other) => return Err(io::Error::other(format!("unexpected answer: {other:?}"))),
        Err(error) => return Err(error),
    };
    let options = found.attributes.into_iter().filter_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    let mut filter = Filter { program: 0, name: String::new() };
    for option in options.flatten() {
        match option {
            TcOption::Bpf(TcFilterBpfOption::ProgId(id)) => filter.program = id,
            TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => filter.name = name,
            _ => {}
        }
    }
    Ok((filter.program != 0).then_some(filter))
}

/// Adds the qdisc that filters are in, unless the interface has it.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn add_qdisc(interface: &str) -> Result<(), TcError> {
    match qdisc_add_clsact(interface) {
        Err(TcError::AlreadyAttached) => Ok(()),
        Err(TcError::NetlinkError(error)) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        added => added,
    }
}

/// Puts a program into a new filter.
///
/// # Errors
/// What the kernel answers: `EEXIST` or `EINVAL` where somebody else has the place.
pub(super) fn create(program: &mut SchedClassifier, interface: &str) -> Result<(), ProgramError> {
    add_qdisc(interface)?;
    let options = NlOptions { priority: PRIORITY, handle: TcHandle::new(0, HANDLE), classid: None };
    let options = TcAttachOptions::Netlink(options);
    let link = program.attach_with_options(interface, TcAttachType::Ingress, options)?;
    // It would take the filter away when it is dropped.
    mem::forget(program.take_link(link)?);
    Ok(())
}

/// Puts a program in the place of the filter's: no packet passes between the two.
///
/// # Errors
/// What the kernel answers.
pub(super) fn replace(program: &mut SchedClassifier, interface: &str) -> Result<(), ProgramError> {
    let link = program.attach_to_link(link(interface, HANDLE).map_err(TcError::IoError)?)?;
    mem::forget(program.take_link(link)?);
    Ok(())
}

/// Takes the filter away, if it is ours, and the pin.
///
/// # Errors
/// What cannot be removed.
pub(super) fn remove(interface: &str, pin: &Path) -> io::Result<()> {
    remove_program(interface, HANDLE, NAME)?;
    std::fs::remove_file(pin)
}

/// Takes the filter with this handle away, if it has this program.
///
/// # Errors
/// What cannot be read or removed.
pub(super) fn remove_program(interface: &str, handle: u16, program: &str) -> io::Result<()> {
    let found = match if_nametoindex(interface).map(|index| installed(index, handle)) {
        Ok(Ok(found)) => found,
        // The interface is gone, and the filter with it.
        Err(_) => None,
        Ok(Err(error)) if error.raw_os_error() == Some(libc::ENODEV) => None,
        Ok(Err(error)) => return Err(error),
    };
    match found {
        Some(filter) if filter.name == program => {
            link(interface, handle)?.detach().map_err(io::Error::other)
        }
        _ => Ok(()),
    }
}

/// Whether a receiver's program is in our place of an interface.
pub(super) fn is_receivers(interface: u32) -> bool {
    installed(interface, HANDLE).is_ok_and(|found| found.is_some_and(|filter| filter.name == NAME))
}

fn link(interface: &str, handle: u16) -> io::Result<SchedClassifierLink> {
    let handle = TcHandle::new(0, handle);
    SchedClassifierLink::attached(interface, TcAttachType::Ingress, PRIORITY, handle, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_filter_of_ours() {
        let loopback = if_nametoindex("lo").unwrap();
        assert_eq!(installed(loopback, HANDLE).unwrap(), None);
    }
}
