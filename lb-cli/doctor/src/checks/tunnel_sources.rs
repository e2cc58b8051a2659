//! The source addresses of tunnels: which there are, and whether what is sent back to them comes to this host.

use std::{collections::BTreeMap, net::IpAddr};

use lb_base::count;
use lb_maps::Component;

use crate::{facts::Facts, finding::Finding, start_command::start_command};

const CHECK: &str = "tunnel_sources";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let prefix = balancer.source_prefix;
    let mut backends: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for backend in &balancer.backends {
        // Those of a prefix have a check of their own.
        let source = backend.source.filter(|it| !(prefix.is_some() && it.is_ipv4()));
        if let Some(source) = source {
            *backends.entry(source).or_default() += 1;
        }
    }
    backends.into_iter().map(|(source, number)| finding(facts, source, number)).collect()
}

fn finding(facts: &Facts, source: IpAddr, backends: u64) -> Finding {
    let subject = source.to_string();
    let to = count(backends, "backend");
    if facts.network.is_local(source) {
        return Finding::ok(CHECK, subject, format!("is the source of tunnels to {to}"));
    }
    let found = format!("is the source of tunnels to {to}, but no address of this host");
    Finding::warning(CHECK, subject, found)
        .why("ICMP errors about tunnels, and answers to checks through them, do not come back to this host")
        .mend(start_command(facts, Component::Balancer, Some(("source", "OWN_ADDRESS"))))
}
