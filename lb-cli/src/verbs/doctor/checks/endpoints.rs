//! Where a receiver's tunnels end: at each address of the host that is no VIP.

use lb_common::abi::limits::MAX_ENDPOINTS;
use lb_daemon::dataplane::Role;

use super::{Facts, Finding, commands, tunnels::some};
use crate::verbs::doctor::facts::Receiver;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    [Some(own(facts, receiver)), passed_on(facts, receiver)].into_iter().flatten().collect()
}

/// Whether tunnels end at the addresses that the host has.
fn own(facts: &Facts, receiver: &Receiver) -> Finding {
    let own = facts.network.survey.addresses.iter().filter(|own| own.reachable);
    let own = own.map(|own| own.address).filter(|own| !receiver.vips.contains(own));
    let mut missing: Vec<_> = own.filter(|own| !receiver.endpoints.contains(own)).collect();
    missing.sort();
    let Some(first) = missing.first().map(ToString::to_string) else {
        return match receiver.endpoints.len() {
            0 => Finding::problem("endpoints", "receiver", "there are none")
                .why("tunnels end at addresses of this host, and it has none but VIPs")
                .mend(commands::start(facts, Role::Receiver, Some(("tunnel-endpoint", "ADDRESS")))),
            1 => Finding::ok("endpoints", "receiver", "tunnels end at 1 address"),
            count => {
                Finding::ok("endpoints", "receiver", format!("tunnels end at {count} addresses"))
            }
        };
    };
    let finding = Finding::problem("endpoints", some(&missing), "no tunnel ends there");
    if receiver.endpoints.len() == MAX_ENDPOINTS as usize {
        let change = Some(("tunnel-endpoint", first.as_str()));
        return finding
            .why(format!("the host has more addresses than there is room for, {MAX_ENDPOINTS}"))
            .mend(commands::start(facts, Role::Receiver, change));
    }
    let runs = facts.role(Role::Receiver).is_some_and(|installed| installed.holder.is_some());
    let whose = if runs { "the daemon missed it" } else { "it came while no daemon ran" };
    finding
        .why(format!("{whose}: balancers' packets to it stay in their tunnels"))
        .mend(commands::start(facts, Role::Receiver, None))
}

/// Tunnels that arrive for other addresses, on a host that sends nothing on.
fn passed_on(facts: &Facts, receiver: &Receiver) -> Option<Finding> {
    let packets = receiver.not_local?;
    let forwards = |name| facts.sysctls.get(name).is_some_and(|value| value != 0);
    let found = format!(
        "balancers send tunnels to other addresses than this host's, {packets} packets so far"
    );
    if ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"].into_iter().any(forwards) {
        return Some(Finding::ok("endpoints", "tunnels", found));
    }
    let start = commands::start(facts, Role::Receiver, Some(("tunnel-endpoint", "ADDRESS")));
    Some(
        Finding::warning("endpoints", "tunnels", found)
            .why("they are left as they came, and the host routes nothing: only a bridge takes them further")
            .mend("tcpdump -nc 10 'proto 4 or proto 41 or udp port 6080'  # which addresses")
            .mend(format!("{start}  # where they are meant for this host")),
    )
}
