use lb_daemon::{dataplane::AttachedMode, net::survey::Device};

use super::{
    Row,
    scene::{ETH0, backend, balancer, card, device, offload},
};
use crate::verbs::doctor::{
    facts::Facts,
    finding::Level::{Ok, Problem},
};

pub(super) const ROWS: &[Row] = &[
    (balancer, |f| offload(f, "rx-lro"), "offloads", Problem, "eth0", "ethtool -K eth0 lro off"),
    (
        balancer,
        |f| offload(f, "rx-gro-hw"),
        "offloads",
        Problem,
        "eth0",
        "ethtool -K eth0 rx-gro-hw off",
    ),
    (balancer, trunk, "offloads", Problem, "eth0", "ethtool -K eth0 rxvlan off"),
    (balancer, providers, "offloads", Problem, "eth0", "ethtool -K eth0 rx-vlan-stag-hw-parse off"),
    (backend, trunk_at_tc, "offloads", Ok, "eth0", ""),
    (balancer, unfinished, "offloads", Problem, "eth0", "ethtool -K eth0 tx off"),
];

fn trunk(facts: &mut Facts) {
    trunk_with(facts, "rx-vlan-hw-parse");
}

/// A tag of 802.1ad is an offload of its own.
fn providers(facts: &mut Facts) {
    trunk_with(facts, "rx-vlan-stag-hw-parse");
}

fn trunk_with(facts: &mut Facts, feature: &str) {
    offload(facts, feature);
    let vlan = Device { kind: Some("vlan".into()), lower: Some(ETH0), ..device(3, "eth0.5", 1540) };
    facts.network.survey.devices.push(vlan);
}

/// tc has the tag that the card took off, and the stack what the card merged.
fn trunk_at_tc(facts: &mut Facts) {
    trunk(facts);
    offload(facts, "rx-vlan-stag-hw-parse");
    offload(facts, "rx-gro-hw");
    facts.roles[0].links[0].at_tc = true;
    facts.roles[0].links[0].mode = Some(AttachedMode::Tc);
}

fn unfinished(facts: &mut Facts) {
    offload(facts, "tx-checksum-ip-generic");
    card(facts).driver = Some("veth".into());
}
