//! Conditions about tunnels that would have no source address.

use std::{collections::BTreeSet, net::IpAddr};

use super::Known;
use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    count,
};
use lb_model::next_hop::NoNextHop;

/// Backends that get no packets because this host has no source address for their tunnels.
#[derive(Debug, Default)]
pub(super) struct MissingSources {
    v4: BTreeSet<IpAddr>,
    v6: BTreeSet<IpAddr>,
}

impl MissingSources {
    /// Checks all backends again, because those that were removed report nothing.
    pub(super) fn check(&mut self, known: &Known, conditions: &Conditions) {
        let pools = known.configuration().pools.values();
        let backends: BTreeSet<_> = pools.flat_map(|pool| pool.backends.keys().copied()).collect();
        for is_v4 in [true, false] {
            let missing = self.of(is_v4);
            let of_version = backends.iter().filter(|backend| backend.is_ipv4() == is_v4);
            let now: BTreeSet<_> =
                of_version.filter(|backend| is_missing(**backend, known)).copied().collect();
            if *missing != now {
                *missing = now;
                self.update_condition(is_v4, conditions);
            }
        }
    }

    /// Checks one backend, whose next hop changed.
    pub(super) fn check_backend(
        &mut self,
        address: IpAddr,
        known: &Known,
        conditions: &Conditions,
    ) {
        let missing = self.of(address.is_ipv4());
        let has_changed = match is_missing(address, known) {
            true => missing.insert(address),
            false => missing.remove(&address),
        };
        if has_changed {
            self.update_condition(address.is_ipv4(), conditions);
        }
    }

    fn of(&mut self, is_v4: bool) -> &mut BTreeSet<IpAddr> {
        if is_v4 { &mut self.v4 } else { &mut self.v6 }
    }

    fn update_condition(&mut self, is_v4: bool, conditions: &Conditions) {
        let family = if is_v4 { "IPv4" } else { "IPv6" };
        let text = format!("{family} source address");
        let subject = Subject::named(ConditionReason::SourceAddress, text);
        let missing = self.of(is_v4);
        let Some(first) = missing.first() else { return conditions.end(&subject) };
        let more = match missing.len() as u64 - 1 {
            0 => String::new(),
            more => format!(" and {}", count(more, "more backend")),
        };
        let cause = format!(
            "missing: tunnels to {first}{more} have none, so no packets go there; give this host an {family} address \
             that is not a service's, or set `source` and restart"
        );
        conditions.begin(&subject, &cause);
    }
}

fn is_missing(backend: IpAddr, known: &Known) -> bool {
    matches!(known.view.next_hop(&backend), Some(Err(NoNextHop::NoSource(_))))
}
