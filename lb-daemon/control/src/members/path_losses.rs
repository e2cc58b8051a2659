//! When this host itself could not send to backends. Failures meanwhile are no sign of a backend that flaps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::{Duration, Instant},
};

use lb_model::{Configuration, Name};
use lb_net::Unresolved;

/// Backends without a next hop, now or before.
#[derive(Debug, Default)]
pub(super) struct PathLosses(BTreeMap<IpAddr, Loss>);

#[derive(Clone, Copy, Debug)]
enum Loss {
    Lasts,
    EndedAt(Instant),
}

impl PathLosses {
    pub(super) fn set(&mut self, backend: IpAddr, is_lost: bool, now: Instant) {
        if is_lost {
            self.0.insert(backend, Loss::Lasts);
        } else if let Some(loss @ Loss::Lasts) = self.0.get_mut(&backend) {
            *loss = Loss::EndedAt(now);
        }
    }

    /// When a backend last had no next hop.
    pub(super) fn last(&self, backend: IpAddr, now: Instant) -> Option<Instant> {
        self.0.get(&backend).map(|loss| match loss {
            Loss::Lasts => now,
            Loss::EndedAt(at) => *at,
        })
    }

    pub(super) fn keep(&mut self, backends: &BTreeSet<IpAddr>) {
        self.0.retain(|backend, _| backends.contains(backend));
    }
}

/// Whether a backend has no next hop because it does not answer on its own link: then its host is gone. Everything else is
/// between it and this host, or this host's own: an interface, a route, a gateway.
pub(super) fn is_own_silence(backend: IpAddr, why: &Unresolved) -> bool {
    matches!(why, Unresolved::Silent { gateway, .. } if *gateway == backend)
}

/// How long the failures that take a backend of a pool out may have been going on.
pub(super) fn longest_row(configuration: &Configuration, pool: &Name) -> Duration {
    let names = configuration.pools.get(pool).into_iter().flat_map(|pool| &pool.health_checks);
    let checks = names.filter_map(|name| configuration.health_checks.get(name));
    let rows = checks.map(|it| it.interval.saturating_add(it.timeout).saturating_mul(it.fall));
    rows.max().unwrap_or_default()
}
