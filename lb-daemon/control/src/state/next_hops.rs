//! What depends on next hops: direct return, which must not go through a gateway, and paths that are too
//! narrow for IPv6.
//!
//! With direct return a packet goes to the backend's MAC, still addressed to the VIP. A gateway would send it
//! back to the balancer.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{PacketPath, State};
use lb_model::{Configuration, Encapsulation, Name, Pool, next_hop::NextHop};

/// Refuses a next hop that is a gateway if the backend's pools use direct return.
pub(super) fn check_direct(
    configuration: &Configuration,
    backend: IpAddr,
    hop: Result<NextHop, String>,
) -> Result<NextHop, String> {
    let hop = hop?;
    if hop.gateway == backend || !goes_direct(configuration, backend) {
        return Ok(hop);
    }
    let gateway = hop.gateway;
    Err(format!("direct return needs a backend on the link, but the route leads through {gateway}"))
}

/// Pools that share a backend agree on this.
fn goes_direct(configuration: &Configuration, backend: IpAddr) -> bool {
    configuration.pools.values().any(|pool| {
        pool.encapsulation == Encapsulation::Direct && pool.backends.contains_key(&backend)
    })
}

impl<P: PacketPath> State<P> {
    /// Before pools change to direct return: removes next hops that are gateways. For the opposite change
    /// nothing is needed, because the sensors report all they know again.
    pub(super) fn drop_gateways(&mut self) {
        let configuration = Self::in_force(&self.store);
        let is_decided = self.next_hops.iter().filter(|(_, hop)| hop.is_ok());
        let is_decided = is_decided
            .map(|(address, hop)| (*address, check_direct(configuration, *address, hop.clone())));
        let lost: Vec<_> = is_decided.filter(|(_, hop)| hop.is_err()).collect();
        for (address, hop) in lost {
            self.set_next_hop(address, hop);
        }
    }

    /// Warnings about backends that are behind a gateway and would get nothing with direct return.
    pub(super) fn gateway_warnings(&self, next: &Configuration) -> Vec<String> {
        let direct =
            next.pools.iter().filter(|(_, pool)| pool.encapsulation == Encapsulation::Direct);
        let of_pool = |(name, pool): (&Name, &Pool)| {
            let by = |address: &IpAddr| match self.next_hops.get(address) {
                Some(Ok(hop)) if hop.gateway != *address => Some((*address, hop.gateway)),
                _ => None,
            };
            let behind: Vec<_> = pool.backends.keys().filter_map(by).collect();
            let (first, gateway) = behind.first()?;
            Some(format!(
                "pool {name} uses direct return, but {} of its {} backends are behind a gateway ({first} behind \
                 {gateway}) and get no packets",
                behind.len(),
                pool.backends.len()
            ))
        };
        direct.filter_map(of_pool).collect()
    }
}

/// Backends whose path is too narrow for IPv6's minimum MTU, in pools that have an IPv6 service.
#[derive(Debug, Default)]
pub(super) struct NarrowPaths {
    /// The first IPv6 service of each pool that has one.
    services: BTreeMap<Name, Name>,
    /// The backends, by pool.
    paths: BTreeMap<Name, BTreeSet<IpAddr>>,
}

impl<P: PacketPath> State<P> {
    /// Checks all paths again, because the configuration determines which services there are.
    pub(super) fn check_paths(&mut self, configuration: &Configuration) {
        let six = configuration.services.iter().filter(|(_, service)| service.address.is_ipv6());
        // Collecting keeps the last entry of each pool, so in reverse order that is the first service.
        let services = six.rev().map(|(name, service)| (service.pool.clone(), name.clone()));
        let services: BTreeMap<_, _> = services.collect();
        let paths = services.keys().filter_map(|name| {
            let pool = configuration.pools.get(name)?;
            let narrow = |address: &&IpAddr| self.is_narrow(configuration, name, **address);
            let narrow: BTreeSet<_> = pool.backends.keys().filter(narrow).copied().collect();
            (!narrow.is_empty()).then(|| (name.clone(), narrow))
        });
        let paths = paths.collect();
        let previous = std::mem::replace(&mut self.narrow, NarrowPaths { services, paths });
        let pools: BTreeSet<_> = previous.paths.keys().chain(self.narrow.paths.keys()).collect();
        pools.into_iter().for_each(|pool| self.update_narrow_condition(pool));
    }

