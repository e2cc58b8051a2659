//! Room for a client's packet and the tunnel's header, backend by backend.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_daemon::dataplane::Role;

use super::{Facts, Finding, commands};
use crate::verbs::doctor::facts::Daemon;

/// The same on both hosts, so that they ask for one number: room for a tunnel over IPv6 too, in GUE where a
/// pool's packets go in that.
pub(super) fn enough(facts: &Facts) -> u32 {
    let backends = facts.balancer.iter().flat_map(|balancer| &balancer.backends);
    let mut grown = backends.map(|backend| (backend.address, backend.overhead));
    let in_gue = grown.any(|(address, by)| by > if address.is_ipv4() { 20 } else { 40 });
    facts.places.client_mtu + if in_gue { 52 } else { 40 }
}

/// A command that lets larger packets out. Where somebody on the way takes less, they vanish.
pub(super) fn widen(command: &str, enough: u32, end: &str) -> String {
    format!(
        "{command} mtu {enough}  # only where every switch and router up to the {end} takes {enough}"
    )
}

/// Why not to widen one end alone.
pub(super) const CAREFUL: &str = "where a switch or router on the way takes less, a wider interface makes it worse: what is too large then vanishes without a word";

/// What keeps packets to some backends small.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Narrow {
    /// The interface.
    Interface { name: String, mtu: u32 },
    /// The route to the backend.
    Route { to: IpAddr, mtu: u32 },
    /// What the daemon wrote down before the route was widened.
    Maps { mtu: u32 },
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let mut narrow: BTreeMap<Narrow, (u32, Vec<IpAddr>)> = BTreeMap::new();
    let sized = match &facts.daemon {
        Some(Daemon::Answers { told, .. }) => told.sized.clone(),
        _ => BTreeSet::new(),
    };
    let (mut wide, mut told) = (0_u64, 0_u64);
    for backend in &balancer.backends {
        let needed = facts.places.client_mtu + backend.overhead;
        let here = least(facts, backend.address).map_or(needed, |least| least.min(needed));
        if takes(facts, backend.address).is_some_and(|takes| takes < here) {
            // Packets that were sent say more of the way, under `tunnels`.
            continue;
        }
        match limit(facts, backend.address, backend.mtu, needed) {
            // Somebody has looked at the way, and said so.
            Some(_) if sized.contains(&backend.address) => told += 1,
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
    if told > 0 {
        let subject = crate::output::count(told, "backend");
        let found = "the configuration says what fits (`mtu`), and clients are told";
        findings.push(Finding::ok("mtu", subject, found));
    }
    if wide > 0 {
        let subject = crate::output::count(wide, "backend");
        let found = format!("packets of {} bytes fit", facts.places.client_mtu);
        findings.push(Finding::ok("mtu", subject, found));
    }
    findings
}

/// Whether a client's packet to a backend does not fit what is known here of the way.
pub(super) fn is_narrow(facts: &Facts, to: IpAddr) -> bool {
    let backends = facts.balancer.iter().flat_map(|balancer| &balancer.backends);
    let mut limits = backends
        .filter(|backend| backend.address == to)
        .map(|backend| limit(facts, to, backend.mtu, facts.places.client_mtu + backend.overhead));
    limits.any(|limit| limit.is_some())
}

/// The largest outer packet towards a backend by what is known on this host: its interface, its route and the
/// pinned maps, bytes. `None`: nothing is known.
pub(super) fn least(facts: &Facts, to: IpAddr) -> Option<u32> {
    let way = facts.network.way(to);
    let device = way.and_then(|way| facts.network.device(way.interface));
    let mut backends = facts.balancer.iter().flat_map(|balancer| &balancer.backends);
    let pinned = backends.find(|backend| backend.address == to).map(|backend| backend.mtu);
    let known = [device.map(|device| device.interface.mtu), way.and_then(|way| way.mtu), pinned];
    known.into_iter().flatten().min()
}

/// What was measured to come to a backend, bytes.
fn takes(facts: &Facts, backend: IpAddr) -> Option<u32> {
    facts.tunnels.as_ref().and_then(|tunnels| tunnels.takes(backend))
}

fn limit(facts: &Facts, to: IpAddr, pinned: u32, needed: u32) -> Option<Narrow> {
    // Where there is no way at all, that is another check's.
    let way = facts.network.way(to)?;
    let device = facts.network.device(way.interface)?;
    let (name, mtu) = (device.interface.name.clone(), device.interface.mtu);
    if mtu < needed {
        return Some(Narrow::Interface { name, mtu });
    }
    if let Some(mtu) = way.mtu.filter(|mtu| *mtu < needed) {
        return Some(Narrow::Route { to, mtu });
    }
    (pinned < needed).then_some(Narrow::Maps { mtu: pinned })
}

fn finding(
    facts: &Facts,
    limit: &Narrow,
    needed: u32,
    backends: &[IpAddr],
    dropped: u64,
) -> Finding {
    let (who, mtu, mend) = match limit {
        Narrow::Interface { name, mtu } => {
            let set = format!("ip link set dev {name}");
            (name.clone(), *mtu, widen(&set, enough(facts), "backend"))
        }
        Narrow::Route { to, mtu } => {
            let six = if to.is_ipv6() { " -6" } else { "" };
            let change = format!("ip{six} route change $(ip{six} route get fibmatch {to})");
            (format!("route to {to}"), *mtu, widen(&change, enough(facts), "backend"))
        }
        Narrow::Maps { mtu } => {
            ("pinned maps".into(), *mtu, commands::start(facts, Role::Balancer, None))
        }
    };
    let first = backends.first().map(ToString::to_string).unwrap_or_default();
    let others = match backends.len() {
        0 | 1 => first,
        number => format!("{first} and {} more", number - 1),
    };
    let found = format!("packets of {mtu} bytes to {others}, {needed} are needed");
    let client = facts.places.client_mtu;
    let why = format!(
        "a client's packet of {client} bytes does not fit once it is in the tunnel; unless backends \
         ask clients for smaller segments, each client has to be told so first, or loses it"
    );
    let finding = match dropped {
        0 => Finding::warning("mtu", who, found),
        _ => Finding::problem("mtu", who, found),
    };
    let lost = if dropped == 0 { String::new() } else { format!(", as {dropped} were lost") };
    if matches!(limit, Narrow::Maps { .. }) {
        return finding.why(format!("{why}{lost}")).mend(mend);
    }
    let backend = match backends {
        [one] => one.to_string(),
        _ => "ADDRESS".into(),
    };
    let most = backends.iter().filter_map(|backend| takes(facts, *backend)).fold(mtu, u32::min);
    finding
        .why(format!("{why}{lost}; {CAREFUL}"))
        .mend(mend)
        .or(format!("spillway backend update {backend} --mtu {most}  # else: what the path takes"))
}
