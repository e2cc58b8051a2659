//! What the status page shows, as it asks for it.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    time::{SystemTime, UNIX_EPOCH},
};

use lb_common::abi::verdict::Verdict;
use serde::Serialize;

use super::fleet::Fleet;
use crate::metrics::Facts;
use lb_base::conditions::ConditionReason;
use lb_control::command::{BackendHistory, BackendStatus, GroupStatus, ServiceStatus, StateChange};
use lb_health::Utilisation;
use lb_inspect::stats::{EventStats, FlowsHeld, ServiceStats, Traffic, VerdictStats, sentence};
use lb_model::{
    Name,
    capacity::{self, Connections, Rates},
    overrides::{self, Key},
};
use lb_store::HistoryEntry;

/// Backends that are all told where no pool is asked for.
const FEW: usize = 500;

/// A balancer at one moment. Times are milliseconds of the Unix epoch.
#[derive(Clone, Debug, Serialize)]
pub(in crate::http) struct Data {
    at: u64,
    /// Its name in the fleet, else that of the host; `None`: it has none.
    balancer: Option<String>,
    version: &'static str,
    region: Option<String>,
    generation: u64,
    applied_at: Option<u64>,
    started_at: u64,
    checksum: String,
    /// Why the packet path is not at the generation.
    behind: Option<String>,
    /// What else is wrong, a line each.
    conditions: Vec<String>,
    /// Changed settings that wait for the next start of the daemon.
    waiting_settings: Vec<String>,
    interfaces: Vec<Interface>,
    balancers: u32,
    /// `None`: it is no member of one.
    fleet: Option<Fleet>,
    /// Services of which no backend takes new connections, by name.
    dead_services: Vec<DeadService>,
    /// Time that rates are of.
    window_seconds: Option<f64>,
    pools: Vec<Pool>,
    overrides: Vec<Override>,
    /// The last generations, the newest first.
    generations: Vec<Generation>,
    verdicts: Vec<Fate>,
    /// Cells of the flow table.
    flows: Vec<FlowsHeld>,
    flow_room: u64,
    events: Vec<EventStats>,
}

#[derive(Clone, Debug, Serialize)]
struct Generation {
    number: u64,
    applied_at: Option<u64>,
    who: String,
    why: String,
    changes: Option<u64>,
    /// Why it cannot be used.
    unusable: Option<String>,
}