    /// Checks the path to one backend, which changed.
    pub(super) fn check_path(&mut self, address: IpAddr) {
        for pool in self.members.pools_of(&address).to_vec() {
            let is_narrow = self.narrow.services.contains_key(&pool)
                && self.is_narrow(self.configuration(), &pool, address);
            let paths = self.narrow.paths.entry(pool.clone()).or_default();
            let was_narrow =
                if is_narrow { !paths.insert(address) } else { paths.remove(&address) };
            if paths.is_empty() {
                self.narrow.paths.remove(&pool);
            }
            if is_narrow || was_narrow {
                self.update_narrow_condition(&pool);
            }
        }
    }

    /// Whether the path is known to be too narrow for the pool's encapsulation.
    fn is_narrow(&self, configuration: &Configuration, pool: &Name, address: IpAddr) -> bool {
        let Some(pool) = configuration.pools.get(pool) else { return false };
        let configured = pool.backends.get(&address).and_then(|backend| backend.mtu);
        let least = pool.encapsulation.least_mtu(address);
        self.mtu_towards(address, configured).is_some_and(|mtu| mtu < least)
    }

    fn update_narrow_condition(&self, name: &Name) {
        let subject = format!("pool {name}");
        match self.narrow_cause(name) {
            Some(cause) => self.settings.conditions.begin(&subject, &cause),
            None => self.settings.conditions.end(&subject),
        }
    }

    fn narrow_cause(&self, name: &Name) -> Option<String> {
        let paths = self.narrow.paths.get(name)?;
        let (first, others) = (*paths.first()?, paths.len() - 1);
        let service = self.narrow.services.get(name)?;
        let pool = self.configuration().pools.get(name)?;
        let carries = self.mtu_towards(first, pool.backends.get(&first)?.mtu)?;
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

    /// Largest outer packet towards a backend, bytes; `None` without a next hop.
    pub(super) fn mtu_towards(&self, address: IpAddr, configured: Option<u16>) -> Option<u16> {
        let hop = self.next_hops.get(&address)?.as_ref().ok()?;
        Some(configured.map_or(hop.mtu, |configured| configured.min(hop.mtu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_model::{AdminState, Backend, Region};

    #[test]
    fn direct_return_refuses_gateways() {
        let name = |name: &str| Name::new(name).unwrap();
        let backend: IpAddr = "10.1.0.11".parse().unwrap();
        let of = Backend {
            region: name("eu"),
            weight: 1,
            admin_state: AdminState::Active,
            mtu: None,
            max_connection_rate: None,
        };
        let by = |gateway: &str| NextHop {
            gateway: gateway.parse().unwrap(),
            mac: [2; 6],
            interface: 3,
            interface_mac: [4; 6],
            mtu: 1500,
            vlan: None,
        };
        let (on_link, behind) = (by("10.1.0.11"), by("10.0.0.1"));
        for (encapsulation, error) in [
            (Encapsulation::IpInIp, None),
            (Encapsulation::Gue(6080), None),
            (
                Encapsulation::Direct,
                Some(
                    "direct return needs a backend on the link, but the route leads through 10.0.0.1",
                ),
            ),
        ] {
            let pool =
                Pool { backends: [(backend, of.clone())].into(), encapsulation, ..Pool::default() };
            let configuration = Configuration {
                regions: [(name("eu"), Region::default())].into(),
                pools: [(name("web"), pool)].into(),
                ..Configuration::default()
            };
            let checked = |hop| check_direct(&configuration, backend, hop);
            assert_eq!(checked(Ok(on_link)), Ok(on_link));
            assert_eq!(checked(Ok(behind)), error.map_or(Ok(behind), |why| Err(why.into())));
            assert_eq!(checked(Err("no route".into())), Err("no route".into()));
        }
    }
}
