//! The next hop of each backend: where frames to it are sent.

use std::{collections::BTreeMap, net::IpAddr};

use lb_daemon::{
    dataplane::Role,
    net::{Unresolved, survey::Way},
};

use super::{Facts, Finding, commands};
use crate::verbs::doctor::facts::Backend;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let mut wrong: BTreeMap<String, (Finding, u64)> = BTreeMap::new();
    let mut well = 0;
    for backend in &balancer.backends {
        match wrong_with(facts, backend) {
            None => well += 1,
            Some(finding) => {
                wrong.entry(finding.subject.clone()).or_insert((finding, 0)).1 += 1;
            }
        }
    }
    let mut findings: Vec<_> = wrong
        .into_values()
        .map(|(finding, backends)| {
            let behind = crate::output::count(backends, "backend");
            Finding { found: format!("{} ({behind} behind it)", finding.found), ..finding }
        })
        .collect();
    if well > 0 {
        let subject = crate::output::count(well, "backend");
        findings.push(Finding::ok("neighbours", subject, "the next hop is known"));
    }
    findings
}

const WHY: &str = "nothing can be sent there, so backends behind it take no packet";

fn wrong_with(facts: &Facts, backend: &Backend) -> Option<Finding> {
    let address = backend.address;
    let problem = |found: String, mend: String| {
        Some(Finding::problem("neighbours", address.to_string(), found).why(WHY).mend(mend))
    };
    let six = if address.is_ipv6() { " -6" } else { "" };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let route = format!("ip{six} route replace {address}/{bits} via GATEWAY");
    match facts.network.survey.ways.get(&address)? {
        Ok(way) => by(facts, backend, way),
        Err(Unresolved::Own(_)) => problem(
            "is an address of this host".into(),
            format!("spillway backend delete {address}"),
        ),
        Err(Unresolved::NotUnicast(_)) => problem(
            "is no single host's address".into(),
            format!("spillway backend delete {address}"),
        ),
        Err(why) => problem(why.to_string(), route),
    }
}

fn by(facts: &Facts, backend: &Backend, way: &Way) -> Option<Finding> {
    let Way { interface, gateway, .. } = *way;
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
        return problem(
            "the interface carries no Ethernet frames",
            replace(gateway, backend.address),
        );
    }
    if backend.direct && gateway != backend.address {
        let bits = if backend.address.is_ipv4() { 32 } else { 128 };
        return problem(
            "direct return, but the route leads by a gateway",
            format!(
                "spillway pool update POOL --encapsulation ip_in_ip  # or, where {0} is on the link: \
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
            "is not known, and the interface asks for nobody (noarp)",
            format!("ip link set dev {name} arp on"),
        );
    }
    if facts.network.answered.get(&gateway) == Some(&false) && device.carrier {
        return problem("does not answer", ask_again(gateway, &name));
    }
    match (backend.hop, mac) {
        (Some((pinned, at)), Some(mac)) if pinned == mac && at == interface => None,
        // The kernel may have forgotten what the packet path still goes by.
        (Some((_, at)), None) if at == interface && !known.is_some_and(|known| known.failed) => {
            None
        }
        (_, None) if !device.carrier => problem(
            "the interface has no carrier",
            format!("ip link set dev {name} up  # and the cable"),
        ),
        (_, None) => problem("does not answer", ask_again(gateway, &name)),
        (_, Some(_)) => problem(
            "the packet path does not have what the kernel knows",
            commands::start(facts, Role::Balancer, None),
        ),
    }
}

/// Has the kernel find the neighbour anew, and shows whether it answers.
fn ask_again(gateway: IpAddr, interface: &str) -> String {
    format!("ip neighbour flush to {gateway} dev {interface}; ping -c 3 -I {interface} {gateway}")
}

fn replace(gateway: IpAddr, backend: IpAddr) -> String {
    let six = if gateway.is_ipv6() { " -6" } else { "" };
    format!("ip{six} route replace {backend} via GATEWAY dev ETHERNET")
}
