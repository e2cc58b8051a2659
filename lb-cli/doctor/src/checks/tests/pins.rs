use lb_maps::Component;

use super::{
    RESTART, Row,
    fixture::{ETH0, address, backend, balancer},
};
use crate::{
    facts::{Facts, InstalledComponent, MapsProblem, MapsProblemKind},
    finding::Level::{Problem, Warning},
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| maps_problem(f, MapsProblemKind::Incomplete),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v7",
        RESTART,
    ),
    (
        balancer,
        |f| maps_problem(f, MapsProblemKind::Unreadable),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v7",
        "spillway detach --component balancer  # after stopping the daemon; then start it again",
    ),
    (
        balancer,
        |f| maps_problem(f, MapsProblemKind::Changing),
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v7",
        "spillway doctor  # again",
    ),
    (
        balancer,
        refused_beside,
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/receiver-v7",
        "spillway detach --component receiver",
    ),
    (
        backend,
        unread_beside,
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v7",
        "spillway doctor  # again",
    ),
    (
        balancer,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/balancer-v0".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v0",
        "spillway detach --component balancer --layout 0",
    ),
    (
        backend,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/receiver-v7".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/receiver-v7",
        "spillway detach --component receiver --layout 7",
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
fn maps_problem(facts: &mut Facts, kind: MapsProblemKind) {
    facts.components[0].maps_problem = Some(MapsProblem { kind, why: "map X: why".into() });
    facts.balancer = None;
}

/// A receiver's maps without a program, next to a working balancer.
fn refused_beside(facts: &mut Facts) {
    let component = Component::Receiver;
    facts.components.push(InstalledComponent {
        component,
        links: Vec::new(),
        owner: None,
        started: None,
        maps_problem: None,
    });
}

/// A balancer whose maps cannot be read has the VIP on its interface: that is not a fault of the backend.
fn unread_beside(facts: &mut Facts) {
    let component = Component::Balancer;
    facts.components.push(InstalledComponent { component, ..facts.components[0].clone() });
    facts.components[1].maps_problem =
        Some(MapsProblem { kind: MapsProblemKind::Changing, why: "pool 1: changed".into() });
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.1", 32));
}
