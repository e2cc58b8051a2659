//! What a reload takes. docs/settings.md, docs/install.md and the comments of packaging/etc say the same, which a
//! test compares.

use crate::role::arguments::Role;

/// Settings of the balancer that a reload brings into force.
const BALANCER: &[&str] = &["apply", "tls-client"];

/// Settings of the receiver that a reload brings into force.
const RECEIVER: &[&str] = &["allow-source", "gue-port", "tunnel-endpoint", "vip"];

/// Names of the settings that a reload brings into force; all others wait for the next start.
pub(in crate::role) fn reloaded(role: &Role) -> &'static [&'static str] {
    match role {
        Role::Balancer(_) => BALANCER,
        Role::Receiver(_) => RECEIVER,
    }
}
