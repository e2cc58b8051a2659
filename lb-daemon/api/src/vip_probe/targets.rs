//! The targets of a VIP probe: a pure function of the configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_base::Quoted;
use lb_model::{AdminState, Configuration, Encapsulation, HealthCheck, Name, Ports, Protocol};

/// Which targets to probe; unset: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSelection {
    /// Only targets of this pool.
    pub pool: Option<String>,
    /// Only targets on this backend.
    pub backend: Option<IpAddr>,
}

/// The selected pool or backend does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProbeTarget {
    /// No pool has the name.
    #[error("pool {} does not exist", Quoted(.0))]
    Pool(String),
    /// The pool has no such backend.
    #[error("pool {} has no backend {}", Quoted(.0), .1)]
    Backend(String, IpAddr),
    /// No pool has such a backend.
    #[error("backend {0}: no pool has it")]
    NoPool(IpAddr),
}

/// A VIP on a backend, through a tunnel that clients' packets take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTarget {
    /// Pools whose packets take this tunnel.
    pub pools: BTreeSet<Name>,
    pub backend: IpAddr,
    pub vip: IpAddr,
    pub encapsulation: Encapsulation,
    /// A TCP port of the VIP on these pools; `None`: it has no TCP service.
    pub tcp_port: Option<u16>,
}

/// The first `most` selected targets, by backend and VIP, and the number of further ones. Disabled backends and pools
/// without a service have no targets.
///
/// # Errors
/// [`NoProbeTarget`].
pub(super) fn list(
    configuration: &Configuration,
    selection: &ProbeSelection,
    most: usize,
) -> Result<(Vec<ProbeTarget>, usize), NoProbeTarget> {
    check_selection(configuration, selection)?;
    let is_pool = |name: &Name| selection.pool.as_deref().is_none_or(|pool| name.as_str() == pool);
    let mut found: BTreeMap<_, BTreeSet<&Name>> = BTreeMap::new();
    for service in configuration.services.values().filter(|service| is_pool(&service.pool)) {
        let Some((name, pool)) = configuration.pools.get_key_value(&service.pool) else { continue };
        for (address, backend) in &pool.backends {
            let is_selected = selection.backend.is_none_or(|one| one == *address);
            if is_selected && backend.admin_state != AdminState::Disabled {
                let target = (*address, service.address, pool.encapsulation);
                found.entry(target).or_default().insert(name);
            }
        }
    }
    let left_out = found.len().saturating_sub(most);
    let targets =
        found.into_iter().take(most).map(|((backend, vip, encapsulation), pools)| ProbeTarget {
            tcp_port: tcp_port(configuration, vip, &pools),
            pools: pools.into_iter().cloned().collect(),
            backend,
            vip,
            encapsulation,
        });
    Ok((targets.collect(), left_out))
}

fn check_selection(
    configuration: &Configuration,
    selection: &ProbeSelection,
) -> Result<(), NoProbeTarget> {
    let ProbeSelection { pool, backend } = selection;
    let Some(pool) = pool else {
        let has =
            |address| configuration.pools.values().any(|it| it.backends.contains_key(address));
        return match backend {
            Some(address) if !has(address) => Err(NoProbeTarget::NoPool(*address)),
            _ => Ok(()),
        };
    };
    let found = configuration.pools.iter().find(|(name, _)| name.as_str() == pool);
    let (_, found) = found.ok_or_else(|| NoProbeTarget::Pool(pool.clone()))?;
    match backend {
        Some(address) if !found.backends.contains_key(address) => {
            Err(NoProbeTarget::Backend(pool.clone(), *address))
        }
        _ => Ok(()),
    }
}

