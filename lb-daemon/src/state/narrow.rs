//! Ways to backends that carry less than they should.

use std::net::IpAddr;

use super::{PacketPath, State};
use crate::next_hop::NextHop;

impl<P: PacketPath> State<P> {
    /// Says what ICMP errors taught of the way to a backend, and which way is too narrow for an IPv6 service.
    pub(super) fn log_mtu(&self, address: IpAddr, before: Option<&NextHop>, hop: &NextHop) {
        let (former, now) = (before.and_then(|hop| hop.path_mtu), hop.path_mtu);
        match now {
            Some(mtu) if former != now => {
                tracing::info!(backend = %address, mtu, "a router says what the way carries");
            }
            None if former.is_some() => {
                tracing::info!(backend = %address, mtu = hop.mtu, "what routers said is forgotten");
            }
            _ => {}
        }
        for (service, least) in self.ipv6_services_of(address) {
            if hop.mtu < least && before.is_none_or(|before| before.mtu >= least) {
                tracing::warn!(
                    backend = %address, mtu = hop.mtu, service,
                    "no room in the tunnel for IPv6's least packet, 1280 bytes: raise the MTU of \
                     the way to {least}"
                );
            }
        }
    }

    /// IPv6 services that a backend is behind, each with the least largest packet that it needs.
    fn ipv6_services_of(&self, address: IpAddr) -> impl Iterator<Item = (&str, u16)> {
        let configuration = self.configuration();
        configuration.services.iter().filter_map(move |(name, service)| {
            let pool = configuration.pools.get(&service.pool)?;
            let is_behind = service.address.is_ipv6() && pool.backends.contains_key(&address);
            is_behind.then_some((name.as_str(), pool.encapsulation.least_mtu(address)))
        })
    }

    /// Largest outer packet towards a backend, bytes; `None`: nobody knows the way.
    pub(super) fn mtu_towards(&self, address: IpAddr, configured: Option<u16>) -> Option<u16> {
        let hop = self.hops.get(&address)?.as_ref().ok()?;
        Some(configured.map_or(hop.mtu, |configured| configured.min(hop.mtu)))
    }
}
