use std::{
    net::IpAddr,
    time::{Duration, SystemTime},
};

use lb_common::abi::member::Accepts;

use lb_base::conditions::Condition;
use lb_health::AgentReport;
use lb_model::{Encapsulation, Endpoint, Name, Protocol, WantedState};

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
    /// State in the packet path.
    pub state: Accepts,
    /// What the operator wants of it.
    pub wanted: WantedState,
    /// Why.
    pub reason: String,
    /// Its next hop, `02:00:00:00:00:01 on eth0`, or why it has none.
    pub next_hop: Result<String, String>,
    /// Largest outer packet towards it, bytes; `None`: it has no next hop.
    pub mtu: Option<u16>,
    /// Since when the state holds, as far as this daemon knows.
    pub since: SystemTime,
    /// Share of its own slots' new connections that it takes now, 0 to 1.
    pub share: f64,
    /// What it says of itself.
    pub report: AgentReport,
    /// Whether it was out of service for longer than the settle time, and so is home to no connection
    /// where its region has somebody else.
    pub marked_out: bool,
}
