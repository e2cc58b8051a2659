//! VIPs: how their packets reach a balancer, and where a backend has them.

use std::net::IpAddr;

use lb_maps::Component;
use lb_net::Unresolved;

use crate::{facts::Facts, finding::Finding, start_command::start_command};

pub(super) fn routes(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    balancer.vips.iter().map(|vip| route(facts, *vip)).collect()
}

fn route(facts: &Facts, vip: IpAddr) -> Finding {
    let names =
        facts.component(Component::Balancer).map(|component| component.names()).unwrap_or_default();
    let own = facts.network.own(vip);
    if own.is_empty() {
        return not_own(facts, vip, &names);
    }
    if facts.balancer.as_ref().is_some_and(|balancer| balancer.has_source(vip)) {
        return Finding::problem(
            "vip_routes",
            vip.to_string(),
            "is also the source address of tunnels",
        )
        .why(
            "receivers allow the balancer's own address, and replies to it would go to the service",
        )
        .mend(match facts.balancer.as_ref().and_then(|balancer| balancer.source_prefix) {
            Some(prefix) if prefix.contains(vip) => {
                start_command(facts, Component::Balancer, Some(("tunnel-source-prefix", "PREFIX")))
            }
            _ => start_command(facts, Component::Balancer, Some(("source", "OWN_ADDRESS"))),
        });
    }
    for address in &own {
        let at = facts.network.name(address.interface);
        let elsewhere = at != "lo" && !names.contains(&at);
        if elsewhere && let Some(wanted) = names.first() {
            return Finding::problem("vip_routes", vip.to_string(), format!("is on {at}"))
                .why(format!("{at} answers ARP for it, but has no packet program"))
                .mend(format!("ip address delete {} dev {at}", prefixed(vip, address.prefix)))
                .mend(add(vip, wanted));
        }
        if vip.is_ipv6() && !address.deprecated && at != "lo" {
            let change = format!("ip address change {} dev {at}", prefixed(vip, address.prefix));
            return Finding::warning("vip_routes", vip.to_string(), format!("is a source address on {at}"))
                .why("this host may use the VIP for its own connections, and their replies go to the service")
                .mend(format!("{change} preferred_lft 0"));
        }
    }
    Finding::ok("vip_routes", vip.to_string(), "is an address of this host")
}

fn not_own(facts: &Facts, vip: IpAddr, names: &[String]) -> Finding {
    let subject = vip.to_string();
    let on_link = facts.network.route(vip).filter(|route| route.gateway == vip);
    match on_link {
        Some(route) => {
            let at = facts.network.name(route.interface);
            let to = if names.contains(&at) { &at } else { names.first().unwrap_or(&at) };
            Finding::problem(
                "vip_routes",
                subject,
                format!("is in the subnet of {at}, but not an address of this host"),
            )
            .why("hosts in that subnet ask for it by ARP or NDP and get no answer")
            .mend(add(vip, to))
        }
        None => match facts.network.survey.routes.get(&vip) {
            Some(Err(Unresolved::NotUnicast(_))) => {
                Finding::problem("vip_routes", subject, "is not a unicast address")
                    .why("no client can connect to it")
                    .mend("spillway apply -f FILE  # with another address for the service")
            }
            _ => Finding::ok(
                "vip_routes",
                subject,
                "is not an address of this host: the router needs a route for it to this host",
            ),
        },
    }
}

fn prefixed(vip: IpAddr, prefix: u8) -> String {
    format!("{vip}/{prefix}")
}

/// As in the README: the host answers for it, but does not use it as a source address.
fn add(vip: IpAddr, interface: &str) -> String {
    match vip {
        IpAddr::V4(_) => format!("ip address add {vip}/32 dev {interface}"),
        IpAddr::V6(_) => format!("ip address add {vip}/128 dev {interface} nodad preferred_lft 0"),
    }
}

pub(super) fn served(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    receiver.vips.iter().map(|vip| serving_address(facts, *vip)).collect()
}

fn serving_address(facts: &Facts, vip: IpAddr) -> Finding {
    let bits = if vip.is_ipv4() { 32 } else { 128 };
    let add = format!("ip address add {vip}/{bits} dev lo");
    let subject = vip.to_string();
    let own = facts.network.own(vip);
    let outside = own.iter().find(|own| facts.network.name(own.interface) != "lo");
    match (own.first(), outside) {
        (None, _) => Finding::problem("served_vips", subject, "is not an address of this host")
            .why("packets for it leave the tunnel, but this host does not accept them")
            .mend(add),
        (_, Some(address)) => {
            let at = facts.network.name(address.interface);
            // A balancer on this host needs it there to answer ARP for it.
            if facts.balancer.as_ref().is_some_and(|balancer| balancer.vips.contains(&vip)) {
                return Finding::ok(
                    "served_vips",
                    subject,
                    format!("is on {at}, for the balancer"),
                );
            }
            if facts.has_unreadable_balancer() {
                let found =
                    format!("is on {at}, and the maps of the balancer on this host cannot be read");
                return Finding::ok("served_vips", subject, found);
            }
            let prefix = address.prefix;
            Finding::problem("served_vips", subject, format!("is on {at}"))
                .why("this host answers ARP or NDP for it, so clients bypass the balancer")
                .mend(format!("ip address delete {vip}/{prefix} dev {at}; {add}"))
        }
        (Some(_), None) => Finding::ok("served_vips", subject, "is on lo"),
    }
}
