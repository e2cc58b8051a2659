//! What `spillway --output json` prints, as far as tests look at it: where the command finds the answer itself, on the host
//! or in the maps, or where it is the command that is tested. For other answers there are messages.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// Reads what a command printed.
///
/// # Errors
/// When it is something else.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).with_context(|| String::from_utf8_lossy(text).into_owned())
}

/// Of `stats`: what the packet path counted.
#[derive(Clone, Debug, Deserialize)]
pub struct Stats {
    /// By verdict.
    pub verdicts: Vec<VerdictStats>,
    /// By service.
    pub services: Vec<ServiceStats>,
    /// By backend.
    pub backends: Vec<BackendStats>,
    /// What is remembered of connections.
    pub remembered: Remembered,
    /// By interface.
    pub interfaces: Vec<InterfaceStats>,
}

impl Stats {
    /// Packets that had a verdict.
    ///
    /// # Errors
    /// When there is no such verdict.
    pub fn packets(&self, verdict: &str) -> Result<u64> {
        let found = self.verdicts.iter().find(|it| it.verdict == verdict);
        found.map(|it| it.packets).with_context(|| format!("no verdict {verdict:?}"))
    }

    /// What was counted of a service.
    ///
    /// # Errors
    /// When there is no such service.
    pub fn service(&self, name: &str) -> Result<&ServiceStats> {
        let found = self.services.iter().find(|it| it.service == name);
        found.with_context(|| format!("no service {name:?} among {:?}", self.services))
    }

    /// What was counted of an interface.
    ///
    /// # Errors
    /// When it is not there.
    pub fn interface(&self, name: &str) -> Result<&InterfaceStats> {
        let found = self.interfaces.iter().find(|it| it.interface == name);
        found.with_context(|| format!("no interface {name:?} among {:?}", self.interfaces))
    }
}

/// Of `stats --component receiver`.
#[derive(Clone, Debug, Deserialize)]
pub struct ReceiverStats {
    /// By verdict.
    pub verdicts: Vec<VerdictStats>,
}

/// Packets under one verdict.
#[derive(Clone, Debug, Deserialize)]
pub struct VerdictStats {
    /// Its name.
    pub verdict: String,
    /// `pass`, `drop`, `transmit` or `redirect`.
    pub action: String,
    /// Packets.
    pub packets: u64,
}

/// Traffic of a service.
#[derive(Clone, Debug, Deserialize)]
pub struct ServiceStats {
    /// Its name.
    pub service: String,
    /// Its address and ports.
    pub endpoint: String,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// SYNs.
    pub connections: u64,
}

/// Traffic of a backend.
#[derive(Clone, Debug, Deserialize)]
pub struct BackendStats {
    /// Its address.
    pub backend: String,
    /// SYNs.
    pub connections: u64,
}

/// What is remembered of connections.
#[derive(Clone, Debug, Deserialize)]
pub struct Remembered {
    /// Cells of the flow table.
    pub flows: Vec<FlowsHeld>,
    /// Pools that may have displaced connections.
    pub pools_with_displaced: Vec<String>,
}

impl Remembered {
    /// How many open connections have a cell.
    pub fn open(&self) -> u64 {
        self.flows.iter().find(|it| it.state == "open").map_or(0, |it| it.held)
    }
}

/// Cells of the flow table with one state.
#[derive(Clone, Debug, Deserialize)]
pub struct FlowsHeld {
    /// The state.
    pub state: String,
    /// Cells.
    pub held: u64,
}

/// What kernel and driver counted of an interface.
#[derive(Clone, Debug, Deserialize)]
pub struct InterfaceStats {
    /// Its name.
    pub interface: String,
    /// Name of the driver.
    pub driver: String,
    /// Whether redirected frames may leave by it.
    pub redirect_target: bool,
    /// The kernel's statistics.
    pub link: LinkStats,
    /// The driver's own counters of drops.
    pub driver_drops: Vec<DriverDrops>,
    /// What tracepoints reported.
    pub traced_drops: Vec<TracedDrops>,
}

/// The kernel's statistics of a link.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct LinkStats {
    /// Packets dropped instead of sent.
    pub tx_dropped: u64,
}

