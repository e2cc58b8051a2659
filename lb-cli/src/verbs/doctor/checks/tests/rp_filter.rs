use lb_daemon::net::survey::Way;

use super::{
    Row,
    scene::{backend, ip, set, way},
};
use crate::verbs::doctor::{
    facts::Facts,
    finding::Level::{Ok, Problem, Warning},
};

pub(super) const ROWS: &[Row] = &[
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.rp_filter", 1),
        "rp_filter",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.rp_filter=2",
    ),
    (
        backend,
        elsewhere_back,
        "rp_filter",
        Problem,
        "eth0",
        "sysctl -w net.ipv4.conf.all.rp_filter=2",
    ),
    (backend, |f| set(f, "net.ipv4.conf.all.rp_filter", 0), "nothing", Ok, "", ""),
];

fn elsewhere_back(facts: &mut Facts) {
    set(facts, "net.ipv4.conf.all.rp_filter", 1);
    let other = way("10.0.0.1").map(|way| Way { interface: 3, ..way });
    facts.network.survey.ways.insert(ip("1.0.0.1"), other);
}
