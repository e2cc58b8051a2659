//! The reverse path filter of a backend: a client's packet comes in by the tunnel, and the way back to
//! the client may be another one.

use lb_daemon::dataplane::{Linked, Role};

use super::{Facts, Finding};

/// Linux, networking/ip-sysctl.
const STRICT: i64 = 1;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let serves = facts.receiver.as_ref().is_some_and(|r| r.vips.iter().any(|vip| vip.is_ipv4()));
    let links = facts.role(Role::Receiver).map(|role| role.links.as_slice()).unwrap_or_default();
    links.iter().filter(|_| serves).filter_map(|link| of(facts, link)).collect()
}

fn of(facts: &Facts, link: &Linked) -> Option<Finding> {
    let value = facts.sysctls.effective(&link.name, "rp_filter")?;
    if value != STRICT {
        return Some(Finding::ok("rp_filter", &link.name, format!("is {value}")));
    }
    let back = facts.network.way_to_clients(true).map(|way| way.interface);
    let finding = match back.is_some() && back == link.index {
        true => Finding::warning("rp_filter", &link.name, "is strict (1)")
            .why("a client to whom the way back is not this interface is cut off, without a word"),
        false => Finding::problem("rp_filter", &link.name, "is strict (1)")
            .why("the way back to clients is not this interface: their packets are dropped, without a word"),
    };
    Some(finding.mend("sysctl -w net.ipv4.conf.all.rp_filter=2"))
}
