//! The next hop of each backend.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_maps::Component;
use lb_net::{
    Interface, Unresolved,
    survey::{Device, RouteInfo},
};
use spillway_proto::v1::ConditionReason;

use crate::{
    facts::{DaemonState, Facts, IdleReason, PinnedBackend},
    finding::Finding,
    start_command::start_command,
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let mut wrong: BTreeMap<String, (Finding, u64)> = BTreeMap::new();
    let mut in_order = 0;
    for backend in &balancer.backends {
        match judge(facts, backend) {
            None => in_order += 1,
            Some(finding) => {
                wrong.entry(finding.subject.clone()).or_insert((finding, 0)).1 += 1;
            }
        }
    }
    let mut findings: Vec<_> = wrong
        .into_values()
        .map(|(finding, backends)| {
            let behind = lb_base::count(backends, "backend");
            Finding { found: format!("{} ({behind} behind it)", finding.found), ..finding }
        })
        .collect();
    if in_order > 0 {
        let subject = lb_base::count(in_order, "backend");
        findings.push(Finding::ok("neighbours", subject, "the next hop is known"));
    }
    findings
}

const WHY: &str = "nothing can be sent there, so the backends behind it get no packets";

fn judge(facts: &Facts, backend: &PinnedBackend) -> Option<Finding> {
    let address = backend.address;
    let problem = |found: String, mend: String| {
        Some(Finding::problem("neighbours", address.to_string(), found).why(WHY).mend(mend))
    };
    let six = if address.is_ipv6() { " -6" } else { "" };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let route = format!("ip{six} route replace {address}/{bits} via GATEWAY");
    match facts.network.survey.routes.get(&address)? {
        Ok(route) => judge_hop(facts, backend, route),
        Err(Unresolved::NoRoute) if let Some(finding) = without_link(facts) => Some(finding),
        Err(Unresolved::Own(_)) => problem(
            "is an address of this host".into(),
            format!("spillway backend delete {address}"),
        ),
        Err(Unresolved::NotUnicast(_)) => {
            problem("is not a unicast address".into(), format!("spillway backend delete {address}"))
        }
        Err(why) => problem(why.to_string(), route),
    }
}

/// An interface of the balancer's that is down: the kernel drops the routes over it.
fn without_link(facts: &Facts) -> Option<Finding> {
    let linked = facts.component(Component::Balancer).into_iter().flat_map(|it| &it.links);
    let linked: BTreeSet<_> = linked.filter_map(|link| link.index).collect();
    let sending = facts.balancer.iter().flat_map(|balancer| &balancer.interfaces);
    let sending: BTreeSet<_> = sending.map(|it| &it.stats.interface).collect();
    let mut used = facts.network.devices().filter(|device| {
        let index = Some(device.interface.index).into_iter().chain(device.lower);
        index.into_iter().any(|it| linked.contains(&it)) || sending.contains(&device.interface.name)
    });
    let is_off = |device: &&Device| !device.interface.up || !device.interface.carrier;
    let Interface { name, up, .. } = &used.find(is_off)?.interface;
    let (found, cable) = match up {
        false => ("the interface is down, and no route leads to its backends", ""),
        true => (NO_CARRIER, CABLE),
    };
    let finding = Finding::problem("neighbours", name, found).why(WHY);
    Some(finding.mend(format!("ip link set dev {name} up{cable}")))
}

const NO_CARRIER: &str = "the interface has no carrier";
const CABLE: &str = "  # and check the cable";

