use lb_net::Unresolved;

use super::{
    RESTART, Row,
    fixture::{balancer, eth0, ip, silent},
};
use crate::{
    facts::Facts,
    finding::Level::{Ok, Problem},
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| away(f, Unresolved::NoRoute),
        "neighbours",
        Problem,
        "10.1.0.11",
        "ip route replace 10.1.0.11/32 via GATEWAY",
    ),
    (
        balancer,
        |f| away(f, Unresolved::Own(ip("10.1.0.11"))),
        "neighbours",
        Problem,
        "10.1.0.11",
        "spillway backend delete 10.1.0.11",
    ),
    (
        balancer,
        silent,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip neighbour flush to 10.0.0.1 dev eth0; ping -c 3 -I eth0 10.0.0.1",
    ),
    // The kernel still has its MAC, and so has the packet path, but the neighbour does not answer.
    (
        balancer,
        |f| {
            f.network.survey.neighbours[0].confirmed = false;
            f.network.answered = [(ip("10.0.0.1"), false)].into();
        },
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip neighbour flush to 10.0.0.1 dev eth0; ping -c 3 -I eth0 10.0.0.1",
    ),
    (balancer, |f| f.network.answered = [(ip("10.0.0.1"), true)].into(), "neighbours", Ok, "", ""),
    (balancer, noarp, "neighbours", Problem, "10.0.0.1 on eth0", "ip link set dev eth0 arp on"),
    (
        balancer,
        |f| eth0(f).interface.up = false,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip link set dev eth0 up",
    ),
    (
        balancer,
        |f| f.balancer.as_mut().unwrap().backends[0].direct = true,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "spillway pool update POOL --encapsulation ip_in_ip  # or, if 10.1.0.11 is on the link: \
         ip route replace 10.1.0.11/32 dev eth0",
    ),
    (balancer, moved, "neighbours", Problem, "10.0.0.1 on eth0", RESTART),
];

fn away(facts: &mut Facts, why: Unresolved) {
    facts.network.survey.routes.insert(ip("10.1.0.11"), Err(why));
}

fn noarp(facts: &mut Facts) {
    facts.balancer.as_mut().unwrap().backends[0].hop = None;
    facts.network.survey.neighbours.clear();
    eth0(facts).interface.noarp = true;
}

/// The gateway has another MAC address than in the packet path.
fn moved(facts: &mut Facts) {
    facts.network.survey.neighbours[0].mac = Some([2, 0, 0, 0, 0, 9]);
}
