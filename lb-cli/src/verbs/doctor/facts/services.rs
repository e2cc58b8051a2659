use std::collections::{BTreeMap, BTreeSet};

use spillway_proto::v1::{
    Backend, BackendStatus, Configuration, Isolation, Pool, RegionStatus, StatusResponse,
    WantedState,
};

use crate::verbs::backend;

/// What the daemon adds to the reason of a backend whose host is there, and which has not passed a check yet.
const NEVER_PASSED: &str = "(takes nothing until it passes)";

/// A pool that services use, with what its daemon says of its backends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Served {
    /// Name of the pool.
    pub(in super::super) pool: String,
    /// Names of the services, in order.
    pub(in super::super) services: Vec<String>,
    /// Its backends.
    pub(in super::super) backends: Vec<Member>,
}

/// A backend of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Member {
    pub(in super::super) address: String,
    /// Why it takes no new connections; `None`: it takes them.
    pub(in super::super) idle: Option<Idle>,
}

/// Why a backend takes no new connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Idle {
    /// Its check fails, though its host is there: the daemon's reason.
    Unhealthy(String),
    /// Its host is silent: the daemon's reason.
    Unreachable(String),
    /// Its first check has not ended.
    Unchecked,
    /// Frames cannot be sent to it, and why.
    NoNextHop(String),
    /// The operator has disabled it.
    Disabled,
    /// The operator has drained it.
    Drained,
    /// Its weight is 0.
    Weightless,
    /// Its region is drained in this pool.
    RegionDrained(String),
    /// Its region is not asked, since the pool is strictly isolated.
    Isolated(String),
}

impl Idle {
    /// Whether the configuration asks for it.
    pub(in super::super) const fn is_wanted(&self) -> bool {
        matches!(
            self,
            Self::Disabled
                | Self::Drained
                | Self::Weightless
                | Self::RegionDrained(_)
                | Self::Isolated(_)
        )
    }
}

/// The pools of all services, by name. `regions` are those that are asked; `None`: that is not known.
pub(super) fn served(
    configuration: &Configuration,
    status: &StatusResponse,
    regions: Option<&[RegionStatus]>,
) -> Vec<Served> {
    let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for service in &configuration.services {
        services.entry(&service.pool).or_default().insert(&service.name);
    }
    let pools = configuration.pools.iter();
    let pools: BTreeMap<_, _> = pools.map(|pool| (pool.name.as_str(), pool)).collect();
    let mut states: BTreeMap<(&str, &str), &BackendStatus> = BTreeMap::new();
    for backend in &status.backends {
        states.insert((&backend.pool, &backend.address), backend);
    }
    let asked: Option<BTreeSet<_>> = regions
        .map(|regions| regions.iter().map(|it| (it.pool.as_str(), it.region.as_str())).collect());
    let of = |(pool, services): (&str, BTreeSet<&str>)| {
        let told = pools.get(pool)?;
        let member = |told: &&Pool, backend: &Backend| {
            let state = states.get(&(pool, backend.address.as_str()))?;
            let group = (pool, backend.region.as_str());
            let is_asked = asked.as_ref().is_none_or(|asked| asked.contains(&group));
            Some(Member {
                address: backend.address.clone(),
                idle: idle(told, backend, state, is_asked),
            })
        };
        Some(Served {
            pool: pool.to_owned(),
            services: services.into_iter().map(str::to_owned).collect(),
            // A backend that came or went between the two answers is in one of them alone.
            backends: told.backends.iter().filter_map(|backend| member(told, backend)).collect(),
        })
    };
    services.into_iter().filter_map(of).collect()
}

