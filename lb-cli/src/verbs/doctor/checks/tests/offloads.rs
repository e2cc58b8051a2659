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
    (balancer, bond, "offloads", Problem, "port0", "ethtool -K port0 rxvlan off"),
    (balancer, bond_in_order, "offloads", Ok, "port0", ""),
    (balancer, providers, "offloads", Problem, "eth0", "ethtool -K eth0 rx-vlan-stag-hw-parse off"),
    (backend, trunk_at_tc, "offloads", Ok, "eth0", ""),
    (balancer, unfinished, "offloads", Problem, "eth0", "ethtool -K eth0 tx off"),
];

fn trunk(facts: &mut Facts) {
    trunk_with(facts, "rx-vlan-hw-parse");
}

/// A trunk of a bond whose port's card takes tags off.
fn bond(facts: &mut Facts) {
    bond_in_order(facts);
    let port = facts.network.cards.get_mut(&4).unwrap();
    port.offloads.as_mut().unwrap().insert("rx-vlan-hw-parse".into());
}

/// What is on for the bond itself touches no frame that comes in.
fn bond_in_order(facts: &mut Facts) {
    let plain = card(facts).clone();
    trunk(facts);
    let mut port = device(4, "port0", 1540);
    port.interface.bond = Some(ETH0);
    facts.network.survey.devices.push(port);
    facts.network.cards.insert(4, plain);
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
