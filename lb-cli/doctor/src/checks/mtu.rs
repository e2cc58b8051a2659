//! Room for a client's packet and the tunnel's header: on the balancer for each backend, on a backend
//! for each interface.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_maps::Component;

use crate::{
    facts::{DaemonState, Facts},
    finding::Finding,
    start_command::start_command,
};

/// The MTU to recommend, equal on balancer and backend: room for a tunnel over IPv6, and for GUE if a pool uses it.
fn recommended_mtu(facts: &Facts) -> u32 {
    let backends = facts.balancer.iter().flat_map(|balancer| &balancer.backends);
    let mut grown = backends.map(|backend| (backend.address, backend.overhead));
    let in_gue = grown.any(|(address, by)| by > if address.is_ipv4() { 20 } else { 40 });
    facts.environment.client_mtu + if in_gue { 52 } else { 40 }
}

/// A command that raises an MTU.
fn raise_mtu(command: &str, mtu: u32, end: &str) -> String {
    format!("{command} mtu {mtu}  # only if every switch and router up to the {end} supports {mtu}")
}

const CAREFUL: &str = "do not raise the MTU if a switch or router on the path supports less: larger packets would be lost silently";

/// The limit of the packet size to some backends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Interface {
        name: String,
        mtu: u32,
    },
    Route {
        to: IpAddr,
        mtu: u32,
    },
    /// The daemon has not noticed yet that the route allows more.
    Maps {
        mtu: u32,
    },
}

pub(super) fn balancer(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let mut narrow: BTreeMap<Limit, (u32, Vec<IpAddr>)> = BTreeMap::new();
    let with_mtu = match &facts.daemon {
        Some(DaemonState::Answers { configuration, .. }) => configuration.with_mtu.clone(),
        _ => BTreeSet::new(),
    };
    let (mut wide, mut configured) = (0_u64, 0_u64);
    for backend in &balancer.backends {
        let needed = facts.environment.client_mtu + backend.overhead;
        let here = local_limit(facts, backend.address).map_or(needed, |least| least.min(needed));
        if path_mtu(facts, backend.address).is_some_and(|path_mtu| path_mtu < here) {
            // The probes of `tunnels` know more about the path.
            continue;
        }
        match limit(facts, backend.address, backend.mtu, needed) {
            // The operator has configured the MTU of the path.
            Some(_) if with_mtu.contains(&backend.address) => configured += 1,
            Some(limit) => {
                let (most, backends) = narrow.entry(limit).or_default();
                *most = needed.max(*most);
                backends.push(backend.address);
            }
            None => wide += 1,
        }
    }
    let mut findings: Vec<_> = narrow
        .into_iter()
        .map(|(limit, (needed, backends))| {
            finding(facts, &limit, needed, &backends, balancer.too_large)
        })
        .collect();
    if configured > 0 {
        let subject = lb_base::count(configured, "backend");
        let found = "the configured `mtu` limits packets, and clients are told";
        findings.push(Finding::ok("mtu", subject, found));
    }
    if wide > 0 {
        let subject = lb_base::count(wide, "backend");
        let found = format!("packets of {} bytes fit", facts.environment.client_mtu);
        findings.push(Finding::ok("mtu", subject, found));
    }
    findings
}

/// Whether a client's packet to a backend exceeds a limit that this host knows.
pub(super) fn is_limited(facts: &Facts, to: IpAddr) -> bool {
    let backends = facts.balancer.iter().flat_map(|balancer| &balancer.backends);
    let mut limits = backends.filter(|backend| backend.address == to).map(|backend| {
        limit(facts, to, backend.mtu, facts.environment.client_mtu + backend.overhead)
    });
    limits.any(|limit| limit.is_some())
}

/// The largest outer packet to a backend according to the interface, the route and the pinned maps of this host,
/// bytes. `None`: unknown.
pub(super) fn local_limit(facts: &Facts, to: IpAddr) -> Option<u32> {
    let route = facts.network.route(to);
    let device = route.and_then(|route| facts.network.device(route.interface));
    let mut backends = facts.balancer.iter().flat_map(|balancer| &balancer.backends);
    let pinned = backends.find(|backend| backend.address == to).map(|backend| backend.mtu);
    let known =
        [device.map(|device| device.interface.mtu), route.and_then(|route| route.mtu), pinned];
    known.into_iter().flatten().min()
}

/// The measured path MTU to a backend, bytes.
fn path_mtu(facts: &Facts, backend: IpAddr) -> Option<u32> {
    facts.vip_probes.as_ref().and_then(|probes| probes.path_mtu(backend))
}

