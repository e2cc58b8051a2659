//! What a receiver needs: allow lists, tunnel endpoints, ARP and the reverse path filter.

use lb_base::count;
use lb_common::abi::limits::MAX_ENDPOINTS;
use lb_maps::{Component, Linked};

use crate::{
    facts::{Facts, ReceiverFacts},
    finding::{Finding, first_and_count},
    start_command::start_command,
};

pub(super) fn endpoints(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    [Some(own_addresses(facts, receiver)), other_addresses(facts, receiver)]
        .into_iter()
        .flatten()
        .collect()
}

/// Checks that tunnels end at the addresses of the host.
fn own_addresses(facts: &Facts, receiver: &ReceiverFacts) -> Finding {
    let own = facts.network.survey.addresses.iter().filter(|own| own.reachable);
    let own = own.map(|own| own.address).filter(|own| !receiver.vips.contains(own));
    let mut missing: Vec<_> = own.filter(|own| !receiver.endpoints.contains(own)).collect();
    missing.sort();
    let Some(first) = missing.first().map(ToString::to_string) else {
        return match receiver.endpoints.len() {
            0 => Finding::problem("endpoints", "receiver", "there are none")
                .why("tunnels end at addresses of this host, but it has only VIPs")
                .mend(start_command(
                    facts,
                    Component::Receiver,
                    Some(("tunnel-endpoint", "ADDRESS")),
                )),
            1 => Finding::ok("endpoints", "receiver", "tunnels end at 1 address"),
            count => {
                Finding::ok("endpoints", "receiver", format!("tunnels end at {count} addresses"))
            }
        };
    };
    let finding = Finding::problem("endpoints", first_and_count(&missing), "no tunnel ends there");
    if receiver.endpoints.len() == MAX_ENDPOINTS as usize {
        let change = Some(("tunnel-endpoint", first.as_str()));
        return finding
            .why(format!("the host has more than {MAX_ENDPOINTS} addresses, the maximum"))
            .mend(start_command(facts, Component::Receiver, change));
    }
    let runs =
        facts.component(Component::Receiver).is_some_and(|installed| installed.owner.is_some());
    let cause = if runs { "the daemon missed it" } else { "it was added while no daemon ran" };
    finding
        .why(format!("{cause}: packets in tunnels to it are not decapsulated"))
        .mend(start_command(facts, Component::Receiver, None))
}

/// Tunnels to other addresses are lost on a host that does not forward.
fn other_addresses(facts: &Facts, receiver: &ReceiverFacts) -> Option<Finding> {
    let packets = receiver.not_local?;
    let forwards = |name| facts.sysctls.get(name).is_some_and(|value| value != 0);
    let found =
        format!("balancers send tunnels to addresses of other hosts, {packets} packets so far");
    if ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"].into_iter().any(forwards) {
        return Some(Finding::ok("endpoints", "tunnels", found));
    }
    let start = start_command(facts, Component::Receiver, Some(("tunnel-endpoint", "ADDRESS")));
    Some(
        Finding::warning("endpoints", "tunnels", found)
            .why("they are passed on unchanged, and this host does not forward: only a bridge can deliver them")
            .mend("tcpdump -nc 10 'proto 4 or proto 41 or udp port 6080'  # which addresses")
            .mend(format!("{start}  # if they are meant for this host")),
    )
}

