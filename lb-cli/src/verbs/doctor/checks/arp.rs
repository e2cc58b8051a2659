//! Who tells others of a VIP by ARP: on a backend nobody may.

use lb_daemon::dataplane::Role;

use super::{Facts, Finding};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    let vips: Vec<_> = receiver.vips.iter().copied().filter(|vip| vip.is_ipv4()).collect();
    let links = facts.role(Role::Receiver).map(|role| role.links.as_slice()).unwrap_or_default();
    if vips.is_empty() || facts.role(Role::Balancer).is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for link in links {
        let on_link =
            link.index.is_some_and(|at| vips.iter().any(|vip| facts.network.is_on_link(at, *vip)));
        findings.extend(wants(facts, &link.name, "arp_ignore", 1, on_link));
        findings.extend(wants(facts, &link.name, "arp_announce", 2, on_link));
    }
    findings
}

fn wants(
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
        "arp_ignore" => "this host answers ARP for the VIP on lo, and takes it from the balancer",
        _ => "this host asks for neighbours in the VIP's name, and they learn it from that",
    };
    Some(finding.why(why).mend(format!("sysctl -w net.ipv4.conf.all.{name}={least}")))
}
