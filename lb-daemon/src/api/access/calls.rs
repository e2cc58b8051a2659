//! What each role may call, and what an operator may change.

use spillway_proto::v1;

use super::{caller, denied};
use crate::access::Role::{self, Admin, Operator, Viewer};

/// The least role for each call. `UpdateBackend` is checked further by [`within`].
pub(super) const CALLS: &[(&str, Role)] = &[
    ("/grpc.health.v1.Health/Check", Viewer),
    ("/grpc.health.v1.Health/Watch", Viewer),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Viewer),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Viewer),
    ("/spillway.v1.Objects/CreateBackend", Admin),
    ("/spillway.v1.Objects/CreateHealthCheck", Admin),
    ("/spillway.v1.Objects/CreatePool", Admin),
    ("/spillway.v1.Objects/CreateRegion", Admin),
    ("/spillway.v1.Objects/CreateService", Admin),
    ("/spillway.v1.Objects/DeleteBackend", Admin),
    ("/spillway.v1.Objects/DeleteHealthCheck", Admin),
    ("/spillway.v1.Objects/DeletePool", Admin),
    ("/spillway.v1.Objects/DeleteRegion", Admin),
    ("/spillway.v1.Objects/DeleteService", Admin),
    ("/spillway.v1.Objects/GetBackend", Viewer),
    ("/spillway.v1.Objects/GetHealthCheck", Viewer),
    ("/spillway.v1.Objects/GetPool", Viewer),
    ("/spillway.v1.Objects/GetRegion", Viewer),
    ("/spillway.v1.Objects/GetService", Viewer),
    ("/spillway.v1.Objects/ListBackends", Viewer),
    ("/spillway.v1.Objects/ListHealthChecks", Viewer),
    ("/spillway.v1.Objects/ListPools", Viewer),
    ("/spillway.v1.Objects/ListRegions", Viewer),
    ("/spillway.v1.Objects/ListServices", Viewer),
    ("/spillway.v1.Objects/UpdateBackend", Operator),
    ("/spillway.v1.Objects/UpdateHealthCheck", Admin),
    ("/spillway.v1.Objects/UpdatePool", Admin),
    ("/spillway.v1.Objects/UpdateRegion", Admin),
    ("/spillway.v1.Objects/UpdateService", Admin),
    ("/spillway.v1.Overrides/ListOverrides", Viewer),
    ("/spillway.v1.Overrides/RemoveOverrides", Operator),
    ("/spillway.v1.Overrides/SetOverrides", Operator),
    ("/spillway.v1.Spillway/Apply", Admin),
    ("/spillway.v1.Spillway/BackendHistory", Viewer),
    ("/spillway.v1.Spillway/Capture", Operator),
    ("/spillway.v1.Spillway/DiffGenerations", Viewer),
    ("/spillway.v1.Spillway/Explain", Viewer),
    ("/spillway.v1.Spillway/Export", Viewer),
    ("/spillway.v1.Spillway/ListGenerations", Viewer),
    ("/spillway.v1.Spillway/ProbeVips", Operator),
    ("/spillway.v1.Spillway/Regions", Viewer),
    ("/spillway.v1.Spillway/Reload", Admin),
    ("/spillway.v1.Spillway/Rollback", Admin),
    ("/spillway.v1.Spillway/Stats", Viewer),
    ("/spillway.v1.Spillway/Status", Viewer),
    ("/spillway.v1.Spillway/Table", Viewer),
    ("/spillway.v1.Spillway/Watch", Viewer),
];

/// Whether a call needs the role admin.
pub(in crate::api) fn takes_admin(call: &str) -> bool {
    least(call) == Some(Admin)
}

/// The least role for a call; `None`: it is not in the table.
pub(super) fn least(call: &str) -> Option<Role> {
    CALLS.iter().find(|(name, _)| *name == call).map(|(_, role)| *role)
}

/// Whether the caller may change `before` into `after`: an operator may change weight, administrative state and limit of
/// existing backends, an admin everything.
///
/// # Errors
/// Why not.
pub(in crate::api) fn within(
    before: &v1::Configuration,
    after: &v1::Configuration,
) -> Result<(), String> {
    let peer = caller();
    let may = match peer.role {
        Some(Admin) => true,
        Some(Operator) => operated(before, after) == *after,
        Some(Viewer) | None => false,
    };
    if may {
        return Ok(());
    }
    let cause = format!(
        "{}: may change only weight, admin_state and max_connection_rate of backends; all else needs admin",
        peer.actor
    );
    denied(&cause);
    Err(cause)
}

/// `before`, with what an operator may change taken from `after`.
pub(super) fn operated(before: &v1::Configuration, after: &v1::Configuration) -> v1::Configuration {
    let mut operated = before.clone();
    // Objects that moved differ by name or address anyway.
    for (pool, new) in operated.pools.iter_mut().zip(&after.pools) {
        for (backend, new) in pool.backends.iter_mut().zip(&new.backends) {
            backend.weight = new.weight;
            backend.admin_state = new.admin_state;
            backend.max_connection_rate_per_second = new.max_connection_rate_per_second;
        }
    }
    operated
}
