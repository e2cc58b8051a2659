use std::net::IpAddr;

use lb_net::survey::RouteInfo;

use super::{
    Row,
    fixture::{ETH0, address, backend, ip, route, set},
};
use crate::{
    facts::Facts,
    finding::Level::{Ok, Problem, Warning},
};

const RESTART: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver";

fn add(facts: &mut Facts, own: &str) {
    facts.network.survey.addresses.push(address(ETH0, own, 24));
}

pub(super) const ENDPOINTS: &[Row] = &[
    (backend, |f| add(f, "10.0.0.5"), "endpoints", Problem, "10.0.0.5", RESTART),
    (
        backend,
        |f| ["10.0.0.6", "10.0.0.5", "10.0.0.7"].into_iter().for_each(|own| add(f, own)),
        "endpoints",
        Problem,
        "10.0.0.5 and 2 more",
        RESTART,
    ),
    (
        backend,
        |f| {
            add(f, "10.0.0.5");
            let others = (0..16_383_u32).map(|n| IpAddr::from((0x0a01_0000 + n).to_be_bytes()));
            f.receiver.as_mut().unwrap().endpoints.extend(others);
        },
        "endpoints",
        Problem,
        "10.0.0.5",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver --tunnel-endpoint 10.0.0.5",
    ),
    (
        backend,
        |f| {
            f.network.survey.addresses.retain(|own| own.address != ip("10.0.0.2"));
            f.receiver.as_mut().unwrap().endpoints.clear();
        },
        "endpoints",
        Problem,
        "receiver",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver --tunnel-endpoint ADDRESS",
    ),
    // A duplicate, one that is still asked for, and the like.
    (
        backend,
        |f| {
            add(f, "10.0.0.5");
            f.network.survey.addresses.last_mut().unwrap().reachable = false;
        },
        "endpoints",
        Ok,
        "",
        "",
    ),
    // Another one that is listed.
    (
        backend,
        |f| f.receiver.as_mut().unwrap().endpoints.extend([ip("10.9.0.1")]),
        "endpoints",
        Ok,
        "",
        "",
    ),
    (
        backend,
        |f| f.receiver.as_mut().unwrap().not_local = Some(7),
        "endpoints",
        Warning,
        "tunnels",
        "tcpdump -nc 10 'proto 4 or proto 41 or udp port 6080'  # which addresses",
    ),
    (
        backend,
        |f| {
            f.receiver.as_mut().unwrap().not_local = Some(7);
            set(f, "net.ipv4.ip_forward", 1);
        },
        "endpoints",
        Ok,
        "",
        "",
    ),
];

pub(super) const ALLOW_LISTS: &[Row] = &[
    (
        backend,
        |f| f.receiver.as_mut().unwrap().not_allowed = Some(7),
        "allow_lists",
        Warning,
        "sources",
        "tcpdump -nc 10 'proto 4 or proto 41 or udp port 6080'  # which addresses",
    ),
    (
        backend,
        |f| f.receiver.as_mut().unwrap().sources.push("0.0.0.0/0".into()),
        "allow_lists",
        Warning,
        "0.0.0.0/0",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver \
         --allow-source BALANCER_ADDRESS",
    ),
];

pub(super) const ARP: &[Row] = &[
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

/// The VIP is in the backend's own subnet, where hosts ask for it.
fn answered_for(facts: &mut Facts) {
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.9", 24));
    facts.receiver.as_mut().unwrap().endpoints.insert(ip("203.0.113.9"));
    set(facts, "net.ipv4.conf.all.arp_ignore", 0);
}

pub(super) const RP_FILTER: &[Row] = &[
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.rp_filter", 1),
        "rp_filter",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.rp_filter=2",
    ),
    // Some client's packets come by another way than the one back.
    (
        backend,
        |f| {
            set(f, "net.ipv4.conf.all.rp_filter", 1);
            f.host.rp_filter_drops = 3;
        },
        "rp_filter",
        Problem,
        "eth0",
        "sysctl -w net.ipv4.conf.all.rp_filter=2",
    ),
    (backend, |f| f.host.rp_filter_drops = 3, "nothing", Ok, "", ""),
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
    let other = route("10.0.0.1").map(|way| RouteInfo { interface: 3, ..way });
    facts.network.survey.routes.insert(ip("1.0.0.1"), other);
}
