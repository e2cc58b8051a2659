//! Whether this host would hear an answer at all.

use lb_daemon::net::Unresolved;

use super::super::Facts;
use crate::verbs::doctor::facts::{Outcome, Way};

/// Values of `rp_filter` (Linux, networking/ip-sysctl).
const STRICT: i64 = 1;
const LOOSE: i64 = 2;

/// A way, where this host would hear an answer: a reverse path filter takes nothing from a VIP whose route
/// leads nowhere, and a strict one nothing where the route leads elsewhere.
pub(super) fn heard(facts: &Facts, way: &Way) -> Way {
    let is_silent = matches!(way.outcome, Outcome::Silent { is_there: true, .. });
    match filtered(facts, way).filter(|_| is_silent) {
        Some(why) => {
            let why = format!("this host takes no answer from it: {why}");
            Way { outcome: Outcome::Barred(why), ..way.clone() }
        }
        None => way.clone(),
    }
}

/// Why the reverse path filter drops what the VIP answers; `None`: it does not. IPv6 has no such filter.
fn filtered(facts: &Facts, way: &Way) -> Option<String> {
    if way.vip.is_ipv6() {
        return None;
    }
    let from = facts.network.way(way.backend)?.interface;
    let name = facts.network.name(from);
    let value = facts.sysctls.effective(&name, "rp_filter")?;
    let filter = format!("its reverse path filter (rp_filter={value} on {name})");
    match facts.network.survey.ways.get(&way.vip)? {
        Err(why @ (Unresolved::NoRoute | Unresolved::Refused(_))) => {
            let is_on = matches!(value, STRICT | LOOSE);
            is_on.then(|| format!("{filter} asks for a route to the VIP, and finds {why}"))
        }
        Ok(back) if value == STRICT && back.interface != from => {
            let back = facts.network.name(back.interface);
            Some(format!("{filter} asks for a route to the VIP there, and it leaves by {back}"))
        }
        _ => None,
    }
}
