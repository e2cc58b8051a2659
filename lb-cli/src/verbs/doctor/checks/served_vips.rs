//! The VIPs of a backend: its own, and on `lo`.

use std::net::IpAddr;

use super::{Facts, Finding};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    receiver.vips.iter().map(|vip| of(facts, *vip)).collect()
}

fn of(facts: &Facts, vip: IpAddr) -> Finding {
    let bits = if vip.is_ipv4() { 32 } else { 128 };
    let add = format!("ip address add {vip}/{bits} dev lo");
    let subject = vip.to_string();
    let own = facts.network.own(vip);
    let outside = own.iter().find(|own| facts.network.name(own.interface) != "lo");
    match (own.first(), outside) {
        (None, _) => Finding::problem("served_vips", subject, "is not an address of this host")
            .why("packets for it come out of the tunnel and are nobody's")
            .mend(add),
        (_, Some(address)) => {
            let at = facts.network.name(address.interface);
            // A balancer of the same host has it there to answer for it.
            if facts.balancer.as_ref().is_some_and(|balancer| balancer.vips.contains(&vip)) {
                return Finding::ok(
                    "served_vips",
                    subject,
                    format!("is on {at}, for the balancer"),
                );
            }
            if facts.unread_balancer() {
                let found = format!("is on {at}, and the balancer here cannot be read");
                return Finding::ok("served_vips", subject, found);
            }
            let prefix = address.prefix;
            Finding::problem("served_vips", subject, format!("is on {at}"))
                .why("this host then answers ARP or NDP for it, and clients come to it past the balancer")
                .mend(format!("ip address delete {vip}/{prefix} dev {at}; {add}"))
        }
        (Some(_), None) => Finding::ok("served_vips", subject, "is on lo"),
    }
}
