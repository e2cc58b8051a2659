use spillway_proto::v1;

use super::guard::{caller, denied};
use crate::access::Role;

/// Whether the caller may bring a configuration from one to the other: an operator may change
/// weight, admin state and limit of backends that are in both, an admin everything.
///
/// # Errors
/// Why not, in a sentence.
pub(in crate::api) fn within(
    before: &v1::Configuration,
    after: &v1::Configuration,
) -> Result<(), String> {
    let peer = caller();
    let may = match peer.role {
        Some(Role::Admin) => true,
        Some(Role::Operator) => operated(before, after) == *after,
        Some(Role::Viewer) | None => false,
    };
    if may {
        return Ok(());
    }
    let cause = format!(
        "{}: may change weight, admin_state and max_connection_rate of backends alone; more takes admin",
        peer.actor
    );
    denied(&cause);
    Err(cause)
}

/// `before` with what an operator may change of it as in `after`.
pub(super) fn operated(before: &v1::Configuration, after: &v1::Configuration) -> v1::Configuration {
    let mut operated = before.clone();
    // Whoever stands in another place differs by name or address, and goes on to differ.
    for (pool, new) in operated.pools.iter_mut().zip(&after.pools) {
        for (backend, new) in pool.backends.iter_mut().zip(&new.backends) {
            backend.weight = new.weight;
            backend.admin_state = new.admin_state;
            backend.max_connection_rate_per_second = new.max_connection_rate_per_second;
        }
    }
    operated
}
