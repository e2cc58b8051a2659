//! A service in the map that packets look it up in.

use std::net::IpAddr;

use anyhow::Result;
use aya::{Ebpf, maps::HashMap};
use lb_common::abi::{
    names,
    service::{IPV4, Service, ServiceKey},
};

use super::{bytes, map_mut};

/// Publishes port 80 of an address, TCP and UDP, as the service with an index.
pub(super) fn publish(
    balancer: &mut Ebpf,
    address: IpAddr,
    index: u32,
    pool: u32,
    flags: u32,
) -> Result<()> {
    for protocol in [6, 17] {
        let key = ServiceKey::new(address, 80, protocol);
        let service = Service { key, index, pool, flags };
        if key.version == IPV4 {
            let mut map: HashMap<_, u64, [u8; 32]> =
                HashMap::try_from(map_mut(balancer, names::SERVICES_V4)?)?;
            map.insert(key.short(), bytes::<32>(&service), 0)?;
        } else {
            let mut map: HashMap<_, [u8; 20], [u8; 32]> =
                HashMap::try_from(map_mut(balancer, names::SERVICES_V6)?)?;
            map.insert(bytes::<20>(&key), bytes::<32>(&service), 0)?;
        }
    }
    Ok(())
}
