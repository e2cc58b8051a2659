//! What tests look for in answers of the API. A part that has to be there fails with the parts that are there instead.

use anyhow::{Context as _, Result};
use spillway_proto::v1::{BackendStatus, FleetMember, FleetStatus, SharedGroup, StatusResponse};

/// How a backend is, in the first pool that has its address.
///
/// # Errors
/// When no pool has it.
pub fn backend<'a>(status: &'a StatusResponse, address: &str) -> Result<&'a BackendStatus> {
    let mut backends = status.backends.iter();
    backends.find(|it| it.address == address).with_context(|| {
        let others: Vec<_> = status.backends.iter().map(|it| &it.address).collect();
        format!("no backend {address} among {others:?}")
    })
}

/// Why a backend has its state, in words.
pub fn reason(backend: &BackendStatus) -> &str {
    backend.reason.as_ref().map_or("", |reason| &reason.text)
}

/// What is wrong with a subject, in words.
pub fn condition<'a>(status: &'a StatusResponse, subject: &str) -> Option<&'a str> {
    let mut conditions = status.conditions.iter();
    conditions.find(|it| it.subject == subject).map(|it| it.text.as_str())
}

/// A balancer of a fleet.
///
/// # Errors
/// When it is no member.
pub fn member<'a>(status: &'a FleetStatus, name: &str) -> Result<&'a FleetMember> {
    status.members.iter().find(|it| it.name == name).with_context(|| {
        let others: Vec<_> = status.members.iter().map(|it| &it.name).collect();
        format!("no member {name:?} among {others:?}")
    })
}

/// A shared capacity of a fleet.
///
/// # Errors
/// When there is none of this pool in this region.
pub fn shared_group<'a>(
    status: &'a FleetStatus,
    pool: &str,
    region: &str,
) -> Result<&'a SharedGroup> {
    let mut groups = status.groups.iter();
    groups.find(|it| it.pool == pool && it.region == region).with_context(|| {
        let others: Vec<_> = status.groups.iter().map(|it| (&it.pool, &it.region)).collect();
        format!("no group of pool {pool} in {region} among {others:?}")
    })
}
