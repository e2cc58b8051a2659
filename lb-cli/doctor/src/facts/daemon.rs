//! What the daemons report: their state, and which backends of services take connections.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_base::receiver_socket::Answer;
use lb_maps::Component;
use spillway_proto::v1::{
    AdminState, Backend, BackendState, BackendStatus, ConditionReason, Configuration,
    Encapsulation, ExportResponse, GroupStatus, Isolation, Pool, StatusResponse, Via,
    state_reason::Cause,
};

/// The state of a balancer's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonState {
    /// The reason why it does not answer.
    Silent(String),
    Answers {
        version: String,
        generation: u64,
        /// Why the packet path has not reached the generation; empty: it has.
        behind: String,
        /// What else is wrong.
        conditions: Vec<Condition>,
        /// Boxed: the other variant is small.
        configuration: Box<DaemonConfiguration>,
    },
}

/// A condition of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub(crate) reason: ConditionReason,
    pub(crate) subject: String,
    pub(crate) cause: String,
}

/// The parts of the configuration and settings that this host must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonConfiguration {
    /// The daemon's own region, if the configuration does not have it.
    pub(crate) unknown_region: Option<String>,
    /// Backends with a configured `mtu`.
    pub(crate) with_mtu: BTreeSet<IpAddr>,
    /// Pools that services use, with their backends.
    pub(crate) served: Vec<PoolServices>,
    /// Changed settings that need a restart.
    pub(crate) waiting_settings: Vec<String>,
    /// Why it cannot use the stored configuration; it then reports no backends. `None`: it can.
    pub(crate) unusable: Option<String>,
}

impl DaemonConfiguration {
    fn new(
        status: &StatusResponse,
        exported: Option<&ExportResponse>,
        regions: Option<&[GroupStatus]>,
    ) -> Self {
        let waiting_settings = status.waiting_settings.clone();
        let stored = status
            .conditions
            .iter()
            .find(|condition| condition.reason() == ConditionReason::StoredConfiguration);
        let unusable = stored.map(|condition| condition.text.clone());
        let Some(configuration) = exported
            .and_then(|exported| {
                exported.configuration.as_ref().filter(|_| exported.generation > 0)
            })
            .filter(|_| unusable.is_none())
        else {
            return Self { waiting_settings, unusable, ..Self::default() };
        };
        let region = &status.region;
        let known = configuration.regions.iter().any(|known| known.name == *region);
        let backends = configuration.pools.iter().flat_map(|pool| &pool.backends);
        let with_mtu = backends.filter(|backend| backend.mtu != 0);
        Self {
            unknown_region: (!region.is_empty() && !known).then(|| region.clone()),
            with_mtu: with_mtu.filter_map(|backend| backend.address.parse().ok()).collect(),
            served: pools_of_services(configuration, status, regions),
            waiting_settings,
            unusable,
        }
    }
}

impl DaemonState {
    /// What a daemon answered that has no answer to some calls if it cannot read its maps or the stored configuration.
    pub fn new(
        status: StatusResponse,
        exported: Option<&ExportResponse>,
        regions: Option<&[GroupStatus]>,
    ) -> Self {
        Self::Answers {
            configuration: Box::new(DaemonConfiguration::new(&status, exported, regions)),
            version: status.version,
            generation: status.generation,
            behind: status.behind,
            conditions: status
                .conditions
                .into_iter()
                .map(|it| Condition { reason: it.reason(), subject: it.subject, cause: it.text })
                .collect(),
        }
    }
}

/// The state of a receiver's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverState {
    /// It does not answer: the reason and a hint.
    Silent(String, String),
    Answers(Answer),
}

/// How the subject of a condition about an interface begins.
pub(crate) const INTERFACE: &str = "interface ";

/// The interfaces that lack the program of a component by what its daemon says, with the causes.
pub(crate) fn unattached<'a>(
    balancer: Option<&'a DaemonState>,
    receiver: Option<&'a ReceiverState>,
    component: Component,
) -> Vec<(&'a str, &'a str)> {
    let of_subject =
        |subject: &'a str, cause: &'a str| Some((subject.strip_prefix(INTERFACE)?, cause));
    match (component, balancer, receiver) {
        (Component::Balancer, Some(DaemonState::Answers { conditions, .. }), _) => {
            conditions.iter().filter_map(|it| of_subject(&it.subject, &it.cause)).collect()
        }
        (Component::Receiver, _, Some(ReceiverState::Answers(answer))) => {
            answer.conditions.iter().filter_map(|it| of_subject(&it.subject, &it.cause)).collect()
        }
        _ => Vec::new(),
    }
}

/// A pool that services use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolServices {
    pub(crate) pool: String,
    /// Whether it has checks and a tunnel, but no check through it.
    pub(crate) is_tunnel_unchecked: bool,
    pub(crate) services: Vec<String>,
    pub(crate) backends: Vec<PoolBackend>,
}

