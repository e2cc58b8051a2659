use super::{
    Row,
    fixture::{ETH0, address, backend, balancer, device, ip, route},
    source_prefix,
};
use crate::{
    facts::Facts,
    finding::Level::{Ok, Problem},
};

pub(super) const ROUTES: &[Row] = &[
    (
        balancer,
        |f| f.network.survey.addresses.push(address(ETH0, "203.0.113.9", 24)),
        "nothing",
        Ok,
        "",
        "",
    ),
    (
        balancer,
        on_link,
        "vip_routes",
        Problem,
        "203.0.113.1",
        "ip address add 203.0.113.1/32 dev eth0",
    ),
    (
        balancer,
        elsewhere,
        "vip_routes",
        Problem,
        "203.0.113.1",
        "ip address delete 203.0.113.1/32 dev eth1",
    ),
    (
        balancer,
        source_too,
        "vip_routes",
        Problem,
        "203.0.113.1",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --source OWN_ADDRESS",
    ),
    (
        balancer,
        in_the_prefix,
        "vip_routes",
        Problem,
        "203.0.113.1",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --tunnel-source-prefix PREFIX",
    ),
];

/// The VIP is one of the addresses that tunnels come from, which are routed to this host.
fn in_the_prefix(facts: &mut Facts) {
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.1", 32));
    source_prefix::set(facts, [203, 0, 113, 0], 24);
    source_prefix::own(facts, &["203.0.113.0", "203.0.113.255"]);
}

fn source_too(facts: &mut Facts) {
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.1", 32));
    facts.balancer.as_mut().unwrap().backends[0].source = Some(ip("203.0.113.1"));
}

fn on_link(facts: &mut Facts) {
    facts.network.survey.routes.insert(ip("203.0.113.1"), route("203.0.113.1"));
}

fn elsewhere(facts: &mut Facts) {
    facts.network.survey.devices.push(device(3, "eth1", 1540));
    facts.network.survey.addresses.push(address(3, "203.0.113.1", 32));
}

pub(super) const SERVED: &[Row] = &[
    (
        backend,
        |f| {
            f.network.survey.addresses.pop();
        },
        "served_vips",
        Problem,
        "203.0.113.1",
        "ip address add 203.0.113.1/32 dev lo",
    ),
    (
        backend,
        |f| f.network.survey.addresses.push(address(ETH0, "203.0.113.1", 24)),
        "served_vips",
        Problem,
        "203.0.113.1",
        "ip address delete 203.0.113.1/24 dev eth0; ip address add 203.0.113.1/32 dev lo",
    ),
];
