//! A backend's end of the MTU: room for tunnels, or smaller segments asked for.

use lb_daemon::dataplane::Role;

use super::{
    Facts, Finding,
    mtu::{CAREFUL, enough, widen},
};

/// What GUE takes besides the outer IP header, bytes: UDP's header and its own.
const GUE: u32 = 12;

/// Headers of a TCP segment, bytes: IPv4 or IPv6, and TCP.
const fn headers(v4: bool) -> u32 {
    if v4 { 40 } else { 60 }
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    let links = facts.role(Role::Receiver).map(|role| role.links.as_slice()).unwrap_or_default();
    let outer_v6 = receiver.sources.iter().any(|source| source.contains(':'));
    let tunnel = if outer_v6 { 40 } else { 20 };
    let needed = facts.places.client_mtu + tunnel;
    let mut findings = Vec::new();
    for link in links {
        let Some(device) = link.index.and_then(|index| facts.network.device(index)) else {
            continue;
        };
        let mtu = device.interface.mtu;
        let asks = |v4: bool| {
            let served = receiver.vips.iter().any(|vip| vip.is_ipv4() == v4);
            let advmss = facts.network.way_to_clients(v4).and_then(|way| way.advmss);
            !served || advmss.is_some_and(|mss| mss + headers(v4) + tunnel <= mtu)
        };
        findings.push(if mtu >= needed + GUE {
            Finding::ok("mtu", &link.name, format!("takes packets of {mtu} bytes"))
        } else if mtu >= needed {
            let more = needed + GUE;
            Finding::ok("mtu", &link.name, format!("takes packets of {mtu} bytes; in GUE {more} are needed"))
        } else if asks(true) && asks(false) {
            Finding::ok("mtu", &link.name, "clients are asked for segments that fit")
        } else {
            Finding::warning("mtu", &link.name, format!("takes packets of {mtu} bytes, {needed} are needed"))
                .why(format!("a client's packet in its tunnel does not fit, unless clients are asked for smaller segments (advmss, see the README), or the balancer knows; {CAREFUL}"))
                .mend(widen(&format!("ip link set dev {}", link.name), enough(facts), "balancer"))
                .or(format!("spillway backend update ADDRESS --mtu {mtu}  # else, on the balancer: what the path to ADDRESS, this host, takes"))
        });
    }
    findings
}
