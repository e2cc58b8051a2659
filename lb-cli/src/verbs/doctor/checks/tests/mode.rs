use lb_daemon::dataplane::AttachedMode;
use lb_daemon::net::device::XdpFeatures;

use super::{
    RESTART, Row,
    scene::{balancer, card},
};
use crate::verbs::doctor::{
    facts::Facts,
    finding::Level::{Problem, Warning},
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| f.roles[0].links[0].mode = Some(AttachedMode::Generic),
        "mode",
        Warning,
        "eth0",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --xdp-mode native",
    ),
    (balancer, generic_only, "mode", Warning, "eth0", ""),
    (balancer, |f| f.roles[0].links[0].mode = None, "mode", Problem, "eth0", RESTART),
];

fn generic_only(facts: &mut Facts) {
    facts.roles[0].links[0].mode = Some(AttachedMode::Generic);
    card(facts).xdp = Some(XdpFeatures { native: false, transmits: false });
}
