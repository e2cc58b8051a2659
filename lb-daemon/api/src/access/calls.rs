//! What each role may call, and what an operator, or a client of some pools, may change.

use std::collections::BTreeMap;

use spillway_proto::v1;
use tonic::Status;

use super::{caller, current_call, denied, permission_denied};
use lb_model::overrides::Target;
use lb_secure::access::{
    Peer,
    Role::{self, Admin, Operator, Viewer},
    Scope,
};

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// At least this role.
    Role(Role),
    /// At least this role to change something, and the role plan for a dry run. The call itself asks [`may_change`].
    Change(Role),
}

/// The least role for each call. What calls about objects change is checked further by [`within`].
pub(super) const CALLS: &[(&str, Needs)] = &[
    ("/grpc.health.v1.Health/Check", Needs::Role(Viewer)),
    ("/grpc.health.v1.Health/Watch", Needs::Role(Viewer)),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Needs::Role(Viewer)),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Needs::Role(Viewer)),
    ("/spillway.v1.Fleet/CountBackendPackets", Needs::Role(Operator)),
    ("/spillway.v1.Fleet/GetFleetStatus", Needs::Role(Viewer)),
    ("/spillway.v1.Fleet/JoinFleet", Needs::Change(Admin)),
    ("/spillway.v1.Fleet/LeaveFleet", Needs::Change(Admin)),
    ("/spillway.v1.Fleet/RemoveFleetMember", Needs::Change(Admin)),
    ("/spillway.v1.Fleet/RestoreFleet", Needs::Change(Admin)),
    ("/spillway.v1.Objects/BatchCreateBackends", Needs::Change(Admin)),
    ("/spillway.v1.Objects/BatchDeleteBackends", Needs::Change(Admin)),
    ("/spillway.v1.Objects/BatchUpdateBackends", Needs::Change(Operator)),
    ("/spillway.v1.Objects/CreateBackend", Needs::Change(Admin)),
    ("/spillway.v1.Objects/CreateHealthCheck", Needs::Change(Admin)),
    ("/spillway.v1.Objects/CreatePool", Needs::Change(Admin)),
    ("/spillway.v1.Objects/CreateRegion", Needs::Change(Admin)),
    ("/spillway.v1.Objects/CreateService", Needs::Change(Admin)),
    ("/spillway.v1.Objects/DeleteBackend", Needs::Change(Admin)),
    ("/spillway.v1.Objects/DeleteHealthCheck", Needs::Change(Admin)),
    ("/spillway.v1.Objects/DeletePool", Needs::Change(Admin)),
    ("/spillway.v1.Objects/DeleteRegion", Needs::Change(Admin)),
    ("/spillway.v1.Objects/DeleteService", Needs::Change(Admin)),
    ("/spillway.v1.Objects/GetBackend", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/GetHealthCheck", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/GetPool", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/GetRegion", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/GetService", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/ListBackends", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/ListHealthChecks", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/ListPools", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/ListRegions", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/ListServices", Needs::Role(Viewer)),
    ("/spillway.v1.Objects/UpdateBackend", Needs::Change(Operator)),
    ("/spillway.v1.Objects/UpdateHealthCheck", Needs::Change(Admin)),
    ("/spillway.v1.Objects/UpdatePool", Needs::Change(Admin)),
    ("/spillway.v1.Objects/UpdateRegion", Needs::Change(Admin)),
    ("/spillway.v1.Objects/UpdateService", Needs::Change(Admin)),
    ("/spillway.v1.Overrides/ListOverrides", Needs::Role(Viewer)),
    ("/spillway.v1.Overrides/RemoveOverrides", Needs::Change(Operator)),
    ("/spillway.v1.Overrides/SetOverrides", Needs::Change(Operator)),
    ("/spillway.v1.Spillway/Apply", Needs::Change(Admin)),
    ("/spillway.v1.Spillway/BackendHistory", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Capture", Needs::Role(Operator)),
    ("/spillway.v1.Spillway/DiffGenerations", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Explain", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Export", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/GetBackendStatus", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/ListGenerations", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/ProbeVips", Needs::Role(Operator)),
    ("/spillway.v1.Spillway/Regions", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Reload", Needs::Role(Admin)),
    ("/spillway.v1.Spillway/Rollback", Needs::Change(Admin)),
    ("/spillway.v1.Spillway/Stats", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Status", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Table", Needs::Role(Viewer)),
    ("/spillway.v1.Spillway/Watch", Needs::Role(Viewer)),
];

/// How large requests of a call may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestSize {
    /// It may have a whole configuration or a pool.
    Large,
    /// It has many backends.
    Batch,
    Small,
}

pub(crate) fn request_size(call: &str) -> RequestSize {
    match needs(call) {
        _ if call.starts_with("/spillway.v1.Objects/Batch") => RequestSize::Batch,
        Some(Needs::Change(Admin)) => RequestSize::Large,
        _ => RequestSize::Small,
    }
}

/// Calls whose answers have a whole configuration, or all backends, and are no streams.
const LARGE_ANSWERS: &[&str] = &[
    "/spillway.v1.Spillway/DiffGenerations",
    "/spillway.v1.Spillway/Export",
    "/spillway.v1.Spillway/Stats",
    "/spillway.v1.Spillway/Status",
    "/spillway.v1.Spillway/Table",
];

/// Whether the answer of a call may be large.
pub(crate) fn has_large_answer(call: &str) -> bool {
    LARGE_ANSWERS.contains(&call)
}

/// What a call needs; `None`: it is not in the table.
pub(super) fn needs(call: &str) -> Option<Needs> {
    CALLS.iter().find(|(name, _)| *name == call).map(|(_, needs)| *needs)
}

/// Checks that the caller may do what the current call would change. To be asked first by each call that may be a dry run.
///
/// # Errors
/// The caller's role does not permit it.
pub(crate) fn may_change(dry_run: bool) -> Result<(), Status> {
    let Peer { actor, role, .. } = caller();
    let call = current_call();
    let least = match needs(&call) {
        _ if dry_run => Role::Plan,
        Some(Needs::Role(role) | Needs::Change(role)) => role,
        None => Admin,
    };
    if role >= Some(least) {
        return Ok(());
    }
    let is = role.map_or("without a role".into(), |role| role.to_string());
    let cause = format!("{actor}: is {is}, but {call} needs {least}");
    denied(&cause);
    Err(permission_denied(cause))
}

/// Whether the caller may change `before` into `after`, or plan that: an operator may change weight, administrative state and
/// limit of existing backends, an admin everything; a client with a scope only what concerns nothing else.
///
/// # Errors
/// Why not.
pub(crate) fn within(
    before: &v1::Configuration,
    after: &v1::Configuration,
    dry_run: bool,
) -> Result<(), String> {
    let Peer { actor, role, scope, .. } = caller();
    let may = match role {
        Some(Admin) => true,
        Some(Operator) => dry_run || operated(before, after) == *after,
        Some(Role::Plan) => dry_run,
        Some(Viewer) | None => false,
    };
    let concerned = scope.and_then(|scope| Some((other_concern(&scope, before, after)?, scope)));
    let cause = match concerned {
        _ if !may => format!(
            "{actor}: may change only weight, admin_state and max_connection_rate of backends; all else needs admin"
        ),
        Some((concern, scope)) => {
            format!("{actor}: is for the pools {scope}, but this concerns {concern}")
        }
        None => return Ok(()),
    };
    denied(&cause);
    Err(cause)
}

/// Checks that the caller may set or remove an override of a target.
///
/// # Errors
/// It is for some pools, and the target concerns others.
pub(crate) fn within_pools(target: &Target) -> Result<(), Status> {
    let Peer { actor, scope, .. } = caller();
    let Some(scope) = scope else { return Ok(()) };
    if target.pool().is_some_and(|pool| scope.has_pool(pool.as_str())) {
        return Ok(());
    }
    let cause =
        format!("{actor}: is for the pools {scope}, but an override of {target} concerns others");
    denied(&cause);
    Err(permission_denied(cause))
}

/// What of a change is beyond a scope; `None`: nothing.
pub(super) fn other_concern(
    scope: &Scope,
    before: &v1::Configuration,
    after: &v1::Configuration,
) -> Option<String> {
    if before.regions != after.regions {
        return Some("a region, which all pools share".into());
    }
    if (&before.hash_key, before.balancers) != (&after.hash_key, after.balancers) {
        return Some("all pools".into());
    }
    if before.vips != after.vips {
        return Some("a range of VIPs, which is no pool's".into());
    }
    let is_other = |name: &&str| !scope.has_pool(name);
    let changed = differing(&before.pools, &after.pools, |pool| &pool.name);
    if let Some(pool) = changed.iter().map(|pool| pool.name.as_str()).find(is_other) {
        return Some(format!("pool {pool}"));
    }
    let services = differing(&before.services, &after.services, |service| &service.name);
    let mut served = services.iter().map(|service| service.pool.as_str());
    if let Some(pool) = served.find(is_other) {
        return Some(format!("a service of pool {pool}"));
    }
    let is_within = |it: &v1::Service| it.address.parse().is_ok_and(|vip| scope.has_vip(vip));
    if let Some(service) = services.iter().find(|it| !is_within(it)) {
        return Some(format!("service {} at {}", service.name, service.address));
    }
    let checks = differing(&before.health_checks, &after.health_checks, |check| &check.name);
    let checked = before.pools.iter().chain(&after.pools).filter(|pool| {
        pool.health_checks.iter().any(|name| checks.iter().any(|check| check.name == *name))
    });
    let other = checked.map(|pool| pool.name.as_str()).find(is_other)?;
    Some(format!("a health check of pool {other}"))
}

/// Objects of either list that the other one does not have as they are.
fn differing<'a, T: PartialEq>(
    before: &'a [T],
    after: &'a [T],
    name: impl Fn(&T) -> &String,
) -> Vec<&'a T> {
    let by_name = |list: &'a [T]| list.iter().map(|it| (name(it).clone(), it)).collect();
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (by_name(before), by_name(after));
    let gone = before.iter().filter(|it| new.get(name(it)) != Some(it));
    let come = after.iter().filter(|it| old.get(name(it)) != Some(it));
    gone.chain(come).collect()
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