/// The lowest listed port; if all ports are served, one that hosts refuse.
fn tcp_port(configuration: &Configuration, vip: IpAddr, pools: &BTreeSet<&Name>) -> Option<u16> {
    let services = configuration.services.values().filter(|service| {
        service.address == vip && service.protocol == Protocol::Tcp && pools.contains(&service.pool)
    });
    let (listed, any): (Vec<_>, Vec<_>) =
        services.map(|service| &service.ports).partition(|ports| ports.listed().is_some());
    let first = |ports: &&Ports| Some(ports.listed()?.ranges().first()?.0);
    listed
        .iter()
        .filter_map(first)
        .min()
        .or((!any.is_empty()).then_some(HealthCheck::DEFAULT_HOST_PROBE_PORT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_config::{document::Document, validate_first};

    const TEXT: &str = r#"
        [[region]]
        name = "eu"
        [[pool]]
        name = "web"
        [[pool.backend]]
        address = "10.0.0.1"
        region = "eu"
        [[pool.backend]]
        address = "10.0.0.2"
        region = "eu"
        admin_state = "disabled"
        [[pool]]
        name = "again"
        [[pool.backend]]
        address = "10.0.0.1"
        region = "eu"
        [[pool]]
        name = "gue"
        encapsulation = "gue"
        [[pool.backend]]
        address = "10.0.0.1"
        region = "eu"
        admin_state = "drain"
        [[pool]]
        name = "idle"
        [[pool.backend]]
        address = "10.0.0.9"
        region = "eu"
        [[service]]
        name = "a"
        address = "203.0.113.1"
        port = 443
        protocol = "tcp"
        pool = "web"
        [[service]]
        name = "b"
        address = "203.0.113.1"
        port = 80
        protocol = "tcp"
        pool = "again"
        [[service]]
        name = "c"
        address = "2001:db8::1"
        port = 53
        protocol = "udp"
        pool = "gue"
    "#;

    fn listed(selection: &ProbeSelection, most: usize) -> Result<(Vec<String>, usize), String> {
        let configuration = validate_first(&Document::parse(TEXT).unwrap().into()).unwrap();
        let (targets, left_out) =
            list(&configuration, selection, most).map_err(|it| it.to_string())?;
        let said = |target: &ProbeTarget| {
            let pools: Vec<_> = target.pools.iter().map(Name::as_str).collect();
            let ProbeTarget { backend, vip, encapsulation, tcp_port, .. } = target;
            let name = encapsulation.name();
            format!("{} {backend} {vip} {name} {}", pools.join("+"), tcp_port.unwrap_or_default())
        };
        Ok((targets.iter().map(said).collect(), left_out))
    }

    #[test]
    fn each_target_is_listed_once() {
        let both = "again+web 10.0.0.1 203.0.113.1 ip_in_ip 80".to_owned();
        let gue = "gue 10.0.0.1 2001:db8::1 gue 0".to_owned();
        assert_eq!(listed(&ProbeSelection::default(), 9), Ok((vec![both.clone(), gue.clone()], 0)));
        assert_eq!(listed(&ProbeSelection::default(), 1), Ok((vec![both], 1)));
        let of = |pool: &str| ProbeSelection { pool: Some(pool.into()), backend: None };
        assert_eq!(listed(&of("gue"), 9), Ok((vec![gue], 0)));
        let web = "web 10.0.0.1 203.0.113.1 ip_in_ip 443".to_owned();
        assert_eq!(listed(&of("web"), 9), Ok((vec![web], 0)));
        assert_eq!(listed(&of("idle"), 9), Ok((Vec::new(), 0)));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let of = |pool: Option<&str>, backend: &str| {
            let pool = pool.map(str::to_owned);
            listed(&ProbeSelection { pool, backend: Some(backend.parse().unwrap()) }, 9)
        };
        assert_eq!(of(Some("x"), "10.0.0.1").unwrap_err(), "pool \"x\" does not exist");
        assert_eq!(
            of(Some("gue"), "10.0.0.2").unwrap_err(),
            "pool \"gue\" has no backend 10.0.0.2"
        );
        assert_eq!(of(None, "10.0.0.3").unwrap_err(), "backend 10.0.0.3: no pool has it");
        assert_eq!(of(None, "10.0.0.2"), Ok((Vec::new(), 0)), "it is disabled");
    }
}
