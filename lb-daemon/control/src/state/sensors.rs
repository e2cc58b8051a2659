use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use tokio::sync::watch;

use crate::{members::is_checked, status::View};
use lb_common::abi::member::Accepts;
use lb_health::Target;
use lb_model::{Configuration, Pool, Via};

/// What the sensors watch.
#[derive(Debug, Default)]
pub struct Sensors {
    /// Members to probe, with their checks.
    pub targets: watch::Sender<Arc<Vec<Target>>>,
    /// Backends whose next hop is needed.
    pub next_hops: watch::Sender<Arc<BTreeSet<IpAddr>>>,
    /// Addresses of the services, which no tunnel may have as its source.
    pub services: watch::Sender<Arc<BTreeSet<IpAddr>>>,
    /// What the last update was for.
    last: Option<(Arc<Configuration>, BTreeSet<IpAddr>)>,
}

impl Sensors {
    /// Points the checks at a configuration. Returns the backends whose next hop is needed: its own and `others`; `None`
    /// if all is as it was.
    pub(super) fn update(
        &mut self,
        configuration: &Arc<Configuration>,
        view: &View,
        others: BTreeSet<IpAddr>,
    ) -> Option<Arc<BTreeSet<IpAddr>>> {
        let last = self.last.replace((Arc::clone(configuration), others.clone()));
        if last.is_some_and(|(last, leaving)| leaving == others && asks_alike(&last, configuration))
        {
            return None;
        }
        self.services.send_if_modified(|there| replace_services(there, configuration));
        let mut targets = Vec::new();
        let mut addresses = others;
        for (name, pool) in &configuration.pools {
            let checks: Vec<_> = pool
                .health_checks
                .iter()
                .filter_map(|name| {
                    let check = configuration.health_checks.get(name)?;
                    Some((name.clone(), check.clone()))
                })
                .collect();
            let asks_vips = checks.iter().any(|(_, check)| check.via == Via::Tunnel);
            let served = configuration.services.values().filter(|it| asks_vips && it.pool == *name);
            let vips: BTreeSet<_> = served.map(|service| service.address).collect();
            for (address, backend) in &pool.backends {
                addresses.insert(*address);
                if is_checked(pool, backend.admin_state) {
                    let member = view.get(name, address);
                    let accepts = member.map_or(Accepts::Nothing, |member| member.state.accepts());
                    targets.push(Target {
                        pool: name.clone(),
                        address: *address,
                        checks: checks.clone(),
                        vips: vips.clone(),
                        encapsulation: pool.encapsulation,
                        urgent: accepts == Accepts::Nothing,
                        is_up: accepts == Accepts::All,
                    });
                }
            }
        }
        self.targets.send_replace(Arc::new(targets));
        Some(Arc::new(addresses))
    }
}

/// Returns whether the services of a configuration have other addresses.
fn replace_services(there: &mut Arc<BTreeSet<IpAddr>>, configuration: &Configuration) -> bool {
    let services = configuration.services.values().map(|service| service.address);
    let services: BTreeSet<_> = services.collect();
    let differ = **there != services;
    if differ {
        *there = Arc::new(services);
    }
    differ
}

/// Whether two configurations have the same targets.
fn asks_alike(before: &Configuration, after: &Configuration) -> bool {
    let checked = |pool: &Pool| {
        let backends = pool.backends.iter();
        let backends =
            backends.map(|(address, backend)| (*address, is_checked(pool, backend.admin_state)));
        backends.collect::<Vec<_>>()
    };
    let mut pools = before.pools.iter().zip(&after.pools);
    before.health_checks == after.health_checks
        && before.services == after.services
        && before.pools.len() == after.pools.len()
        && pools.all(|((name, pool), (other_name, other))| {
            name == other_name
                && (pool == other
                    || pool.health_checks == other.health_checks
                        && pool.encapsulation == other.encapsulation
                        && checked(pool) == checked(other))
        })
}