/// A driver's counter of drops.
#[derive(Clone, Debug, Deserialize)]
pub struct DriverDrops {
    /// Its name.
    pub counter: String,
    /// Which frames it counts.
    pub stage: String,
    /// Whether the packet program had counted all of them as sent.
    pub after_program: bool,
    /// Frames.
    pub frames: u64,
}

/// What a tracepoint reported.
#[derive(Clone, Debug, Deserialize)]
pub struct TracedDrops {
    /// Its name.
    pub tracepoint: String,
    /// Frames.
    pub frames: u64,
}

/// Of `explain`: what becomes of a packet.
#[derive(Clone, Debug, Deserialize)]
pub struct Explained {
    /// Its service. `None`: it is of none.
    pub service: Option<ExplainedService>,
    /// What was made of each region.
    pub regions: Vec<ExplainedRegion>,
    /// Its verdict.
    pub verdict: String,
    /// The backend that gets it. `None`: none does.
    pub choice: Option<Choice>,
    /// Why, as a sentence.
    pub why: String,
}

impl Explained {
    /// The backend that gets the packet.
    ///
    /// # Errors
    /// When none does.
    pub fn backend(&self) -> Result<IpAddr> {
        self.choice.as_ref().map(|it| it.backend).with_context(|| format!("none chosen: {self:?}"))
    }
}

/// A service that a packet is of.
#[derive(Clone, Debug, Deserialize)]
pub struct ExplainedService {
    /// Its name.
    pub name: String,
}

/// What was made of a region.
#[derive(Clone, Debug, Deserialize)]
pub struct ExplainedRegion {
    /// The outcome, as `full`.
    pub outcome: String,
}

/// The backend that gets a packet.
#[derive(Clone, Debug, Deserialize)]
pub struct Choice {
    /// Its address.
    pub backend: IpAddr,
    /// Its region.
    pub region: Option<String>,
}

/// Of `status`, where it is not the daemon of this host that is asked.
#[derive(Clone, Debug, Deserialize)]
pub struct Status {
    /// Generation in force.
    pub generation: u64,
    /// Backends.
    pub backends: Vec<Backend>,
    /// Pools in a remap.
    pub settling: Vec<SettlingPool>,
    /// What is wrong.
    pub conditions: Vec<Condition>,
}

/// A backend of a pool.
#[derive(Clone, Debug, Deserialize)]
pub struct Backend {
    /// Its address.
    pub address: String,
    /// Its state, as `up`.
    pub state: String,
    /// Why it has that, in words.
    pub text: String,
    /// Whether its next hop has a MAC.
    pub next_hop_resolved: bool,
}

/// A pool in a remap.
#[derive(Clone, Debug, Deserialize)]
pub struct SettlingPool {
    /// When it is over.
    pub ends_at: Option<String>,
}

/// Something that is wrong with a daemon.
#[derive(Clone, Debug, Deserialize)]
pub struct Condition {
    /// What it is about.
    pub subject: String,
    /// It as a sentence.
    pub text: String,
}

/// Of `doctor`: what was found on a host.
#[derive(Clone, Debug, Deserialize)]
pub struct Diagnosis {
    /// Components with programs on the host.
    pub components: Vec<String>,
    /// What each check found.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Findings of a check.
    pub fn of_check(&self, check: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |it| it.check == check)
    }
}

/// What a check of `doctor` found.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    /// Name of the check.
    pub check: String,
    /// `ok`, `warning` or `problem`.
    pub level: String,
    /// What was checked.
    pub subject: String,
    /// Its state.
    pub found: String,
    /// Why that matters. Empty: it is in order.
    #[serde(default)]
    pub why: String,
    /// Commands that fix it.
    pub mend: Vec<String>,
    /// Another command.
    pub or: Option<String>,
}

impl Finding {
    /// Check, level and subject.
    pub fn head(&self) -> (&str, &str, &str) {
        (&self.check, &self.level, &self.subject)
    }

    /// The first command that fixes it.
    ///
    /// # Errors
    /// When there is none.
    pub fn first_command(&self) -> Result<&str> {
        self.mend.first().map(String::as_str).with_context(|| format!("no command: {self:?}"))
    }
}

