//! Ways to backends that carry less than they should.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{PacketPath, State};
use lb_model::{Configuration, Name};

/// Ways that have no room for IPv6's least packet, where an IPv6 service needs it.
#[derive(Debug, Default)]
pub(super) struct Narrow {
    /// The first IPv6 service of each pool that has one.
    services: BTreeMap<Name, Name>,
    /// Backends at the end of such ways, by pool.
    ways: BTreeMap<Name, BTreeSet<IpAddr>>,
}

impl<P: PacketPath> State<P> {
    /// Looks at all ways anew: a configuration says which services there are.
    pub(super) fn see_ways(&mut self, configuration: &Configuration) {
        let six = configuration.services.iter().filter(|(_, service)| service.address.is_ipv6());
        // The first of them comes last, and stays.
        let services = six.rev().map(|(name, service)| (service.pool.clone(), name.clone()));
        let services: BTreeMap<_, _> = services.collect();
        let ways = services.keys().filter_map(|name| {
            let pool = configuration.pools.get(name)?;
            let narrow = |address: &&IpAddr| self.is_narrow(configuration, name, **address);
            let narrow: BTreeSet<_> = pool.backends.keys().filter(narrow).copied().collect();
            (!narrow.is_empty()).then(|| (name.clone(), narrow))
        });
        let ways = ways.collect();
        let previous = std::mem::replace(&mut self.narrow, Narrow { services, ways });
        let pools: BTreeSet<_> = previous.ways.keys().chain(self.narrow.ways.keys()).collect();
        pools.into_iter().for_each(|pool| self.tell_of_ways(pool));
    }

    /// Looks at the way to one backend, of which there is news.
    pub(super) fn see_way(&mut self, address: IpAddr) {
        for pool in self.members.pools_of(&address).to_vec() {
            let is_narrow = self.narrow.services.contains_key(&pool)
                && self.is_narrow(self.configuration(), &pool, address);
            let ways = self.narrow.ways.entry(pool.clone()).or_default();
            let was_narrow = if is_narrow { !ways.insert(address) } else { ways.remove(&address) };
            if ways.is_empty() {
                self.narrow.ways.remove(&pool);
            }
            if is_narrow || was_narrow {
                self.tell_of_ways(&pool);
            }
        }
    }

    /// Whether what is known of the way to a backend leaves too little in a pool's tunnel.
    fn is_narrow(&self, configuration: &Configuration, pool: &Name, address: IpAddr) -> bool {
        let Some(pool) = configuration.pools.get(pool) else { return false };
        let configured = pool.backends.get(&address).and_then(|backend| backend.mtu);
        let least = pool.encapsulation.least_mtu(address);
        self.mtu_towards(address, configured).is_some_and(|mtu| mtu < least)
    }

    /// Begins or ends the condition with a pool's ways.
    fn tell_of_ways(&self, name: &Name) {
        let subject = format!("pool {name}");
        match self.too_narrow(name) {
            Some(cause) => self.settings.conditions.begin(&subject, &cause),
            None => self.settings.conditions.end(&subject),
        }
    }

    fn too_narrow(&self, name: &Name) -> Option<String> {
        let ways = self.narrow.ways.get(name)?;
        let (first, others) = (*ways.first()?, ways.len() - 1);
        let service = self.narrow.services.get(name)?;
        let pool = self.configuration().pools.get(name)?;
        let carries = self.mtu_towards(first, pool.backends.get(&first)?.mtu)?;
        let least = pool.encapsulation.least_mtu(first);
        let more = match others {
            0 => String::new(),
            1 => ", and that of the way to one more backend".into(),
            others => format!(", and those of the ways to {others} more backends"),
        };
        Some(format!(
            "the way to {first} carries {carries} bytes, and IPv6 service {service} needs {least}, for \
             IPv6's least packet and its tunnel: raise its MTU{more}"
        ))
    }

    /// Largest outer packet towards a backend, bytes; `None`: nobody knows the way.
    pub(super) fn mtu_towards(&self, address: IpAddr, configured: Option<u16>) -> Option<u16> {
        let hop = self.hops.get(&address)?.as_ref().ok()?;
        Some(configured.map_or(hop.mtu, |configured| configured.min(hop.mtu)))
    }
}
