//! Direct return: packets go to the MAC of the backend itself, so no gateway may be on the way. To one they
//! would be for the VIP as before, and come back to the balancer.

use std::net::IpAddr;

use super::{PacketPath, State};
use lb_model::{Configuration, Encapsulation, Name, Pool, next_hop::NextHop};

/// A next hop, if packets in the form of the backend's pools can go by it.
pub(super) fn usable(
    configuration: &Configuration,
    backend: IpAddr,
    hop: Result<NextHop, String>,
) -> Result<NextHop, String> {
    let hop = hop?;
    if hop.gateway == backend || !goes_direct(configuration, backend) {
        return Ok(hop);
    }
    let gateway = hop.gateway;
    Err(format!("direct return: it must be on the link, but the route to it leads by {gateway}"))
}

/// Whether packets to a backend go without a tunnel. Pools that share it agree.
fn goes_direct(configuration: &Configuration, backend: IpAddr) -> bool {
    configuration.pools.values().any(|pool| {
        pool.encapsulation == Encapsulation::Direct && pool.backends.contains_key(&backend)
    })
}

impl<P: PacketPath> State<P> {
    /// Before packets go direct: who is behind a gateway is behind nothing. The other way round the sensors tell
    /// what they know anew.
    pub(super) fn leave_gateways(&mut self) {
        let configuration = Self::in_force(&self.store);
        let judged = self.hops.iter().filter(|(_, hop)| hop.is_ok());
        let judged =
            judged.map(|(address, hop)| (*address, usable(configuration, *address, hop.clone())));
        let lost: Vec<_> = judged.filter(|(_, hop)| hop.is_err()).collect();
        for (address, hop) in lost {
            self.take_hop(address, hop);
        }
    }

    /// What a configuration with direct return takes from backends that are reached by a gateway now.
    pub(super) fn behind_gateways(&self, next: &Configuration) -> Vec<String> {
        let direct =
            next.pools.iter().filter(|(_, pool)| pool.encapsulation == Encapsulation::Direct);
        let of_pool = |(name, pool): (&Name, &Pool)| {
            let by = |address: &IpAddr| match self.hops.get(address) {
                Some(Ok(hop)) if hop.gateway != *address => Some((*address, hop.gateway)),
                _ => None,
            };
            let behind: Vec<_> = pool.backends.keys().filter_map(by).collect();
            let (first, gateway) = behind.first()?;
            Some(format!(
                "pool {name} goes direct, but {} of its {} backends are behind a gateway ({first} by {gateway}): \
                 they take nothing",
                behind.len(),
                pool.backends.len()
            ))
        };
        direct.filter_map(of_pool).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_model::{AdminState, Backend, Region};

    #[test]
    fn a_gateway_is_no_way_of_direct_return() {
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
                    "direct return: it must be on the link, but the route to it leads by 10.0.0.1",
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
            let usable = |hop| usable(&configuration, backend, hop);
            assert_eq!(usable(Ok(on_link)), Ok(on_link));
            assert_eq!(usable(Ok(behind)), error.map_or(Ok(behind), |why| Err(why.into())));
            assert_eq!(usable(Err("no route".into())), Err("no route".into()));
        }
    }
}
