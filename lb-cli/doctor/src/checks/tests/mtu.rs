use lb_net::survey::RouteInfo;

use super::{
    RESTART, Row,
    fixture::{LO, address, backend, balancer, eth0, ip, route},
};
use crate::{
    facts::{DaemonState, Facts},
    finding::Level::{Ok, Problem, Warning},
};

const WIDER: &str = "ip link set dev eth0 mtu 1540  # only if every switch and router up to the backend supports 1540";

pub(super) const BALANCER: &[Row] = &[
    (balancer, |f| eth0(f).interface.mtu = 1519, "mtu", Warning, "eth0", WIDER),
    (balancer, dropped, "mtu", Problem, "eth0", WIDER),
    (
        balancer,
        narrow_route,
        "mtu",
        Warning,
        "route to 10.1.0.11",
        "ip route change $(ip route get fibmatch 10.1.0.11) mtu 1540  # only if every switch and router up to the backend supports 1540",
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
        "ip link set dev eth0 mtu 1552  # only if every switch and router up to the backend supports 1552",
    ),
    (balancer, configured, "nothing", Ok, "", ""),
];

/// The operator has configured the MTU of the path, which is smaller than that of the interface.
fn configured(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    facts.balancer.as_mut().unwrap().backends[0].mtu = 1400;
    let Some(DaemonState::Answers { configuration, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    configuration.with_mtu.insert(ip("10.1.0.11"));
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
    let narrow = route("10.0.0.1").map(|way| RouteInfo { mtu: Some(1500), ..way });
    facts.network.survey.routes.insert(ip("10.1.0.11"), narrow);
}

/// As on the balancer, though 20 bytes less would do for a tunnel over IPv4.
const WIDER_ON_BACKEND: &str = "ip link set dev eth0 mtu 1540  # only if every switch and router up to the balancer supports 1540";

pub(super) const BACKEND: &[Row] = &[
    (backend, |f| eth0(f).interface.mtu = 1519, "mtu", Warning, "eth0", WIDER_ON_BACKEND),
    (backend, |f| eth0(f).interface.mtu = 1520, "nothing", Ok, "", ""),
    // 1500 bytes less the tunnel's header of 20, the packet's of 20 and TCP's of 20.
    (backend, |f| asked_for(f, "1.0.0.1", 1440), "nothing", Ok, "", ""),
    (backend, |f| asked_for(f, "1.0.0.1", 1441), "mtu", Warning, "eth0", WIDER_ON_BACKEND),
    // Where the packet is of IPv6, its header has 40.
    (backend, |f| asked_for_both(f, 1420), "nothing", Ok, "", ""),
    (backend, |f| asked_for_both(f, 1421), "mtu", Warning, "eth0", WIDER_ON_BACKEND),
    (backend, over_ipv6, "mtu", Warning, "eth0", WIDER_ON_BACKEND),
];

/// On a link of 1500 bytes the route to a client asks for segments of so many.
fn asked_for(facts: &mut Facts, client: &str, mss: u32) {
    eth0(facts).interface.mtu = 1500;
    let less = route("10.0.0.1").map(|way| RouteInfo { advmss: Some(mss), ..way });
    facts.network.survey.routes.insert(ip(client), less);
}

/// The same of both families, with a VIP of each.
fn asked_for_both(facts: &mut Facts, mss: u32) {
    let vip = "2001:db8:f::1";
    facts.receiver.as_mut().unwrap().vips.push(ip(vip));
    facts.network.survey.addresses.push(address(LO, vip, 128));
    asked_for(facts, "1.0.0.1", 1440);
    asked_for(facts, "2600::1", mss);
}

/// Tunnels come over IPv6, whose header has 40 bytes.
fn over_ipv6(facts: &mut Facts) {
    facts.receiver.as_mut().unwrap().sources = vec!["fd00::2/128".into()];
    eth0(facts).interface.mtu = 1539;
}