/// A backend of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolBackend {
    pub(crate) address: String,
    /// Why it takes no new connections; `None`: it takes them.
    pub(crate) idle: Option<IdleReason>,
}

/// Why a backend takes no new connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdleReason {
    /// Its check fails but its host is up; the daemon's reason.
    Unhealthy(String),
    /// The same of a check through the tunnel.
    UnhealthyInTunnel(String),
    /// Its host does not answer; the daemon's reason.
    Unreachable(String),
    /// Its first check has not ended.
    Unchecked,
    /// Its next hop is unresolved; the reason.
    NoNextHop(String),
    /// Disabled by the configuration.
    Disabled,
    /// Drained by the configuration.
    Drained,
    /// Drained or disabled by overrides; their names.
    Overridden(Vec<String>),
    /// Its weight is 0.
    ZeroWeight,
    /// Its region is drained in this pool.
    RegionDrained(String),
    /// The pool does not use its region because of strict isolation.
    Isolated(String),
}

impl IdleReason {
    /// Whether configuration or overrides ask for it.
    pub(crate) const fn is_asked_for(&self) -> bool {
        matches!(
            self,
            Self::Disabled
                | Self::Drained
                | Self::Overridden(_)
                | Self::ZeroWeight
                | Self::RegionDrained(_)
                | Self::Isolated(_)
        )
    }
}

/// The pools of all services in order of name. `regions` are those in use; `None`: unknown.
fn pools_of_services(
    configuration: &Configuration,
    status: &StatusResponse,
    regions: Option<&[GroupStatus]>,
) -> Vec<PoolServices> {
    let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for service in &configuration.services {
        services.entry(&service.pool).or_default().insert(&service.name);
    }
    let tunnelled = configuration.health_checks.iter().filter(|check| check.via() == Via::Tunnel);
    let tunnelled: BTreeSet<&str> = tunnelled.map(|check| &*check.name).collect();
    let pools = configuration.pools.iter();
    let pools: BTreeMap<_, _> = pools.map(|pool| (pool.name.as_str(), pool)).collect();
    let mut states: BTreeMap<(&str, &str), &BackendStatus> = BTreeMap::new();
    for backend in &status.backends {
        states.insert((&backend.pool, &backend.address), backend);
    }
    let asked: Option<BTreeSet<_>> = regions
        .map(|regions| regions.iter().map(|it| (it.pool.as_str(), it.region.as_str())).collect());
    let pool_services = |(pool, services): (&str, BTreeSet<&str>)| {
        let configured = pools.get(pool)?;
        let member = |configured: &&Pool, backend: &Backend| {
            let state = states.get(&(pool, backend.address.as_str()))?;
            let group = (pool, backend.region.as_str());
            let is_tunnelled = |check: &str| tunnelled.contains(check);
            let is_asked = asked.as_ref().is_none_or(|asked| asked.contains(&group));
            Some(PoolBackend {
                address: backend.address.clone(),
                idle: idle_reason(configured, backend, state, is_asked, is_tunnelled),
            })
        };
        Some(PoolServices {
            pool: pool.to_owned(),
            is_tunnel_unchecked: configured.encapsulation() != Encapsulation::Direct
                && !configured.health_checks.is_empty()
                && !configured.health_checks.iter().any(|check| tunnelled.contains(&**check)),
            services: services.into_iter().map(str::to_owned).collect(),
            // A backend that changed between the two answers is in only one of them.
            backends: configured
                .backends
                .iter()
                .filter_map(|backend| member(configured, backend))
                .collect(),
        })
    };
    services.into_iter().filter_map(pool_services).collect()
}