/// An override in force.
#[derive(Clone, Debug, Serialize)]
struct Override {
    name: String,
    /// What it is about, and what it asks, as `pool web: backend 192.0.2.1` and `weight 30 %`.
    target: String,
    action: String,
    who: String,
    reason: String,
    set_at: u64,
    until: Option<u64>,
    /// Since when there is no such object.
    absent_since: Option<u64>,
    /// Whether it is of this balancer alone, and not of its fleet.
    local: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Interface {
    name: String,
    mode: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Pool {
    pool: String,
    settling: bool,
    has_displaced: bool,
    services: Vec<Service>,
    /// In the order in which they are asked.
    regions: Vec<Region>,
    backends: usize,
    backends_up: usize,
    /// The backends; `None`: there are many, and nobody asked for those of this pool.
    members: Option<Vec<Member>>,
}

#[derive(Clone, Debug, Serialize)]
struct Service {
    service: String,
    endpoint: String,
    protocol: String,
    /// Those that take new connections; `None`: the configuration in force has another service.
    backends_up: Option<usize>,
    backends: Option<usize>,
    #[serde(flatten)]
    traffic: Traffic,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct DeadService {
    service: String,
    endpoint: String,
    protocol: String,
    pool: String,
    backends: usize,
}

/// New connections a second, unless it says otherwise.
#[derive(Clone, Debug, Serialize)]
struct Region {
    region: String,
    /// This balancer's; `None`: no limit.
    limit: Option<f64>,
    /// Over all balancers; `None`: no limit.
    capacity: Option<f64>,
    /// This balancer's part of the capacity, 0 to 1.
    portion: f64,
    scaler: f64,
    backends: usize,
    backends_up: usize,
    marked_out: bool,
    missing_backends: Option<u32>,
    /// Not known before two looks.
    rates: Option<Rates>,
    totals: Connections<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct Member {
    address: String,
    region: String,
    state: &'static str,
    reason: String,
    next_hop: String,
    next_hop_resolved: bool,
    marked_out: bool,
    /// Of its own new connections; 0: it takes none.
    share: f64,
    utilisation: Option<f64>,
    /// Why what it says of itself cannot be had.
    report_error: Option<String>,
    since: u64,
    /// Its last changes, the newest first, which is what holds now.
    history: Vec<Change>,
    #[serde(flatten)]
    traffic: Traffic,
}

#[derive(Clone, Debug, Serialize)]
struct Change {
    at: u64,
    state: &'static str,
    reason: String,
}

#[derive(Clone, Debug, Serialize)]
struct Fate {
    #[serde(flatten)]
    counted: VerdictStats,
    meaning: String,
}

impl Data {
    /// What of the facts is shown, with the backends of one pool, or of all where they are few.
    pub(super) fn new(facts: &Facts, wanted: Option<&str>) -> Self {
        let Facts { stats, status, regions, generations, fleet, at, .. } = facts;
        let traffic: HashMap<&str, Traffic> =
            stats.backends.iter().map(|b| (b.backend.as_str(), b.traffic)).collect();
        let states: HashMap<&str, &ServiceStatus> =
            status.services.iter().map(|it| (it.name.as_str(), it)).collect();
        let mut pools: Vec<Pool> = Vec::new();
        for region in &regions.regions {
            match pools.last_mut().filter(|pool| pool.pool == region.pool.as_str()) {
                Some(pool) => pool.regions.push(region.into()),
                None => pools.push(Pool::new(region)),
            }
        }
        for pool in &mut pools {
            pool.backends = pool.regions.iter().map(|region| region.backends).sum();
            pool.backends_up = pool.regions.iter().map(|region| region.backends_up).sum();
            let is_it = |name: &Name| name.as_str() == pool.pool;
            let services = stats.services.iter().filter(|service| service.pool == pool.pool);
            pool.services = services.map(|it| Service::new(it, states.get(&*it.service))).collect();
            pool.settling = status.settling.iter().any(|settling| is_it(&settling.pool));
            pool.has_displaced = stats.remembered.pools_with_displaced.contains(&pool.pool);
            let all = wanted.is_none() && status.backends().count() <= FEW;
            let told = all || wanted.is_some_and(|wanted| wanted == pool.pool);
            let members = status.pools.iter().find(|pool| is_it(&pool.pool));
            let members = members.into_iter().flat_map(|pool| &pool.backends);
            pool.members = told.then(|| members.map(|b| Member::new(b, &traffic)).collect());
        }
        Self {
            at: milliseconds(*at),
            balancer: fleet.as_ref().map(|it| it.balancer.to_string()).or_else(host_name),
            version: status.version,
            region: status.region.as_ref().map(ToString::to_string),
            generation: status.generation,
            applied_at: status.applied_at.map(milliseconds),
            started_at: milliseconds(*at - status.uptime),
            checksum: format!("{:016x}", status.checksum),
            behind: status.behind.clone(),
            conditions: status
                .conditions
                .iter()
                // The page has a sentence of its own for it.
                .filter(|condition| condition.reason != ConditionReason::PacketPath)
                .map(|condition| format!("{}: {}", condition.subject, condition.cause))
                .collect(),
            waiting_settings: status.waiting_settings.clone(),
            interfaces: status
                .interfaces
                .iter()
                .map(|i| Interface { name: i.name.clone(), mode: i.mode.clone() })
                .collect(),
            balancers: regions.balancers.map_or(0, NonZeroU32::get),
            fleet: fleet.as_ref().map(Into::into),
            dead_services: dead_services(&status.services),
            window_seconds: regions.window.map(|window| window.as_secs_f64()),
            pools,
            overrides: status.overrides.overrides.iter().map(Into::into).collect(),
            generations: generations
                .iter()
                .rev()
                .filter(|it| !it.is_before_fleet)
                .map(Into::into)
                .collect(),
            verdicts: stats.verdicts.iter().map(Into::into).collect(),
            flows: stats.remembered.flows.clone(),
            flow_room: stats.remembered.room,
            events: stats.remembered.events.clone(),
        }
    }
}

impl Data {
    /// Pools whose backends are told.
    pub(super) fn told(&self) -> Vec<Name> {
        let told = self.pools.iter().filter(|pool| pool.members.is_some());
        told.filter_map(|pool| Name::new(&pool.pool).ok()).collect()
    }

    /// Adds what has become of a pool's backends.
    pub(super) fn remember(&mut self, histories: &[BackendHistory]) {
        let Some(first) = histories.first() else { return };
        let mut pools = self.pools.iter_mut().filter(|pool| pool.pool == first.pool.as_str());
        let Some(members) = pools.find_map(|pool| pool.members.as_mut()) else { return };
        let of: HashMap<String, &[StateChange]> =
            histories.iter().map(|it| (it.address.to_string(), &*it.changes)).collect();
        for member in members {
            let changes = of.get(&member.address).copied().unwrap_or_default();
            member.history = changes.iter().map(Into::into).collect();
        }
    }
}

impl From<(&Key, &overrides::Override)> for Override {
    fn from((key, it): (&Key, &overrides::Override)) -> Self {
        Self {
            name: key.to_string(),
            target: key.target.to_string(),
            action: it.action.to_string(),
            who: it.who.clone(),
            reason: it.reason.clone(),
            set_at: milliseconds(it.set_at),
            until: it.until.map(|until| milliseconds(until.wall)),
            absent_since: it.absent_since.map(|since| milliseconds(since.wall)),
            local: key.is_local(),
        }
    }
}

impl From<&HistoryEntry> for Generation {
    fn from(entry: &HistoryEntry) -> Self {
        Self {
            number: entry.number,
            applied_at: entry.applied_at.map(milliseconds),
            who: entry.who.clone(),
            why: entry.why.clone(),
            changes: entry.changes,
            unusable: entry.unusable.clone(),
        }
    }
}

impl From<&StateChange> for Change {
    fn from(change: &StateChange) -> Self {
        let (at, state) = (milliseconds(change.at), change.state.name());
        Self { at, state, reason: change.reason.to_string() }
    }
}

impl Pool {
    fn new(region: &GroupStatus) -> Self {
        Self {
            pool: region.pool.to_string(),
            settling: false,
            has_displaced: false,
            services: Vec::new(),
            regions: vec![region.into()],
            backends: 0,
            backends_up: 0,
            members: None,
        }
    }
}

impl Service {
    fn new(service: &ServiceStats, status: Option<&&ServiceStatus>) -> Self {
        Self {
            backends_up: status.map(|it| it.backends_up),
            backends: status.map(|it| it.backends),
            service: service.service.clone(),
            endpoint: service.endpoint.clone(),
            protocol: service.protocol.clone(),
            traffic: service.traffic,
        }
    }
}

impl From<&GroupStatus> for Region {
    fn from(status: &GroupStatus) -> Self {
        let reading = &status.reading;
        Self {
            region: status.region.to_string(),
            limit: capacity::per_second(reading.limit),
            capacity: reading.capacity().per_second(),
            portion: reading.portion.fraction(),
            scaler: reading.settings.effective_scaler().share(),
            backends: reading.members.len(),
            backends_up: status.backends_up(),
            marked_out: status.marked_out,
            missing_backends: status.missing_backends(),
            rates: status.rates,
            totals: reading.counters.into(),
        }
    }
}

impl Member {
    fn new(backend: &BackendStatus, traffic: &HashMap<&str, Traffic>) -> Self {
        let (Ok(next_hop) | Err(next_hop)) = &backend.next_hop;
        let address = backend.address.to_string();
        Self {
            region: backend.region.to_string(),
            state: backend.state.name(),
            reason: backend.reason.text.clone(),
            next_hop: next_hop.clone(),
            next_hop_resolved: backend.next_hop.is_ok(),
            marked_out: backend.marked_out,
            share: backend.share,
            utilisation: backend.agent_report.utilisation.map(Utilisation::share),
            report_error: backend.agent_report.report_error.clone(),
            since: milliseconds(backend.since),
            history: Vec::new(),
            traffic: traffic.get(address.as_str()).copied().unwrap_or_default(),
            address,
        }
    }
}

impl From<&VerdictStats> for Fate {
    fn from(counted: &VerdictStats) -> Self {
        let verdict = Verdict::ALL.iter().find(|verdict| verdict.name() == counted.verdict);
        let meaning = verdict.map(|verdict| sentence(verdict.meaning())).unwrap_or_default();
        Self { counted: counted.clone(), meaning }
    }
}

/// From the status, and not from the pools: one without backends has no regions, and is not among those of the page.
fn dead_services(services: &[ServiceStatus]) -> Vec<DeadService> {
    let dead = services.iter().filter(|it| it.backends_up == 0);
    let told = dead.map(|it| DeadService {
        service: it.name.to_string(),
        endpoint: it.endpoint.to_string(),
        protocol: it.protocol.name().into(),
        pool: it.pool.to_string(),
        backends: it.backends,
    });
    told.collect()
}

/// The name of this network node, as `hostname` prints it. It may change while the daemon runs.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty() && name != "(none)")
}

fn milliseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use lb_model::{Encapsulation, Endpoint, Ports, Protocol};

    use super::*;

    fn service(name: &str, backends_up: usize, backends: usize) -> ServiceStatus {
        ServiceStatus {
            name: Name::new(name).unwrap(),
            endpoint: Endpoint { address: "192.0.2.1".parse().unwrap(), ports: Ports::Any },
            protocol: Protocol::Tcp,
            pool: Name::new("web").unwrap(),
            backends_up,
            backends,
            encapsulation: Encapsulation::default(),
            slots: 1_009,
        }
    }

    #[test]
    fn services_without_a_backend_for_new_connections_are_dead() {
        let dead = dead_services(&[
            service("all", 2, 2),
            service("some", 1, 2),
            service("none", 0, 2),
            service("empty", 0, 0),
        ]);
        let told: Vec<_> = dead.iter().map(|it| (&*it.service, it.backends)).collect();
        assert_eq!(told, [("none", 2), ("empty", 0)]);
        assert_eq!((&*dead[0].endpoint, &*dead[0].protocol), ("192.0.2.1:any", "tcp"));
    }
}