fn judge_hop(facts: &Facts, backend: &PinnedBackend, route: &RouteInfo) -> Option<Finding> {
    let RouteInfo { interface, gateway, .. } = *route;
    let name = facts.network.name(interface);
    let device = facts.network.device(interface).map(|device| &device.interface)?;
    let subject = format!("{gateway} on {name}");
    let problem = |found: &str, mend: String| {
        Some(Finding::problem("neighbours", subject.clone(), found).why(WHY).mend(mend))
    };
    if !device.up {
        return problem("the interface is down", format!("ip link set dev {name} up"));
    }
    if device.mac.is_none() {
        return problem("the interface is not Ethernet", replace_route(gateway, backend.address));
    }
    if backend.direct && gateway != backend.address {
        let bits = if backend.address.is_ipv4() { 32 } else { 128 };
        return problem(
            "direct return, but the route has a gateway",
            format!(
                "spillway pool update POOL --encapsulation ip_in_ip  # or, if {0} is on the link: \
                 ip route replace {0}/{bits} dev {name}",
                backend.address
            ),
        );
    }
    let neighbour = facts.network.survey.neighbours.iter();
    let mut neighbour = neighbour.filter(|n| n.interface == interface && n.address == gateway);
    let known = neighbour.next();
    let mac = known.and_then(|known| known.mac);
    if device.noarp && mac.is_none() {
        return problem(
            "is unknown, and the interface does not resolve neighbours (noarp)",
            format!("ip link set dev {name} arp on"),
        );
    }
    if facts.network.answered.get(&gateway) == Some(&false) && device.carrier {
        return problem("does not answer", resolve_again(gateway, &name));
    }
    match (backend.hop, mac) {
        (Some((pinned, at)), Some(mac)) if pinned == mac && at == interface => None,
        // The kernel may have dropped an entry that the packet path still uses.
        (Some((_, at)), None) if at == interface && !known.is_some_and(|known| known.failed) => {
            None
        }
        (_, None) if !device.carrier => {
            problem(NO_CARRIER, format!("ip link set dev {name} up{CABLE}"))
        }
        (_, None) => problem("does not answer", resolve_again(gateway, &name)),
        (None, Some(_)) => {
            let cause = reported_cause(facts, backend.address);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let found = format!("the packet path has no next hop{cause}");
            problem(&found, command_for_missing_hop(facts, backend.address, &name))
        }
        (Some(_), Some(_)) => problem(
            "the packet path has another MAC address than the kernel",
            start_command(facts, Component::Balancer, None),
        ),
    }
}

/// Why the daemon gave a backend no next hop, as far as it says so: of backends of services.
fn reported_cause(facts: &Facts, backend: IpAddr) -> Option<&str> {
    let Some(DaemonState::Answers { configuration, .. }) = &facts.daemon else { return None };
    let mut backends = configuration.served.iter().flat_map(|pool| &pool.backends);
    backends.find_map(|it| match &it.idle {
        Some(IdleReason::NoNextHop(why)) if it.address.parse() == Ok(backend) => Some(&**why),
        _ => None,
    })
}

/// For a backend whose neighbour the kernel knows.
fn command_for_missing_hop(facts: &Facts, backend: IpAddr, interface: &str) -> String {
    let Some(DaemonState::Answers { conditions, .. }) = &facts.daemon else {
        return start_command(facts, Component::Balancer, None);
    };
    let version = if backend.is_ipv4() { "IPv4 " } else { "IPv6 " };
    let lacks_source = conditions
        .iter()
        .any(|it| it.reason == ConditionReason::SourceAddress && it.subject.starts_with(version));
    match lacks_source {
        true => format!("ip address add ADDRESS/BITS dev {interface}"),
        false => format!("spillway status  # why {backend} has no next hop"),
    }
}

/// Makes the kernel resolve the neighbour again, and shows whether it answers.
fn resolve_again(gateway: IpAddr, interface: &str) -> String {
    format!("ip neighbour flush to {gateway} dev {interface}; ping -c 3 -I {interface} {gateway}")
}

fn replace_route(gateway: IpAddr, backend: IpAddr) -> String {
    let six = if gateway.is_ipv6() { " -6" } else { "" };
    format!("ip{six} route replace {backend} via GATEWAY dev ETHERNET")
}
