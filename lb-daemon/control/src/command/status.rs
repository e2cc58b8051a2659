use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use lb_common::abi::limiter::LimitWord;

use super::OverridesInForce;
use lb_base::conditions::Condition;
use lb_health::AgentReport;
use lb_model::{
    AdminState, Encapsulation, Endpoint, MemberState, Name, Protocol, StateReason,
    capacity::{self, Capacity, GroupReading, Rates},
    overrides::Key,
};
use lb_publish::reconcile::InterfaceStatus;

/// The daemon and everything it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub version: &'static str,
    /// The daemon's own region.
    pub region: Option<Name>,
    /// 0 before the first apply.
    pub generation: u64,
    pub applied_at: Option<SystemTime>,
    /// Digest over what the packet path decides by, read back from the maps.
    pub checksum: u64,
    /// Why the packet path is not at the generation; `None` if it is.
    pub behind: Option<String>,
    /// Interfaces with the packet program.
    pub interfaces: Vec<InterfaceStatus>,
    /// By pool, sorted by name.
    pub pools: Vec<Arc<PoolBackends>>,
    /// Sorted by name.
    pub services: Vec<ServiceStatus>,
    /// Pools in a remap, by name.
    pub settling: Vec<SettlingStatus>,
    /// Other problems that the daemon works with.
    pub conditions: Vec<Condition>,
    pub overrides: OverridesInForce,
    /// Why the stored configuration cannot be used; `None` if it is in force.
    pub unusable: Option<String>,
    /// Names of changed settings that need a restart.
    pub waiting_settings: Vec<String>,
    pub uptime: Duration,
}

impl Status {
    /// All backends, sorted by pool.
    pub fn backends(&self) -> impl Iterator<Item = &BackendStatus> + Clone {
        self.pools.iter().flat_map(|pool| &pool.backends)
    }
}

/// The backends of a pool. All who ask share them until one changes.
#[derive(Debug)]
pub struct PoolBackends {
    pub pool: Name,
    /// Sorted by address.
    pub backends: Vec<BackendStatus>,
    /// How many of them get new connections: up, with a weight and a next hop.
    pub serving: usize,
    encoded: OnceLock<Vec<Arc<[u8]>>>,
}

impl PoolBackends {
    pub(crate) fn new(pool: Name, backends: Vec<BackendStatus>, serving: usize) -> Self {
        Self { pool, backends, serving, encoded: OnceLock::new() }
    }

    /// What `encode` makes of the backends, a thousand at a time, when this is called first.
    pub fn encoded(&self, encode: impl Fn(&[BackendStatus]) -> Vec<u8>) -> &[Arc<[u8]>] {
        let parts = || self.backends.chunks(1000).map(|part| encode(part).into()).collect();
        self.encoded.get_or_init(parts)
    }
}

impl PartialEq for PoolBackends {
    fn eq(&self, other: &Self) -> bool {
        (&self.pool, &self.backends) == (&other.pool, &other.backends)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceStatus {
    pub name: Name,
    pub endpoint: Endpoint,
    pub protocol: Protocol,
    pub pool: Name,
    /// Backends that get new connections: up, with a weight and a next hop.
    pub backends_up: usize,
    pub backends: usize,
    pub encapsulation: Encapsulation,
    pub slots: u32,
}

/// A pool in a remap, during which its open connections stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlingStatus {
    pub pool: Name,
    /// When the first change was made, as far as this daemon knows.
    pub since: SystemTime,
    /// When the previous home is forgotten, unless another change comes.
    pub ends_at: SystemTime,
    /// Whether changes have kept it from its end for three settle times: no further backend is marked out meanwhile, and the
    /// next change of the configuration that moves homes of the pool ends it.
    pub overdue: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BackendStatus {
    pub pool: Name,
    pub address: IpAddr,
    pub region: Name,
    pub state: MemberState,
    pub admin_state: AdminState,
    pub reason: StateReason,
    /// Like `02:00:00:00:00:01 on eth0`, or why there is none.
    pub next_hop: Result<String, String>,
    /// Largest outer packet that the path carries, bytes; `None` without a next hop.
    pub mtu: Option<u16>,
    /// Source of its tunnels, or the prefix that they have theirs from; `None` without a next hop or a tunnel.
    pub tunnel_source: Option<String>,
    /// Since when the state holds, as far as this daemon knows.
    pub since: SystemTime,
    /// As configured.
    pub weight: u32,
    /// Share of its own slots' new connections that it gets now, 0 to 1.
    pub share: f64,
    pub agent_report: AgentReport,
    /// Whether it was out of service for longer than the settle time, and so is home to no connection while
    /// its region has another available backend.
    pub marked_out: bool,
    /// How much longer it is held down.
    pub hold_left: Option<Duration>,
    /// The overrides that act on it.
    pub overrides: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHistory {
    pub pool: Name,
    pub address: IpAddr,
    /// The newest first.
    pub changes: Vec<StateChange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub at: SystemTime,
    pub state: MemberState,
    pub reason: StateReason,
}

/// Demand and capacity of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Time over which the rates were measured, about a second; `None` until the counters were read twice.
    pub window: Option<Duration>,
    /// Balancers that share the capacities, as configured; `None` if the stored configuration cannot be used. In a fleet
    /// they own portions instead, which each group's reading has.
    pub balancers: Option<NonZeroU32>,
    /// Sorted by pool; a pool's groups in the order in which regions are used.
    pub regions: Vec<GroupStatus>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupStatus {
    pub pool: Name,
    pub region: Name,
    /// What the packet path holds of the group, with its settings under overrides and this balancer's portion.
    pub reading: GroupReading,
    /// Whether the region was out of service for longer than the settle time, and so is used last.
    pub marked_out: bool,
    /// Counts per second in the window; `None` if the group is newer than that.
    pub rates: Option<Rates>,
}

/// What a group can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Over all balancers.
    pub capacity: Capacity,
    /// This balancer's limit.
    pub limit: LimitWord,
    /// Backends that get new connections.
    pub backends_up: usize,
    pub marked_out: bool,
}

impl GroupStatus {
    pub fn offer(&self) -> Offer {
        Offer {
            capacity: self.reading.capacity(),
            limit: self.reading.limit,
            backends_up: self.backends_up(),
            marked_out: self.marked_out,
        }
    }

    /// Healthy backends that have a weight.
    pub fn backends_up(&self) -> usize {
        self.reading.members.iter().filter(|member| member.weighted && member.healthy).count()
    }

    /// Share of the limit that was used in the window; `None` if unknown or not a number.
    pub fn utilisation(&self) -> Option<f64> {
        capacity::utilisation(&self.rates?, self.limit())
    }

    /// Backends missing for the demand in the window, if known.
    pub fn missing_backends(&self) -> Option<u32> {
        capacity::missing_backends(&self.rates?, self.limit(), self.reading.gain())
    }

    /// This balancer's limit per second, if there is one.
    fn limit(&self) -> Option<f64> {
        capacity::per_second(self.reading.limit)
    }
}
