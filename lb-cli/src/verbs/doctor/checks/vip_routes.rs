//! How packets to a VIP come to this balancer.

use std::net::IpAddr;

use lb_daemon::{dataplane::Role, net::Unresolved};

use super::{Facts, Finding, commands};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    balancer.vips.iter().map(|vip| of(facts, *vip)).collect()
}

fn of(facts: &Facts, vip: IpAddr) -> Finding {
    let names = facts.role(Role::Balancer).map(|role| role.names()).unwrap_or_default();
    let own = facts.network.own(vip);
    if own.is_empty() {
        return not_own(facts, vip, &names);
    }
    if facts.balancer.as_ref().is_some_and(|balancer| balancer.sources.contains(&vip)) {
        return Finding::problem("vip_routes", vip.to_string(), "is the source of tunnels too")
            .why("receivers allow the balancer's own address, and answers to it come to a service")
            .mend(commands::start(facts, Role::Balancer, Some(("source", "OWN_ADDRESS"))));
    }
    for address in &own {
        let at = facts.network.name(address.interface);
        let elsewhere = at != "lo" && !names.contains(&at);
        if elsewhere && let Some(wanted) = names.first() {
            return Finding::problem("vip_routes", vip.to_string(), format!("is on {at}"))
                .why(format!("{at} answers ARP for it, and has no packet program"))
                .mend(format!("ip address delete {} dev {at}", prefixed(vip, address.prefix)))
                .mend(add(vip, wanted));
        }
        if vip.is_ipv6() && !address.deprecated && at != "lo" {
            let change = format!("ip address change {} dev {at}", prefixed(vip, address.prefix));
            return Finding::warning("vip_routes", vip.to_string(), format!("{at} has it to send from"))
                .why("connections of this host itself may then come from the VIP, and their answers go to the service")
                .mend(format!("{change} preferred_lft 0"));
        }
    }
    Finding::ok("vip_routes", vip.to_string(), "is an address of this host")
}

fn not_own(facts: &Facts, vip: IpAddr, names: &[String]) -> Finding {
    let subject = vip.to_string();
    let on_link = facts.network.way(vip).filter(|way| way.gateway == vip);
    match on_link {
        Some(way) => {
            let at = facts.network.name(way.interface);
            let to = if names.contains(&at) { &at } else { names.first().unwrap_or(&at) };
            Finding::problem(
                "vip_routes",
                subject,
                format!("is of {at}'s subnet and nobody's here"),
            )
            .why("who is in that subnet asks for it by ARP or NDP, and gets no answer")
            .mend(add(vip, to))
        }
        None => match facts.network.survey.ways.get(&vip) {
            Some(Err(Unresolved::NotUnicast(_))) => {
                Finding::problem("vip_routes", subject, "is no single host's address")
                    .why("no client can connect to it")
                    .mend("spillway apply -f FILE  # with another address for the service")
            }
            _ => Finding::ok(
                "vip_routes",
                subject,
                "is not of this host: the router needs a route for it to here",
            ),
        },
    }
}

fn prefixed(vip: IpAddr, prefix: u8) -> String {
    format!("{vip}/{prefix}")
}

/// As the README has it: answered for, but no source of the host's own connections.
fn add(vip: IpAddr, interface: &str) -> String {
    match vip {
        IpAddr::V4(_) => format!("ip address add {vip}/32 dev {interface}"),
        IpAddr::V6(_) => format!("ip address add {vip}/128 dev {interface} nodad preferred_lft 0"),
    }
}