pub(super) fn allow_lists(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    let mut findings = Vec::new();
    for (what, empty, flag, all) in [
        ("sources", receiver.sources.is_empty(), "allow-source", receiver.sources.join(", ")),
        (
            "vips",
            receiver.vips.is_empty(),
            "vip",
            receiver.vips.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        ),
    ] {
        findings.push(if empty {
            let value = if what == "vips" { "VIP" } else { "BALANCER_ADDRESS" };
            Finding::problem("allow_lists", what, "none is allowed")
                .why("no packet is decapsulated")
                .mend(start_command(facts, Component::Receiver, Some((flag, value))))
        } else {
            Finding::ok("allow_lists", what, all)
        });
    }
    if let Some(packets) = receiver.not_allowed {
        let found = format!("tunnels for the VIPs come from elsewhere, {packets} packets so far");
        findings.push(
            Finding::warning("allow_lists", "sources", found)
                .why("they are not decapsulated; a balancer with another address, or with a `tunnel-source-prefix`, may send them")
                .mend("tcpdump -nc 10 'proto 4 or proto 41 or udp port 6080'  # which addresses")
                .mend(format!(
                    "{}  # if they are of a balancer",
                    start_command(facts, Component::Receiver, Some(("allow-source", "PREFIX")))
                )),
        );
    }
    for source in receiver.sources.iter().filter(|source| source.ends_with("/0")) {
        findings.push(
            Finding::warning("allow_lists", source, "any host may send tunnels")
                .why("any host that can reach this host can send packets to the VIP with any source address")
                .mend(start_command(
                    facts,
                    Component::Receiver,
                    Some(("allow-source", "BALANCER_ADDRESS")),
                )),
        );
    }
    findings
}

pub(super) fn arp(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    let vips: Vec<_> = receiver.vips.iter().copied().filter(|vip| vip.is_ipv4()).collect();
    let links = facts
        .component(Component::Receiver)
        .map(|component| component.links.as_slice())
        .unwrap_or_default();
    if vips.is_empty() || facts.component(Component::Balancer).is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for link in links {
        let on_link =
            link.index.is_some_and(|at| vips.iter().any(|vip| facts.network.is_on_link(at, *vip)));
        findings.extend(sysctl_at_least(facts, &link.name, "arp_ignore", 1, on_link));
        findings.extend(sysctl_at_least(facts, &link.name, "arp_announce", 2, on_link));
    }
    findings
}

fn sysctl_at_least(
    facts: &Facts,
    interface: &str,
    name: &'static str,
    least: i64,
    on_link: bool,
) -> Option<Finding> {
    let value = facts.sysctls.effective(interface, name)?;
    if value >= least {
        return Some(Finding::ok("arp", interface, format!("{name} is {value}")));
    }
    let found = format!("{name} is {value}");
    let finding = match on_link {
        true => Finding::problem("arp", interface, found),
        false => Finding::warning("arp", interface, found),
    };
    let why = match name {
        "arp_ignore" => {
            "this host answers ARP for the VIP on lo, and so takes it from the balancer"
        }
        _ => {
            "this host sends ARP requests with the VIP as sender, and neighbours learn it from them"
        }
    };
    Some(finding.why(why).mend(format!("sysctl -w net.ipv4.conf.all.{name}={least}")))
}

/// Value of `rp_filter` (Linux, networking/ip-sysctl).
const STRICT: i64 = 1;

pub(super) fn rp_filter(facts: &Facts) -> Vec<Finding> {
    let serves = facts.receiver.as_ref().is_some_and(|r| r.vips.iter().any(|vip| vip.is_ipv4()));
    let links = facts
        .component(Component::Receiver)
        .map(|component| component.links.as_slice())
        .unwrap_or_default();
    links.iter().filter(|_| serves).filter_map(|link| link_rp_filter(facts, link)).collect()
}

fn link_rp_filter(facts: &Facts, link: &Linked) -> Option<Finding> {
    let value = facts.sysctls.effective(&link.name, "rp_filter")?;
    if value != STRICT {
        return Some(Finding::ok("rp_filter", &link.name, format!("is {value}")));
    }
    let back = facts.network.route_to_clients(true).map(|route| route.interface);
    let why = "packets of a client whose return route is not this interface are dropped silently";
    let finding = match (back.is_some() && back == link.index, facts.host.rp_filter_drops) {
        (false, _) => Finding::problem("rp_filter", &link.name, "is strict (1)").why(
            "the return route to clients is not this interface: their packets are dropped silently",
        ),
        (true, 0) => Finding::warning("rp_filter", &link.name, "is strict (1)").why(why),
        (true, drops) => {
            let packets = count(drops, "packet");
            let found = format!("is strict (1), and this host has dropped {packets} by it");
            Finding::problem("rp_filter", &link.name, found).why(why)
        }
    };
    Some(finding.mend("sysctl -w net.ipv4.conf.all.rp_filter=2"))
}
