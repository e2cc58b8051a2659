//! The prefix that IPv4 tunnels come from: whether this host takes the ICMP errors that come back to it, and whether
//! reverse path filters (uRPF) let its packets pass.

use std::net::IpAddr;

use lb_base::count;

use crate::{
    facts::{Facts, VipProbeResult, VipProbes},
    finding::Finding,
};

const CHECK: &str = "source_prefix";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let prefix = facts.balancer.as_ref().and_then(|balancer| balancer.source_prefix);
    let Some(prefix) = prefix else { return Vec::new() };
    let subject = prefix.to_string();
    let ends = [prefix.first(), prefix.last()].map(IpAddr::V4);
    let route = |address| facts.network.survey.routes.get(&address);
    let add = format!("ip route add local {prefix} dev lo");
    let own = if ends.into_iter().all(|end| facts.network.is_local(end)) {
        Finding::ok(CHECK, &subject, "is local to this host")
    } else if facts.sysctls.get("net.ipv4.ip_forward").is_some_and(|value| value != 0)
        && ends.into_iter().any(|address| matches!(route(address), Some(Ok(_))))
    {
        Finding::warning(CHECK, &subject, "is not local to this host, which forwards")
            .why(
                "ICMP errors about tunnel packets come to it, go back to the router, and loop until their hop limit \
                 ends",
            )
            .mend(add)
    } else {
        Finding::warning(CHECK, &subject, "is not local to this host")
            .why(
                "ICMP errors about tunnel packets come to it, and this host drops them uncounted: `nstat IcmpInDestUnreachs` \
                 does not show paths that are too narrow",
            )
            .mend(add)
    };
    let mut findings = vec![own];
    findings.extend(passes(facts).map(|found| Finding::ok(CHECK, subject, found)));
    findings
}

/// Whether routers on the path let packets of the prefix pass: VIP probes have its first address.
fn passes(facts: &Facts) -> Option<String> {
    let Some(VipProbes::Done { probes, .. }) = &facts.vip_probes else { return None };
    let arrived = |result: &VipProbeResult| {
        use VipProbeResult::{Narrow, Unsized, Works};
        matches!(result, Works | Narrow { .. } | Unsized(_))
    };
    let of_it = probes.iter().filter(|probe| probe.backend.is_ipv4() && probe.is_tunnel());
    let mut backends: Vec<_> =
        of_it.filter(|probe| arrived(&probe.result)).map(|probe| probe.backend).collect();
    backends.sort();
    backends.dedup();
    let number = backends.len() as u64;
    (number > 0).then(|| {
        format!(
            "no reverse path filter drops its packets on the way to {}",
            count(number, "backend")
        )
    })
}