fn limit(facts: &Facts, to: IpAddr, pinned: u32, needed: u32) -> Option<Limit> {
    // A missing route is the finding of another check.
    let route = facts.network.route(to)?;
    let device = facts.network.device(route.interface)?;
    let (name, mtu) = (device.interface.name.clone(), device.interface.mtu);
    if mtu < needed {
        return Some(Limit::Interface { name, mtu });
    }
    if let Some(mtu) = route.mtu.filter(|mtu| *mtu < needed) {
        return Some(Limit::Route { to, mtu });
    }
    (pinned < needed).then_some(Limit::Maps { mtu: pinned })
}

fn finding(
    facts: &Facts,
    limit: &Limit,
    needed: u32,
    backends: &[IpAddr],
    dropped: u64,
) -> Finding {
    let (subject, mtu, mend) = match limit {
        Limit::Interface { name, mtu } => {
            let set = format!("ip link set dev {name}");
            (name.clone(), *mtu, raise_mtu(&set, recommended_mtu(facts), "backend"))
        }
        Limit::Route { to, mtu } => {
            let six = if to.is_ipv6() { " -6" } else { "" };
            let change = format!("ip{six} route change $(ip{six} route get fibmatch {to})");
            (format!("route to {to}"), *mtu, raise_mtu(&change, recommended_mtu(facts), "backend"))
        }
        Limit::Maps { mtu } => {
            ("pinned maps".into(), *mtu, start_command(facts, Component::Balancer, None))
        }
    };
    let first = backends.first().map(ToString::to_string).unwrap_or_default();
    let others = match backends.len() {
        0 | 1 => first,
        number => format!("{first} and {} more", number - 1),
    };
    let found = format!("packets of {mtu} bytes to {others}, {needed} are needed");
    let client = facts.environment.client_mtu;
    let why = format!(
        "a client's packet of {client} bytes does not fit in the tunnel; unless backends ask clients for smaller \
         segments, each client first loses packets"
    );
    let finding = match dropped {
        0 => Finding::warning("mtu", subject, found),
        _ => Finding::problem("mtu", subject, found),
    };
    let lost = if dropped == 0 { String::new() } else { format!("; {dropped} were lost so far") };
    if matches!(limit, Limit::Maps { .. }) {
        return finding.why(format!("{why}{lost}")).mend(mend);
    }
    let backend = match backends {
        [one] => one.to_string(),
        _ => "ADDRESS".into(),
    };
    let most = backends.iter().filter_map(|backend| path_mtu(facts, *backend)).fold(mtu, u32::min);
    finding
        .why(format!("{why}{lost}; {CAREFUL}"))
        .mend(mend)
        .or(format!("spillway backend update {backend} --mtu {most}  # or: the MTU of the path"))
}

/// UDP header and GUE header, bytes.
const GUE_HEADERS: u32 = 12;

/// IP header and TCP header, bytes.
const fn headers(v4: bool) -> u32 {
    if v4 { 40 } else { 60 }
}

pub(super) fn backend(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    let links = facts
        .component(Component::Receiver)
        .map(|component| component.links.as_slice())
        .unwrap_or_default();
    let outer_v6 = receiver.sources.iter().any(|source| source.contains(':'));
    let tunnel = if outer_v6 { 40 } else { 20 };
    let needed = facts.environment.client_mtu + tunnel;
    let mut findings = Vec::new();
    for link in links {
        let Some(device) = link.index.and_then(|index| facts.network.device(index)) else {
            continue;
        };
        let mtu = device.interface.mtu;
        let asks = |v4: bool| {
            let served = receiver.vips.iter().any(|vip| vip.is_ipv4() == v4);
            let advmss = facts.network.route_to_clients(v4).and_then(|route| route.advmss);
            !served || advmss.is_some_and(|mss| mss + headers(v4) + tunnel <= mtu)
        };
        findings.push(if mtu >= needed + GUE_HEADERS {
            Finding::ok("mtu", &link.name, format!("takes packets of {mtu} bytes"))
        } else if mtu >= needed {
            let more = needed + GUE_HEADERS;
            Finding::ok("mtu", &link.name, format!("takes packets of {mtu} bytes; GUE needs {more}"))
        } else if asks(true) && asks(false) {
            Finding::ok("mtu", &link.name, "clients are asked for segments that fit")
        } else {
            Finding::warning("mtu", &link.name, format!("takes packets of {mtu} bytes, {needed} are needed"))
                .why(format!("a client's packet does not fit in the tunnel, unless clients are asked for smaller segments (advmss, see the README) or the balancer's configuration limits it; {CAREFUL}"))
                .mend(raise_mtu(&format!("ip link set dev {}", link.name), recommended_mtu(facts), "balancer"))
                .or(format!("spillway backend update ADDRESS --mtu {mtu}  # or, on the balancer: the MTU of the path to ADDRESS, this host"))
        });
    }
    findings
}
