//! Conditions about paths that are too narrow for IPv6.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::Known;
use lb_base::conditions::{ConditionReason, Conditions, Subject};
use lb_model::{Configuration, Name};

/// Backends whose path is too narrow for IPv6's minimum MTU, in pools that have an IPv6 service.
#[derive(Debug, Default)]
pub(super) struct NarrowPaths {
    /// The first IPv6 service of each pool that has one.
    services: BTreeMap<Name, Name>,
    /// The backends, by pool.
    paths: BTreeMap<Name, BTreeSet<IpAddr>>,
}

impl NarrowPaths {
    /// Checks all paths again, because the configuration determines which services there are.
    pub(super) fn check(&mut self, known: &Known, conditions: &Conditions) {
        let configuration = known.configuration();
        let six = configuration.services.iter().filter(|(_, service)| service.address.is_ipv6());
        // Collecting keeps the last entry of each pool, so in reverse order that is the first service.
        let services = six.rev().map(|(name, service)| (service.pool.clone(), name.clone()));
        let services: BTreeMap<_, _> = services.collect();
        let paths = services.keys().filter_map(|name| {
            let pool = configuration.pools.get(name)?;
            let narrow = |address: &&IpAddr| known.is_narrow(configuration, name, **address);
            let narrow: BTreeSet<_> = pool.backends.keys().filter(narrow).copied().collect();
            (!narrow.is_empty()).then(|| (name.clone(), narrow))
        });
        let paths = paths.collect();
        let previous = std::mem::replace(self, Self { services, paths });
        let pools: BTreeSet<_> = previous.paths.keys().chain(self.paths.keys()).collect();
        pools.into_iter().for_each(|pool| self.update_condition(pool, known, conditions));
    }

    /// Checks the path to one backend, which changed.
    pub(super) fn check_backend(
        &mut self,
        address: IpAddr,
        known: &Known,
        conditions: &Conditions,
    ) {
        for pool in known.view.pools_of(&address) {
            let is_narrow = self.services.contains_key(pool)
                && known.is_narrow(known.configuration(), pool, address);
            let paths = self.paths.entry(pool.clone()).or_default();
            let was_narrow =
                if is_narrow { !paths.insert(address) } else { paths.remove(&address) };
            if paths.is_empty() {
                self.paths.remove(pool);
            }
            if is_narrow || was_narrow {
                self.update_condition(pool, known, conditions);
            }
        }
    }

    fn update_condition(&self, name: &Name, known: &Known, conditions: &Conditions) {
        let text = format!("pool {name}");
        let subject = Subject::of_pool(ConditionReason::NarrowPath, name.as_str(), text);
        match self.cause(name, known) {
            Some(cause) => conditions.begin(&subject, &cause),
            None => conditions.end(&subject),
        }
    }

    fn cause(&self, name: &Name, known: &Known) -> Option<String> {
        let paths = self.paths.get(name)?;
        let (first, others) = (*paths.first()?, paths.len() - 1);
        let service = self.services.get(name)?;
        let pool = known.configuration().pools.get(name)?;
        let carries = known.mtu_towards(first, pool.backends.get(&first)?.mtu)?;
        let least = pool.encapsulation.least_mtu(first);
        let more = match others {
            0 => String::new(),
            1 => ", and that of the path to one more backend".into(),
            others => format!(", and those of the paths to {others} more backends"),
        };
        Some(format!(
            "the path to {first} carries {carries} bytes, but IPv6 service {service} needs {least} for the IPv6 minimum MTU \
             and its tunnel: raise its MTU{more}"
        ))
    }
}

impl Known {
    /// Whether the path is known to be too narrow for the pool's encapsulation.
    fn is_narrow(&self, configuration: &Configuration, pool: &Name, address: IpAddr) -> bool {
        let Some(pool) = configuration.pools.get(pool) else { return false };
        let configured = pool.backends.get(&address).and_then(|backend| backend.mtu);
        let least = pool.encapsulation.least_mtu(address);
        self.mtu_towards(address, configured).is_some_and(|mtu| mtu < least)
    }

    /// Largest outer packet towards a backend, bytes; `None` without a next hop.
    pub(super) fn mtu_towards(&self, address: IpAddr, configured: Option<u16>) -> Option<u16> {
        let hop = self.view.next_hop(&address)?.as_ref().ok()?;
        Some(configured.map_or(hop.mtu, |configured| configured.min(hop.mtu)))
    }
}