/// The operator's reasons come first: what they ask for needs no other.
fn idle(pool: &Pool, backend: &Backend, state: &BackendStatus, is_asked: bool) -> Option<Idle> {
    let region = || backend.region.clone();
    let group = pool.groups.iter().find(|group| group.region == backend.region);
    match backend.wanted() {
        WantedState::Disabled => return Some(Idle::Disabled),
        WantedState::Drain => return Some(Idle::Drained),
        WantedState::Active | WantedState::Unspecified => {}
    }
    if backend.weight == Some(0) {
        return Some(Idle::Weightless);
    }
    if group.is_some_and(|group| group.drained || group.scaler == Some(0.0)) {
        return Some(Idle::RegionDrained(region()));
    }
    if pool.isolation() == Isolation::Strict && !is_asked {
        return Some(Idle::Isolated(region()));
    }
    match state.state.as_str() {
        "up" if state.next_hop_resolved => None,
        "up" => Some(Idle::NoNextHop(state.next_hop.clone())),
        _ if state.reason == backend::UNCHECKED => Some(Idle::Unchecked),
        "dead" if state.reason.ends_with(NEVER_PASSED) => {
            Some(Idle::Unhealthy(state.reason.clone()))
        }
        "unfit" => Some(Idle::Unhealthy(state.reason.clone())),
        _ if !state.next_hop_resolved => Some(Idle::NoNextHop(state.next_hop.clone())),
        _ => Some(Idle::Unreachable(state.reason.clone())),
    }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::{PoolRegion, Service};

    use super::*;

    fn backend(number: u8) -> Backend {
        let address = format!("10.1.0.{number}");
        Backend { address, region: "eu".into(), ..Backend::default() }
    }

    fn state(number: u8, state: &str, reason: &str) -> BackendStatus {
        BackendStatus {
            pool: "web".into(),
            address: backend(number).address,
            region: "eu".into(),
            state: state.into(),
            reason: reason.into(),
            next_hop_resolved: true,
            next_hop: "02:00:00:00:00:01 on eth0".into(),
            ..BackendStatus::default()
        }
    }

    /// One backend of a pool of its own.
    fn of(told: Backend, state: BackendStatus, change: impl FnOnce(&mut Pool)) -> Option<Idle> {
        let mut pool = Pool { name: "web".into(), backends: vec![told], ..Pool::default() };
        change(&mut pool);
        let service =
            |name: &str| Service { name: name.into(), pool: "web".into(), ..Service::default() };
        let configuration = Configuration {
            pools: vec![pool, Pool { name: "unused".into(), ..Pool::default() }],
            services: vec![service("b"), service("a")],
            ..Configuration::default()
        };
        let status = StatusResponse { backends: vec![state], ..StatusResponse::default() };
        let mut served = served(&configuration, &status, Some(&[]));
        assert_eq!(served.len(), 1, "a pool without a service serves nobody");
        assert_eq!(served[0].services, ["a", "b"]);
        served.remove(0).backends.remove(0).idle
    }

    #[test]
    fn each_reason_to_take_nothing_is_told_from_the_others() {
        let up = || state(11, "up", "all checks pass");
        let same = |_: &mut Pool| {};
        assert_eq!(of(backend(11), up(), same), None);
        let refused = "check web: connection refused";
        let of_state = |state| of(backend(11), state, |_| {});
        assert_eq!(of_state(state(11, "unfit", refused)), Some(Idle::Unhealthy(refused.into())));
        let never = format!("{refused} (takes nothing until it passes)");
        assert_eq!(of_state(state(11, "dead", &never)), Some(Idle::Unhealthy(never)));
        let silent = "check web: no connection within 1s, and the host is silent";
        assert_eq!(of_state(state(11, "dead", silent)), Some(Idle::Unreachable(silent.into())));
        assert_eq!(of_state(state(11, "dead", "not checked yet")), Some(Idle::Unchecked));
        for health in ["up", "dead"] {
            let next_hop = "10.0.0.1 on eth0 does not answer".to_owned();
            let lost = BackendStatus {
                next_hop_resolved: false,
                next_hop: next_hop.clone(),
                ..state(11, health, "x")
            };
            assert_eq!(of_state(lost), Some(Idle::NoNextHop(next_hop)), "{health}");
        }
        let wanted = |wanted: WantedState| Backend { wanted: wanted.into(), ..backend(11) };
        assert_eq!(of(wanted(WantedState::Active), up(), same), None);
        assert_eq!(of(wanted(WantedState::Disabled), up(), same), Some(Idle::Disabled));
        assert_eq!(of(wanted(WantedState::Drain), up(), same), Some(Idle::Drained));
        let weightless = Backend { weight: Some(0), ..backend(11) };
        assert_eq!(of(weightless, up(), same), Some(Idle::Weightless));
        let region = |change: fn(&mut PoolRegion)| {
            let mut group = PoolRegion { region: "eu".into(), ..PoolRegion::default() };
            change(&mut group);
            of(backend(11), up(), |pool| pool.groups = vec![group])
        };
        assert_eq!(region(|_| {}), None);
        let drained = Some(Idle::RegionDrained("eu".into()));
        assert_eq!(region(|group| group.drained = true), drained);
        assert_eq!(region(|group| group.scaler = Some(0.0)), drained);
        let isolated = of(backend(11), up(), |pool| pool.isolation = Isolation::Strict.into());
        assert_eq!(isolated, Some(Idle::Isolated("eu".into())));
    }
}
