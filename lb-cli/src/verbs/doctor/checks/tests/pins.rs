use lb_daemon::dataplane::Role;

use super::{
    RESTART, Row,
    scene::{ETH0, address, backend, balancer},
};
use crate::verbs::doctor::{
    facts::{Broken, Facts, Installed, Kind},
    finding::Level::{Problem, Warning},
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| broken(f, Kind::Incomplete),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v1",
        RESTART,
    ),
    (
        balancer,
        |f| broken(f, Kind::Unreadable),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v1",
        "spillway detach --role balancer  # once the daemon is stopped; then start it anew",
    ),
    (
        balancer,
        |f| broken(f, Kind::Changing),
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v1",
        "spillway doctor  # once more",
    ),
    (
        balancer,
        refused_beside,
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/receiver-v1",
        "spillway detach --role receiver",
    ),
    (
        backend,
        unread_beside,
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v1",
        "spillway doctor  # once more",
    ),
    (
        balancer,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/balancer-v0".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v0",
        "spillway detach --role balancer --layout 0",
    ),
    (
        backend,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/receiver-v7".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/receiver-v7",
        "spillway detach --role receiver --layout 7",
    ),
    // No name of a daemon's.
    (
        balancer,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/balancer-old".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-old",
        "rm -r /sys/fs/bpf/spillway/balancer-old",
    ),
];

/// Nothing of it was read.
fn broken(facts: &mut Facts, kind: Kind) {
    facts.roles[0].broken = Some(Broken { kind, why: "map X: why".into() });
    facts.balancer = None;
}

/// A receiver's maps without a program, beside a balancer at work.
fn refused_beside(facts: &mut Facts) {
    let role = Role::Receiver;
    facts.roles.push(Installed { role, links: Vec::new(), holder: None, broken: None });
}

/// A balancer that cannot be read has the VIP on its interface: that is no fault of the backend's.
fn unread_beside(facts: &mut Facts) {
    let role = Role::Balancer;
    facts.roles.push(Installed { role, ..facts.roles[0].clone() });
    facts.roles[1].broken = Some(Broken { kind: Kind::Changing, why: "pool 1: changed".into() });
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.1", 32));
}
