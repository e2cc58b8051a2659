//! Forwarding by the host itself, which a balancer does not need.

use super::{Facts, Finding};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let families = [(true, "net.ipv4.ip_forward"), (false, "net.ipv6.conf.all.forwarding")];
    let of = |(v4, name): (bool, &'static str)| {
        let mut vips = balancer.vips.iter().filter(|vip| vip.is_ipv4() == v4);
        // A VIP that is this host's own is never forwarded.
        let loops = vips.find(|vip| facts.network.own(**vip).is_empty());
        match (facts.sysctls.get(name)?, loops) {
            (0, _) => Some(Finding::ok("forwarding", name, "is 0; it is not needed")),
            (value, None) => {
                Some(Finding::ok("forwarding", name, format!("is {value}; it is not needed")))
            }
            (value, Some(vip)) => Some(
                Finding::warning("forwarding", name, format!("is {value}; it is not needed"))
                    .why(format!(
                        "packets to {vip} that are of no service go back to the router, and round \
                         again until their hop limit ends"
                    ))
                    .mend(format!("sysctl -w {name}=0")),
            ),
        }
    };
    families.into_iter().filter_map(of).collect()
}
