//! What the maps should say, worked out from configuration and ids alone: no map is read or written
//! here, and equal input gives equal plans.

mod build;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use lb_common::abi::{form::Form, service::ServiceKey};
use serde::{Deserialize, Serialize};

pub use build::{PlanError, PlanInputs, build, regions};

use crate::{
    Affinity, GroupSettings, Ipv4Prefix, Name, Rate, Unserved,
    ids::BackendId,
    maglev::{TableId, TableSpec},
};

/// What of a pool was out of service for so long that it is nobody's home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkedOut {
    /// Members: home is the next of a slot's list that is not.
    pub members: BTreeSet<IpAddr>,
    /// Regions: they are asked last.
    pub regions: BTreeSet<Name>,
}

impl MarkedOut {
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.regions.is_empty()
    }
}

/// What the maps should say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Services by what packets are looked up as: a service has an entry for each of its ports.
    pub services: BTreeMap<ServiceKey, PlannedService>,
    /// VIPs of services, and what the configuration says of packets for them that no service takes.
    pub unserved: BTreeMap<IpAddr, Unserved>,
    /// Pools by index, whether a service names them or not: a pool's health is known before its
    /// first packet. A pool that stays as it is stays the same allocation.
    pub pools: BTreeMap<u32, Arc<PlannedPool>>,
    /// Backends by address; the same allocation while none changes.
    pub backends: Arc<BTreeMap<IpAddr, PlannedBackend>>,
    /// The tables that groups name. Groups with the same members and weights share one.
    pub tables: BTreeMap<TableId, Arc<TableSpec>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedService {
    /// Index of its counters.
    pub index: u32,
    /// Index of its pool.
    pub pool: u32,
    /// What packets are hashed by.
    pub affinity: Affinity,
    /// Whether fragments are forwarded.
    pub fragments: bool,
    /// Whether a new connection is dropped where every group is full.
    pub rejects: bool,
    /// How long a flow without packets is remembered; `None`: no flow is.
    pub tracked: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPool {
    pub name: Name,
    /// Key of its flow hash.
    pub hash_key: [u64; 2],
    /// The prefix that each flow has a source of IPv4 tunnels from; `None`: they have that of the next hop.
    pub source_prefix: Option<Ipv4Prefix>,
    /// Its groups in the order in which they are asked; none where it has no member with a weight.
    pub groups: Vec<PlannedGroup>,
    /// Members of regions in which none has a weight, or which its packets never ask: they have a
    /// state, and stand in no group.
    pub idle: BTreeSet<IpAddr>,
    /// Balancers that share its capacities.
    pub balancers: NonZeroU32,
    /// Whether a new connection leaves a group only where nobody there may have it, not where it is
    /// full.
    pub isolated: bool,
    /// Whether members may become a last resort.
    pub panics: bool,
    /// How packets get to its backends.
    pub form: Form,
}

impl PlannedPool {
    /// Whether some group or member of it has a limit.
    pub fn is_limited(&self) -> bool {
        self.groups.iter().any(|group| {
            group.settings != GroupSettings::default()
                || group.members.iter().any(|member| member.rate.is_some())
        })
    }
}

/// A pool's members in one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedGroup {
    /// The region.
    pub name: Name,
    /// Its index.
    pub region: u32,
    pub table: TableId,
    /// Slots of that table.
    pub slots: u32,
    /// What its capacity is worked out from, beside its members.
    pub settings: GroupSettings,
    /// Its members by rank.
    pub members: Vec<PlannedMember>,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedMember {
    pub address: IpAddr,
    /// Its backend's number.
    pub id: BackendId,
    /// Whether it has a weight: without one it stands in no slot and is no standby.
    pub weighted: bool,
    /// Limit of its own, over all balancers.
    pub rate: Option<Rate>,
    /// Whether it is marked out.
    pub out: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedBackend {
    /// Its number.
    pub id: BackendId,
    /// Largest outer packet towards it, bytes; `None`: what the route allows.
    pub mtu: Option<u16>,
}