/// Reasons of the configuration come first: they need no other.
fn idle_reason(
    pool: &Pool,
    backend: &Backend,
    state: &BackendStatus,
    is_asked: bool,
    is_tunnelled: impl Fn(&str) -> bool,
) -> Option<IdleReason> {
    let region = || backend.region.clone();
    let group = pool.groups.iter().find(|group| group.region == backend.region);
    match backend.admin_state() {
        AdminState::Disabled => return Some(IdleReason::Disabled),
        AdminState::Drain => return Some(IdleReason::Drained),
        AdminState::Active | AdminState::Unspecified => {}
    }
    if backend.weight == Some(0) {
        return Some(IdleReason::ZeroWeight);
    }
    if group.is_some_and(|group| group.drained || group.scaler == Some(0.0)) {
        return Some(IdleReason::RegionDrained(region()));
    }
    if pool.isolation() == Isolation::Strict && !is_asked {
        return Some(IdleReason::Isolated(region()));
    }
    let reason = || state.reason.clone().unwrap_or_default();
    match state.state() {
        BackendState::Draining | BackendState::Disabled if !state.overrides.is_empty() => {
            Some(IdleReason::Overridden(state.overrides.clone()))
        }
        BackendState::Up if state.next_hop_resolved => None,
        BackendState::Up => Some(IdleReason::NoNextHop(state.next_hop.clone())),
        _ if reason().cause() == Cause::NotChecked => Some(IdleReason::Unchecked),
        BackendState::Pending
        | BackendState::Unhealthy
        | BackendState::HeldDown
        | BackendState::Draining => Some(match reason() {
            reason if is_tunnelled(&reason.health_check) => {
                IdleReason::UnhealthyInTunnel(reason.text)
            }
            reason => IdleReason::Unhealthy(reason.text),
        }),
        _ if !state.next_hop_resolved => Some(IdleReason::NoNextHop(state.next_hop.clone())),
        _ => Some(IdleReason::Unreachable(reason().text)),
    }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::{
        Backend, Configuration, Group, HealthCheck, Pool, Region, Service, StateReason,
    };

    use super::*;

    /// Values of messages.
    mod messages {
        use super::*;

        pub(super) fn state(word: &str) -> i32 {
            let name = format!("BACKEND_STATE_{}", word.to_uppercase());
            BackendState::from_str_name(&name).unwrap().into()
        }

        #[allow(clippy::unnecessary_wraps, reason = "the field is optional")]
        pub(super) fn reason(text: &str) -> Option<StateReason> {
            let cause = match text {
                "not checked yet" => Cause::NotChecked,
                _ => Cause::CheckFails,
            };
            let (cause, health_check) = (cause.into(), String::new());
            Some(StateReason { cause, health_check, text: text.into() })
        }
    }

    #[test]
    fn the_configuration_is_read_from_the_answers() {
        let backend =
            |address: &str, mtu| Backend { address: address.into(), mtu, ..Backend::default() };
        let pool = Pool {
            backends: vec![backend("10.1.0.11", 0), backend("fd00::12", 1500)],
            ..Pool::default()
        };
        let configuration = Configuration {
            regions: vec![Region { name: "eu".into(), ..Region::default() }],
            pools: vec![pool],
            ..Configuration::default()
        };
        let with_mtu: BTreeSet<IpAddr> = ["fd00::12".parse().unwrap()].into();
        let mut exported = ExportResponse {
            configuration: Some(configuration),
            generation: 1,
            ..ExportResponse::default()
        };
        for (region, strange) in [("eu", None), ("", None), ("mars", Some("mars".to_owned()))] {
            let status = StatusResponse { region: region.into(), ..StatusResponse::default() };
            let configuration = DaemonConfiguration {
                unknown_region: strange,
                with_mtu: with_mtu.clone(),
                ..DaemonConfiguration::default()
            };
            assert_eq!(DaemonConfiguration::new(&status, Some(&exported), None), configuration);
        }
        exported.generation = 0;
        let status = StatusResponse { region: "mars".into(), ..StatusResponse::default() };
        assert_eq!(
            DaemonConfiguration::new(&status, Some(&exported), None),
            DaemonConfiguration::default()
        );
        assert_eq!(DaemonConfiguration::new(&status, None, None), DaemonConfiguration::default());
    }

    fn backend(number: u8) -> Backend {
        let address = format!("10.1.0.{number}");
        Backend { address, region: "eu".into(), ..Backend::default() }
    }

    fn state(number: u8, state: &str, reason: &str) -> BackendStatus {
        BackendStatus {
            pool: "web".into(),
            address: backend(number).address,
            region: "eu".into(),
            state: messages::state(state),
            reason: messages::reason(reason),
            next_hop_resolved: true,
            next_hop: "02:00:00:00:00:01 on eth0".into(),
            ..BackendStatus::default()
        }
    }

    /// One backend of a pool of its own.
    fn idle_of(
        backend: Backend,
        state: BackendStatus,
        change: impl FnOnce(&mut Pool),
    ) -> Option<IdleReason> {
        let mut pool = Pool { name: "web".into(), backends: vec![backend], ..Pool::default() };
        change(&mut pool);
        let service =
            |name: &str| Service { name: name.into(), pool: "web".into(), ..Service::default() };
        let configuration = Configuration {
            pools: vec![pool, Pool { name: "unused".into(), ..Pool::default() }],
            services: vec![service("b"), service("a")],
            ..Configuration::default()
        };
        let status = StatusResponse { backends: vec![state], ..StatusResponse::default() };
        let mut served = pools_of_services(&configuration, &status, Some(&[]));
        assert_eq!(served.len(), 1, "a pool without a service is left out");
        assert_eq!(served[0].services, ["a", "b"]);
        served.remove(0).backends.remove(0).idle
    }

    #[test]
    fn checks_through_the_tunnel_are_recognized() {
        let of = |checks: &[&str], failing: &str, encapsulation: Encapsulation| {
            let check = |name: &str, via: Via| HealthCheck {
                name: name.into(),
                via: via.into(),
                ..HealthCheck::default()
            };
            let pool = Pool {
                name: "web".into(),
                backends: vec![backend(11)],
                health_checks: checks.iter().map(ToString::to_string).collect(),
                encapsulation: encapsulation.into(),
                ..Pool::default()
            };
            let service = Service { name: "web".into(), pool: "web".into(), ..Service::default() };
            let configuration = Configuration {
                health_checks: vec![check("inside", Via::Tunnel), check("around", Via::Address)],
                pools: vec![pool],
                services: vec![service],
                ..Configuration::default()
            };
            let mut state = state(11, "unhealthy", "refused");
            state.reason.as_mut().unwrap().health_check = failing.into();
            let status = StatusResponse { backends: vec![state], ..StatusResponse::default() };
            let mut served = pools_of_services(&configuration, &status, None).remove(0);
            (served.backends.remove(0).idle, served.is_tunnel_unchecked)
        };
        let around = Some(IdleReason::Unhealthy("refused".into()));
        let inside = Some(IdleReason::UnhealthyInTunnel("refused".into()));
        let ip_in_ip = Encapsulation::IpInIp;
        assert_eq!(of(&["around"], "around", ip_in_ip), (around.clone(), true));
        assert_eq!(of(&["around"], "around", Encapsulation::Direct), (around.clone(), false));
        assert_eq!(of(&["around", "inside"], "around", ip_in_ip), (around, false));
        assert_eq!(of(&["around", "inside"], "inside", ip_in_ip), (inside.clone(), false));
        assert_eq!(of(&[], "inside", ip_in_ip), (inside, false), "no check passes");
    }

    #[test]
    fn each_idle_reason_is_recognized() {
        let up = || state(11, "up", "all checks pass");
        let same = |_: &mut Pool| {};
        assert_eq!(idle_of(backend(11), up(), same), None);
        let refused = "check web: connection refused";
        let of_state = |state| idle_of(backend(11), state, |_| {});
        assert_eq!(
            of_state(state(11, "unhealthy", refused)),
            Some(IdleReason::Unhealthy(refused.into()))
        );
        let never = format!("{refused} (gets no connections until it passes)");
        assert_eq!(of_state(state(11, "pending", &never)), Some(IdleReason::Unhealthy(never)));
        let silent = "check web: no connection within 1s, and the host is silent";
        assert_eq!(
            of_state(state(11, "unreachable", silent)),
            Some(IdleReason::Unreachable(silent.into()))
        );
        assert_eq!(of_state(state(11, "pending", "not checked yet")), Some(IdleReason::Unchecked));
        for health in ["up", "unreachable"] {
            let next_hop = "10.0.0.1 on eth0 does not answer".to_owned();
            let lost = BackendStatus {
                next_hop_resolved: false,
                next_hop: next_hop.clone(),
                ..state(11, health, "x")
            };
            assert_eq!(of_state(lost), Some(IdleReason::NoNextHop(next_hop)), "{health}");
        }
        let with =
            |admin_state: AdminState| Backend { admin_state: admin_state.into(), ..backend(11) };
        assert_eq!(idle_of(with(AdminState::Active), up(), same), None);
        assert_eq!(idle_of(with(AdminState::Disabled), up(), same), Some(IdleReason::Disabled));
        assert_eq!(idle_of(with(AdminState::Drain), up(), same), Some(IdleReason::Drained));
        let names = vec!["pools/web/drain".to_owned()];
        let overridden = BackendStatus { overrides: names.clone(), ..state(11, "draining", "x") };
        assert_eq!(of_state(overridden), Some(IdleReason::Overridden(names.clone())));
        let unhealthy = BackendStatus { overrides: names, ..state(11, "unhealthy", refused) };
        assert_eq!(of_state(unhealthy), Some(IdleReason::Unhealthy(refused.into())));
        let weightless = Backend { weight: Some(0), ..backend(11) };
        assert_eq!(idle_of(weightless, up(), same), Some(IdleReason::ZeroWeight));
        let region = |change: fn(&mut Group)| {
            let mut group = Group { region: "eu".into(), ..Group::default() };
            change(&mut group);
            idle_of(backend(11), up(), |pool| pool.groups = vec![group])
        };
        assert_eq!(region(|_| {}), None);
        let drained = Some(IdleReason::RegionDrained("eu".into()));
        assert_eq!(region(|group| group.drained = true), drained);
        assert_eq!(region(|group| group.scaler = Some(0.0)), drained);
        let isolated = idle_of(backend(11), up(), |pool| pool.isolation = Isolation::Strict.into());
        assert_eq!(isolated, Some(IdleReason::Isolated("eu".into())));
    }
}
