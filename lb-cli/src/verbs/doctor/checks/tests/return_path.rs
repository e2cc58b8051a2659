use lb_daemon::net::survey::Way;

use super::{
    Row,
    scene::{LO, address, backend, eth0, ip, way},
};
use crate::verbs::doctor::{
    facts::Facts,
    finding::Level::{Ok, Warning},
};

/// As on the balancer, though 20 bytes less would do for a tunnel over IPv4.
const WIDER: &str = "ip link set dev eth0 mtu 1540  # only where every switch and router up to the balancer takes 1540";

pub(super) const ROWS: &[Row] = &[
    (backend, |f| eth0(f).interface.mtu = 1519, "mtu", Warning, "eth0", WIDER),
    (backend, |f| eth0(f).interface.mtu = 1520, "nothing", Ok, "", ""),
    // 1500 bytes less the tunnel's header of 20, the packet's of 20 and TCP's of 20.
    (backend, |f| asked_for(f, "1.0.0.1", 1440), "nothing", Ok, "", ""),
    (backend, |f| asked_for(f, "1.0.0.1", 1441), "mtu", Warning, "eth0", WIDER),
    // Where the packet is of IPv6, its header has 40.
    (backend, |f| asked_for_both(f, 1420), "nothing", Ok, "", ""),
    (backend, |f| asked_for_both(f, 1421), "mtu", Warning, "eth0", WIDER),
    (backend, over_ipv6, "mtu", Warning, "eth0", WIDER),
];

/// On a link of 1500 bytes the route to a client asks for segments of so many.
fn asked_for(facts: &mut Facts, client: &str, mss: u32) {
    eth0(facts).interface.mtu = 1500;
    let less = way("10.0.0.1").map(|way| Way { advmss: Some(mss), ..way });
    facts.network.survey.ways.insert(ip(client), less);
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
