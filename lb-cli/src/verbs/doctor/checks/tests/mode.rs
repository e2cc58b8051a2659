use lb_daemon::dataplane::{AttachedMode, Hold, Occupant};
use lb_daemon::net::device::XdpFeatures;

use super::{
    RESTART, Row,
    scene::{backend, balancer, card},
};
use crate::verbs::doctor::{
    facts::Facts,
    finding::Level::{Ok, Problem, Warning},
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
    (
        balancer,
        |f| taken(f, Hold::Interface),
        "mode",
        Problem,
        "eth0",
        "ip link set dev eth0 xdp off",
    ),
    (
        balancer,
        |f| taken(f, Hold::Links(vec![3])),
        "mode",
        Problem,
        "eth0",
        "bpftool link detach id 3  # since a link holds it",
    ),
    (balancer, |f| grown(f, 3_506), "mode", Ok, "eth0", ""),
    (balancer, |f| grown(f, 3_507), "mode", Problem, "eth0", "ip link set dev eth0 mtu 3506"),
    (backend, taken_off_at_tc, "mode", Problem, "eth0", RESTART_RECEIVER),
];

const RESTART_RECEIVER: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver";

/// virtio_net of Linux 6.1 and 6.12 takes 3506 bytes in the driver, with pages of 4096.
fn grown(facts: &mut Facts, mtu: u32) {
    card(facts).driver = Some("virtio_net".into());
    facts.network.survey.devices[1].interface.mtu = mtu;
}

fn generic_only(facts: &mut Facts) {
    facts.roles[0].links[0].mode = Some(AttachedMode::Generic);
    card(facts).xdp = Some(XdpFeatures { native: false, transmits: false });
}

/// Another's XDP program has nothing to do with it.
fn taken_off_at_tc(facts: &mut Facts) {
    taken(facts, Hold::Interface);
    facts.roles[0].links[0].at_tc = true;
}

fn taken(facts: &mut Facts, hold: Hold) {
    facts.roles[0].links[0].mode = None;
    card(facts).occupant = Some(Occupant { program: "other (id 7)".into(), hold });
}
