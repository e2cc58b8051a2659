//! What fits into tunnels.

use std::{collections::BTreeMap, net::IpAddr};

use spillway_proto::v1;

use super::invalid::{Invalid, Place};
use lb_model::{Configuration, Name};

/// IPv6 services have room for the least packet of IPv6 in the tunnels to all their backends, as far as the
/// configuration says how large packets to them may be.
pub(super) fn wide_enough(
    message: &v1::Configuration,
    configuration: &Configuration,
) -> Result<(), Invalid> {
    let six = configuration.services.iter().filter(|(_, service)| service.address.is_ipv6());
    let by_pool: BTreeMap<&Name, &Name> =
        six.map(|(name, service)| (&service.pool, name)).collect();
    for (index, message) in message.pools.iter().enumerate() {
        let Ok(name) = Name::new(&message.name) else { continue };
        let Some(service) = by_pool.get(&name) else { continue };
        let Some(pool) = configuration.pools.get(&name) else { continue };
        let at = Place::default().child("pools", index, &message.name);
        for (index, backend) in message.backends.iter().enumerate() {
            let Ok(address) = backend.address.parse::<IpAddr>() else { continue };
            let least = u32::from(pool.encapsulation.least_mtu(address));
            if backend.mtu != 0 && backend.mtu < least {
                let at = at.child("backends", index, &backend.address);
                let cause = format!(
                    "{} leaves less than 1280 bytes in the tunnel, which IPv6 service {:?} needs; \
                     give at least {least}",
                    backend.mtu,
                    service.to_string()
                );
                return Err(at.wrong("mtu", cause));
            }
        }
    }
    Ok(())
}
