use lb_daemon::net::survey::Way;

use super::{
    RESTART, Row,
    scene::{balancer, eth0, ip, way},
};
use crate::verbs::doctor::{
    facts::{Daemon, Facts},
    finding::Level::{Ok, Problem, Warning},
};

const WIDER: &str = "ip link set dev eth0 mtu 1540  # only where every switch and router up to the backend takes 1540";

pub(super) const ROWS: &[Row] = &[
    (balancer, |f| eth0(f).interface.mtu = 1519, "mtu", Warning, "eth0", WIDER),
    (balancer, dropped, "mtu", Problem, "eth0", WIDER),
    (
        balancer,
        narrow_route,
        "mtu",
        Warning,
        "route to 10.1.0.11",
        "ip route change $(ip route get fibmatch 10.1.0.11) mtu 1540  # only where every switch and router up to the backend takes 1540",
    ),
    (
        balancer,
        |f| f.balancer.as_mut().unwrap().backends[0].mtu = 1500,
        "mtu",
        Warning,
        "pinned maps",
        RESTART,
    ),
    (
        balancer,
        in_gue,
        "mtu",
        Warning,
        "eth0",
        "ip link set dev eth0 mtu 1552  # only where every switch and router up to the backend takes 1552",
    ),
    (balancer, said, "nothing", Ok, "", ""),
];

/// The operator has said what the path takes, which is less than the interface does.
fn said(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    facts.balancer.as_mut().unwrap().backends[0].mtu = 1400;
    let Some(Daemon::Answers { told, .. }) = &mut facts.daemon else { panic!("it answers") };
    told.sized.insert(ip("10.1.0.11"));
}

/// 12 bytes more: what was enough is a byte too little.
fn in_gue(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1531;
    facts.balancer.as_mut().unwrap().backends[0].overhead = 32;
}

fn dropped(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    facts.balancer.as_mut().unwrap().too_large = 12;
}

fn narrow_route(facts: &mut Facts) {
    let narrow = way("10.0.0.1").map(|way| Way { mtu: Some(1500), ..way });
    facts.network.survey.ways.insert(ip("10.1.0.11"), narrow);
}