/// Of commands that change the configuration.
#[derive(Clone, Debug, Deserialize)]
pub struct Changed {
    /// Generation in force.
    pub generation: u64,
    /// Whether it is only what would change.
    pub dry_run: bool,
    /// What changed.
    pub changes: Vec<Value>,
    /// What balancers of a fleet have in force. Empty: the balancer is alone.
    #[serde(default)]
    pub balancers: Vec<InForce>,
}

/// What a balancer of a fleet has in force after a change.
#[derive(Clone, Debug, Deserialize)]
pub struct InForce {
    /// Its generation. `None`: unknown.
    pub generation: Option<u64>,
}

/// Of `fleet status`: what the command concludes from the API's answer.
#[derive(Clone, Debug, Deserialize)]
pub struct FleetReport {
    /// What is wrong.
    pub problems: Vec<FleetProblem>,
    /// Balancers that understand no later schema revision although others do.
    pub held_back_by: Vec<String>,
}

/// Something that is wrong with a fleet.
#[derive(Clone, Debug, Deserialize)]
pub struct FleetProblem {
    /// The balancer. `None`: it is the whole fleet's.
    pub balancer: Option<String>,
    /// What it is about, as `silent`.
    pub reason: String,
    /// It as a sentence.
    pub text: String,
}

/// Of `diff`.
#[derive(Clone, Debug, Deserialize)]
pub struct Difference {
    /// Whether there is any.
    pub different: bool,
    /// The later generation.
    pub to: u64,
}

/// Of `history`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct History {
    /// The newest first.
    pub generations: Vec<Generation>,
}

/// A generation of the history.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Generation {
    /// Its number.
    pub number: u64,
    /// Who applied it.
    pub who: String,
    /// Why.
    pub why: String,
    /// Whether it is in force.
    pub current: bool,
    /// Whether it is the balancer's own, from before it joined its fleet.
    pub before_fleet: bool,
}

/// Of `fleet restore`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Restored {
    /// The new generation of the fleet.
    pub fleet_generation: u64,
}

/// Of `backend get`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Weighted {
    /// Its weight.
    pub weight: u32,
}

/// Of `regions`, which reads the maps without the daemon too.
#[derive(Clone, Debug, Deserialize)]
pub struct Regions {
    /// Time that rates are of. `None`: totals are shown.
    pub interval_seconds: Option<f64>,
    /// Why the daemon could not be asked. `None`: it answered.
    pub daemon: Option<String>,
    /// Balancers that share the capacities. `None`: unknown.
    pub balancers: Option<u32>,
    /// By pool.
    pub pools: Vec<PoolRegions>,
}

/// Regions of a pool.
#[derive(Clone, Debug, Deserialize)]
pub struct PoolRegions {
    /// Its regions in the order in which they are asked.
    pub regions: Vec<RegionRow>,
}

/// A pool's region.
#[derive(Clone, Debug, Deserialize)]
pub struct RegionRow {
    /// Name.
    pub region: String,
    /// Capacity. `None`: only the daemon knows it.
    pub capacity: Option<RegionCapacity>,
    /// This balancer's portion of it, a second.
    pub limit_per_second: Option<f64>,
    /// New connections since the region was made.
    pub totals: Connections<u64>,
    /// New connections a second.
    pub per_second: Option<Connections<f64>>,
    /// What was admitted as a share of the limit.
    pub utilisation: Option<f64>,
    /// Backends that it needs more. `None`: unknown.
    pub missing_backends: Option<u32>,
}

/// Capacity of a region.
#[derive(Clone, Debug, Deserialize)]
pub struct RegionCapacity {
    /// As configured.
    pub configured_per_second: Option<f64>,
    /// What there is now.
    pub per_second: Option<f64>,
    /// Backends that can have new connections.
    pub backends_up: u32,
}

/// New connections of a region.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Connections<T> {
    /// It was asked for.
    pub offered: T,
    /// It took.
    pub admitted: T,
    /// It took for nearer regions.
    pub overflow_in: T,
    /// Other regions took.
    pub overflow_out: T,
    /// Nobody took.
    pub refused: T,
    /// It took beyond its limit.
    pub over_capacity: T,
}
