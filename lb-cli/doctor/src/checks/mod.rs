//! The checks by theme, and their order. A check judges facts and reads nothing.

mod conditions;
mod daemon;
mod drops;
mod host;
mod interfaces;
mod mtu;
mod neighbours;
mod pins;
mod receiver;
mod services;
mod source_prefix;
#[cfg(test)]
mod tests;
mod tunnel_sources;
mod tunnels;
mod vips;

use crate::{facts::Facts, finding::Finding};

/// A check returns nothing if it does not apply to the host.
type Check = fn(&Facts) -> Vec<Finding>;

/// The purpose of the host. Everything below may be the reason for its findings.
const FIRST: &[Check] = &[services::check];

/// Checks that need no capabilities.
const UNPRIVILEGED: &[Check] = &[host::kernel, host::capabilities];

/// Checks that need capabilities, in the order of printing: causes before their effects.
const PRIVILEGED: &[Check] = &[
    pins::check,
    daemon::check,
    interfaces::modes,
    interfaces::offloads,
    vips::routes,
    source_prefix::check,
    tunnel_sources::check,
    neighbours::check,
    mtu::balancer,
    drops::check,
    tunnels::check,
    host::forwarding,
    receiver::allow_lists,
    receiver::endpoints,
    vips::served,
    receiver::arp,
    receiver::rp_filter,
    mtu::backend,
];

/// Runs all checks; without capabilities only those that need none. A daemon that may not be asked would look
/// dead, and be restarted for nothing.
pub fn run_all(facts: &Facts) -> Vec<Finding> {
    let (first, privileged) =
        if host::has_capabilities(facts) { (FIRST, PRIVILEGED) } else { (&[][..], &[][..]) };
    first.iter().chain(UNPRIVILEGED).chain(privileged).flat_map(|check| check(facts)).collect()
}
