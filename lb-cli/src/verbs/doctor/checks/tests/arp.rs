use super::{
    Row,
    scene::{ETH0, address, backend, ip, set},
};
use crate::verbs::doctor::{
    facts::Facts,
    finding::Level::{Problem, Warning},
};

pub(super) const ROWS: &[Row] = &[
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.arp_ignore", 0),
        "arp",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.arp_ignore=1",
    ),
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.arp_announce", 1),
        "arp",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.arp_announce=2",
    ),
    (backend, answered_for, "arp", Problem, "eth0", "sysctl -w net.ipv4.conf.all.arp_ignore=1"),
];

/// The VIP is of the backend's own subnet, where it is asked for.
fn answered_for(facts: &mut Facts) {
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.9", 24));
    facts.receiver.as_mut().unwrap().endpoints.insert(ip("203.0.113.9"));
    set(facts, "net.ipv4.conf.all.arp_ignore", 0);
}
