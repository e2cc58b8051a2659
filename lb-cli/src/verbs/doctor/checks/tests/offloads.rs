use lb_daemon::net::survey::Device;

use super::{
    Row,
    scene::{ETH0, balancer, card, device, offload},
};
use crate::verbs::doctor::{facts::Facts, finding::Level::Problem};

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
    (balancer, unfinished, "offloads", Problem, "eth0", "ethtool -K eth0 tx off"),
];

fn trunk(facts: &mut Facts) {
    offload(facts, "rx-vlan-hw-parse");
    let vlan = Device { kind: Some("vlan".into()), lower: Some(ETH0), ..device(3, "eth0.5", 1540) };
    facts.network.survey.devices.push(vlan);
}

fn unfinished(facts: &mut Facts) {
    offload(facts, "tx-checksum-ip-generic");
    card(facts).driver = Some("veth".into());
}
