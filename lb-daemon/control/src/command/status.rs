use std::{
    net::IpAddr,
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use lb_common::abi::limiter::LimitWord;

use lb_base::conditions::Condition;
use lb_health::Said as AgentReport;
use lb_model::{
    AdminState, Encapsulation, Endpoint, MemberState, Name, Protocol,
    capacity::{self, Capacity, Rates, Reading},
};

/// The daemon and all it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Version of the daemon.
    pub version: &'static str,
    /// Region it stands in.
    pub region: Option<Name>,
    /// Generation in force; 0 before the first apply.
    pub generation: u64,
    /// When it was applied.
    pub applied_at: Option<SystemTime>,
    /// Digest over what packets are decided by, read from the maps.
    pub checksum: u64,
    /// Why the packet path is not at the generation; `None`: it is.
    pub behind: Option<String>,
    /// Interfaces with the packet program.
    pub interfaces: Vec<InterfaceStatus>,
    /// Backends by pool.
    pub backends: Vec<BackendStatus>,
    /// Services by name.
    pub services: Vec<ServiceStatus>,
    /// Pools in a remap, by name.
    pub settling: Vec<SettlingStatus>,
    /// What else is wrong, though the daemon goes on.
    pub conditions: Vec<Condition>,
    /// Changed settings that wait for the next start of the daemon, by name.
    pub waiting_settings: Vec<String>,
    /// Time since the daemon started.
    pub uptime: Duration,
}

/// An interface that packets come in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceStatus {
    /// Name.
    pub name: String,
    /// `native` or `generic`, as the kernel reports it now; `None`: the program is not there.
    pub mode: Option<String>,
}

/// A service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Name.
    pub name: Name,
    /// Address and ports.
    pub endpoint: Endpoint,
    /// Protocol.
    pub protocol: Protocol,
    /// Pool.
    pub pool: Name,
    /// Backends that can have new connections: up, of some weight, their next hop resolved.
    pub backends_up: usize,
    /// Backends of the pool.
    pub backends: usize,
    /// How its packets get to them.
    pub encapsulation: Encapsulation,
}

/// A pool in a remap: its open connections stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlingStatus {
    /// Pool.
    pub pool: Name,
    /// When the first change was, as far as this daemon knows.
    pub since: SystemTime,
    /// When those that would be elsewhere otherwise begin to be remembered one by one.
    pub adopts_at: SystemTime,
    /// When what home meant before is forgotten.
    pub ends_at: SystemTime,
    /// Whether they are remembered one by one now.
    pub adopting: bool,
}

/// A backend in a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendStatus {
    /// Pool.
    pub pool: Name,
    /// Address.
    pub address: IpAddr,
    /// Region.
    pub region: Name,
    /// Its state.
    pub state: MemberState,
    /// What the operator asks for.
    pub admin_state: AdminState,
    /// Why.
    pub reason: String,
    /// Its next hop, `02:00:00:00:00:01 on eth0`, or why it has none.
    pub next_hop: Result<String, String>,
    /// Largest outer packet towards it, bytes; `None`: it has no next hop.
    pub mtu: Option<u16>,
    /// What of that ICMP errors taught. `None`: nothing.
    pub path_mtu: Option<u16>,
    /// Since when the state holds, as far as this daemon knows.
    pub since: SystemTime,
    /// Share of its own slots' new connections that it takes now, 0 to 1.
    pub share: f64,
    /// What it says of itself.
    pub agent_report: AgentReport,
    /// Whether it was out of service for longer than the settle time, and so is home to no connection
    /// where its region has somebody else.
    pub marked_out: bool,
}

/// What has become of a backend in its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendHistory {
    /// The pool.
    pub pool: Name,
    /// The backend.
    pub address: IpAddr,
    /// Its last changes, the newest first.
    pub changes: Vec<StateChange>,
}

/// A state from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// When it came.
    pub at: SystemTime,
    /// The state.
    pub state: MemberState,
    /// Why it came.
    pub reason: Box<str>,
}

/// Demand against capacity, region by region.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Time that the rates are of, about the last second; `None`: the daemon has not looked twice yet.
    pub window: Option<Duration>,
    /// Balancers that share the capacities; `None`: the stored configuration cannot be used.
    pub balancers: Option<NonZeroU32>,
    /// By pool, and within a pool in the order in which they are asked.
    pub regions: Vec<GroupStatus>,
}

/// A pool's backends in one region.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupStatus {
    /// Pool.
    pub pool: Name,
    /// Region.
    pub region: Name,
    /// How the packet path has it.
    pub reading: Reading,
    /// Whether it was out of service for longer than the settle time, and so is asked last.
    pub marked_out: bool,
    /// What was counted in the window, a second; `None`: the group is newer than that.
    pub rates: Option<Rates>,
}

/// What a region can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Its capacity, over all balancers.
    pub capacity: Capacity,
    /// This balancer's limit.
    pub limit: LimitWord,
    /// Backends that can have new connections.
    pub backends_up: usize,
    /// Whether it is asked last.
    pub marked_out: bool,
}

impl GroupStatus {
    /// What it can take now.
    pub fn offer(&self) -> Offer {
        Offer {
            capacity: self.reading.capacity(),
            limit: self.reading.limit,
            backends_up: self.backends_up(),
            marked_out: self.marked_out,
        }
    }

    /// Backends that can have new connections: healthy, of some weight.
    pub fn backends_up(&self) -> usize {
        self.reading.members.iter().filter(|member| member.weighted && member.healthy).count()
    }

    /// Share of the limit that was used in the window; `None`: that is not known, or no number.
    pub fn utilisation(&self) -> Option<f64> {
        capacity::utilisation(&self.rates?, self.limit())
    }

    /// Backends that are missing for the demand in the window; `None`: that is not known.
    pub fn missing_backends(&self) -> Option<u32> {
        capacity::missing_backends(&self.rates?, self.limit(), self.reading.gain())
    }

    /// This balancer's limit a second; `None`: there is none.
    fn limit(&self) -> Option<f64> {
        capacity::per_second(self.reading.limit)
    }
}
