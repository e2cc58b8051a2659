//! One file a check. A check judges facts and reads nothing.

mod allow_lists;
mod arp;
mod capabilities;
mod daemon;
mod endpoints;
mod forwarding;
mod kernel;
mod mode;
mod mtu;
mod neighbours;
mod offloads;
mod pins;
mod return_path;
mod rp_filter;
mod served_vips;
mod services;
#[cfg(test)]
mod tests;
mod tunnels;
mod vip_routes;

use super::{commands, facts::Facts, finding::Finding};

/// A check: what it finds, nothing where it has nothing to look at.
type Check = fn(&Facts) -> Vec<Finding>;

/// What the host is for. Everything below may be the reason.
const FIRST: &[Check] = &[services::judge];

/// What anybody can read.
const OPEN: &[Check] = &[kernel::judge, capabilities::judge];

/// What takes rights to read. In the order in which they are printed: what others stand on comes first.
const CLOSED: &[Check] = &[
    pins::judge,
    daemon::judge,
    mode::judge,
    offloads::judge,
    vip_routes::judge,
    neighbours::judge,
    mtu::judge,
    tunnels::judge,
    forwarding::judge,
    allow_lists::judge,
    endpoints::judge,
    served_vips::judge,
    arp::judge,
    rp_filter::judge,
    return_path::judge,
];

/// What all checks find; without rights, those that need none. A daemon that may not be asked would look
/// like a dead one, and be restarted for nothing.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let (first, closed) =
        if capabilities::suffice(facts) { (FIRST, CLOSED) } else { (&[][..], &[][..]) };
    first.iter().chain(OPEN).chain(closed).flat_map(|check| check(facts)).collect()
}
