use spillway_proto::v1;

use super::caller;
use crate::access::Role;

/// Whether the caller may bring a configuration from one to the other: an operator may change
/// weight, wanted state and limit of backends that are in both, an admin everything.
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
    Err(format!(
        "{}: may change weight, wanted and max_connection_rate_per_second of backends alone; more \
         takes admin",
        peer.actor
    ))
}

/// `before` with what an operator may change of it as in `after`.
pub(super) fn operated(before: &v1::Configuration, after: &v1::Configuration) -> v1::Configuration {
    let mut operated = before.clone();
    for pool in &mut operated.pools {
        let Some(new) = after.pools.iter().find(|new| new.name == pool.name) else { continue };
        for backend in &mut pool.backends {
            let new = new.backends.iter().find(|new| new.address == backend.address);
            let Some(new) = new else { continue };
            backend.weight = new.weight;
            backend.wanted = new.wanted;
            backend.max_connection_rate_per_second = new.max_connection_rate_per_second;
        }
    }
    operated
}
