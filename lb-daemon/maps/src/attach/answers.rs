//! The program for answers to probes, where packets arrive at an interface. Nothing of it is pinned.

use std::{ffi::CString, io};

use aya::{
    programs::{
        LinkOrder, ProgramError, SchedClassifier, TcAttachType,
        tc::{NlOptions, TcAttachOptions, TcHandle},
    },
    util::KernelVersion,
};
use lb_common::abi::names::PROBE_ANSWERS;
use nix::net::if_::{if_indextoname, if_nameindex};

use super::filter::{self, PRIORITY};

/// Handle of the filter, before Linux 6.6: another than the receiver's.
const HANDLE: u16 = 0x5b2;

/// Attaches the program to an interface, until the program is dropped: before those that are there, or where the kernel
/// has no links for tc (before Linux 6.6), in a filter.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn attach(program: &mut SchedClassifier, interface: u32) -> Result<(), ProgramError> {
    let name = if_indextoname(interface).map_err(|errno| ProgramError::IOError(errno.into()))?;
    let name = text(name)?;
    let is_linked = KernelVersion::current().is_ok_and(|it| it >= KernelVersion::new(6, 6, 0));
    let options = if is_linked {
        TcAttachOptions::TcxOrder(LinkOrder::first())
    } else {
        filter::add_qdisc(&name)?;
        // A killed daemon leaves its own.
        filter::remove_program(&name, HANDLE, PROBE_ANSWERS).map_err(ProgramError::IOError)?;
        let handle = TcHandle::new(0, HANDLE);
        TcAttachOptions::Netlink(NlOptions { priority: PRIORITY, handle, classid: None })
    };
    program.attach_with_options(&name, TcAttachType::Ingress, options)?;
    Ok(())
}

/// Takes the filters away that a killed daemon left in this thread's network namespace (before Linux 6.6).
///
/// # Errors
/// What cannot be listed or removed.
pub fn remove_filters_for_answers() -> io::Result<()> {
    for interface in &if_nameindex()? {
        let name = text(interface.name().to_owned()).map_err(io::Error::other)?;
        filter::remove_program(&name, HANDLE, PROBE_ANSWERS)?;
    }
    Ok(())
}

fn text(name: CString) -> Result<String, ProgramError> {
    name.into_string().map_err(|error| ProgramError::IOError(io::Error::other(error)))
}
