//! The next hop of each backend.

use std::{collections::BTreeMap, net::IpAddr};

use lb_maps::Component;
use lb_net::{Unresolved, survey::RouteInfo};

use crate::{
    facts::{Facts, PinnedBackend},
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
        (_, None) if !device.carrier => problem(
            "the interface has no carrier",
            format!("ip link set dev {name} up  # and check the cable"),
        ),
        (_, None) => problem("does not answer", resolve_again(gateway, &name)),
        (_, Some(_)) => problem(
            "the packet path has another MAC address than the kernel",
            start_command(facts, Component::Balancer, None),
        ),
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
