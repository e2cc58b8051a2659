//! The fleet on the status page.

use std::time::Duration;

use lb_model::Name;
use serde::Serialize;

use crate::metrics::FleetFacts;
use lb_member::{GroupShares, MemberStatus};

/// A fleet as this balancer sees it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fleet {
    fleet: String,
    /// This balancer's name in it.
    balancer: String,
    /// Of etcd, when it was last read.
    generation: u64,
    /// Of etcd, when it was last read.
    revision: i64,
    revision_in_force: i64,
    /// What is wrong with etcd.
    etcd_problem: Option<String>,
    /// Why etcd is not followed.
    conflict: Option<String>,
    epoch: u64,
    epoch_open: bool,
    being_forgotten: Vec<String>,
    balancers: Vec<FleetBalancer>,
    groups: Vec<SharedGroup>,
}

#[derive(Clone, Debug, Serialize)]
struct FleetBalancer {
    name: String,
    address: String,
    region: Option<String>,
    alive: bool,
    ready: bool,
    /// Empty: unknown.
    version: String,
    /// The latest schema revision that it understands.
    schema: Option<u32>,
    /// 0: none, or unknown.
    revision: i64,
    /// 0: none, or unknown.
    generation: u64,
    /// The balancer whose tables its own are compared with; `None`: they cannot be compared.
    compared_with: Option<String>,
    /// Whether they are equal. Which pools differ, `spillway fleet status` asks the others.
    tables_agree: Option<bool>,
    conditions: Vec<String>,
    /// Since its last message to this balancer.
    heard_ms_ago: Option<u64>,
    /// Why messages to it or from it are not taken.
    peer_problem: Option<String>,
}

/// How the capacity of a group is shared.
#[derive(Clone, Debug, Serialize)]
struct SharedGroup {
    pool: String,
    region: String,
    /// New connections a second; `None`: no limit, or not known.
    capacity: Option<f64>,
    capacity_unknown: bool,
    /// What this balancer gave to others, and is not known to have arrived; 0 to 1.
    in_flight: f64,
    shares: Vec<Share>,
}

#[derive(Clone, Debug, Serialize)]
struct Share {
    balancer: String,
    /// 0 to 1.
    portion: f64,
    /// New connections a second that it is offered.
    demand: f64,
}

impl From<&FleetFacts> for Fleet {
    fn from(facts: &FleetFacts) -> Self {
        let status = &facts.status;
        let balancers = status.members.iter();
        let groups = status.groups.iter();
        Self {
            fleet: facts.fleet.to_string(),
            balancer: facts.balancer.to_string(),
            generation: status.generation,
            revision: status.revision,
            revision_in_force: status.revision_in_force,
            etcd_problem: status.etcd_problem.as_ref().map(|(problem, _)| problem.clone()),
            conflict: status.conflict.clone(),
            epoch: status.epoch,
            epoch_open: status.epoch_open,
            being_forgotten: status.being_forgotten.iter().map(ToString::to_string).collect(),
            balancers: balancers.map(|(name, it)| FleetBalancer::new(name, it)).collect(),
            groups: groups.map(|(group, shares)| SharedGroup::new(group, shares)).collect(),
        }
    }
}

impl FleetBalancer {
    fn new(name: &Name, status: &MemberStatus) -> Self {
        let in_force = status.liveness.as_ref();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            name: name.to_string(),
            address: status.member.address.to_string(),
            region: status.member.region.as_ref().map(ToString::to_string),
            alive: status.is_alive,
            ready: status.is_ready,
            version: status.version.clone(),
            schema: status.schema,
            revision: in_force.map_or(0, |it| it.revision),
            generation: in_force.map_or(0, |it| it.generation),
            compared_with: status.compared_with.as_ref().map(ToString::to_string),
            tables_agree: status.tables_agree,
            conditions: status.conditions.clone(),
            heard_ms_ago: status.heard_ago.map(milliseconds),
            peer_problem: status.peer_problem.clone(),
        }
    }
}

impl SharedGroup {
    fn new((pool, region): &(Name, Name), shares: &GroupShares) -> Self {
        let share = |(balancer, (parts, demand)): (&Name, &(lb_sharing::Parts, f64))| Share {
            balancer: balancer.to_string(),
            portion: parts.fraction(),
            demand: *demand,
        };
        Self {
            pool: pool.to_string(),
            region: region.to_string(),
            capacity: shares.capacity_per_second(),
            capacity_unknown: shares.capacity.is_none(),
            in_flight: shares.in_flight.fraction(),
            shares: shares.shares.iter().map(share).collect(),
        }
    }
}
