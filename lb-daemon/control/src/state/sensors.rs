use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use tokio::sync::watch;

use crate::{members::is_checked, status::View};
use lb_common::abi::member::Accepts;
use lb_health::Target;
use lb_model::{Configuration, Via};

/// What the sensors watch.
#[derive(Debug, Default)]
pub struct Sensors {
    /// Members to probe, with their checks.
    pub targets: watch::Sender<Arc<Vec<Target>>>,
    /// Backends whose next hop is needed.
    pub next_hops: watch::Sender<Arc<BTreeSet<IpAddr>>>,
}

impl Sensors {
    /// Points the checks at a configuration. Returns the backends whose next hop is needed: its own and `others`.
    pub(super) fn update(
        &self,
        configuration: &Configuration,
        view: &View,
        others: BTreeSet<IpAddr>,
    ) -> Arc<BTreeSet<IpAddr>> {
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
                    let urgent =
                        member.is_none_or(|member| member.state.accepts() == Accepts::Nothing);
                    targets.push(Target {
                        pool: name.clone(),
                        address: *address,
                        checks: checks.clone(),
                        vips: vips.clone(),
                        encapsulation: pool.encapsulation,
                        urgent,
                    });
                }
            }
        }
        self.targets.send_replace(Arc::new(targets));
        Arc::new(addresses)
    }
}
