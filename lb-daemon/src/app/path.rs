//! What to do where the packet path cannot be set up.

use std::{error::Error, io};

use super::Failure;
use lb_base::{error_chain, lock_owner};
use lb_maps::{AttachError, BpffsError, DataplaneError};

/// The packet path cannot be set up.
pub(super) fn failure(error: DataplaneError) -> Failure {
    match &error {
        DataplaneError::Bpffs(BpffsError::InUse { path }) => {
            let other = lock_owner::named(path);
            Failure::new(format!("{}: in use by another spillwayd", path.display()))
                .hint(format!("stop the other one{other}, or give each its own --bpffs"))
        }
        DataplaneError::Attach(AttachError::NoInterface(_)) => {
            Failure::new(error_chain::message(&error))
                .hint("`ip -brief link` shows those there are; name one with --interface")
        }
        error if denied(error) => Failure::new(error_chain::message(error)).hint(
            "run it as root, or as its unit does: packet programs need CAP_BPF, CAP_NET_ADMIN and \
             CAP_PERFMON",
        ),
        error => Failure::new(error_chain::message(error)),
    }
}

/// Whether the kernel said that we may not.
fn denied(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return true;
        }
        cause = error.source();
    }
    false
}
