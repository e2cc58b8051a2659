use std::collections::HashMap;

use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    Names, address, number,
};
use crate::model::{Affinity, Configuration, Name, Protocol, Service};

/// A service whose pool is known.
pub(super) fn service(
    at: &Place,
    message: &v1::Service,
    pools: &Names,
) -> Result<Service, Invalid> {
    Ok(Service {
        address: address::address(at, &message.address)?,
        port: number::port(at, message.port)?,
        protocol: match v1::Protocol::try_from(message.protocol) {
            Ok(v1::Protocol::Tcp) => Protocol::Tcp,
            Ok(v1::Protocol::Udp) => Protocol::Udp,
            Ok(v1::Protocol::Unspecified) => {
                return Err(at.wrong("protocol", "must be set; give tcp or udp"));
            }
            Err(_) => {
                let cause = format!("{} is no protocol that this version knows", message.protocol);
                return Err(at.wrong("protocol", cause));
            }
        },
        pool: pools.resolve(at, "pool", &message.pool)?,
        affinity: match v1::Affinity::try_from(message.affinity) {
            Ok(v1::Affinity::Unspecified | v1::Affinity::Connection) => Affinity::Connection,
            Ok(v1::Affinity::Client) => Affinity::Client,
            Err(_) => {
                let cause = format!("{} is no affinity that this version knows", message.affinity);
                return Err(at.wrong("affinity", cause));
            }
        },
    })
}

/// No two services have the same address, port and protocol.
pub(super) fn distinct(
    message: &v1::Configuration,
    configuration: &Configuration,
) -> Result<(), Invalid> {
    let mut first = HashMap::new();
    for (index, message) in message.services.iter().enumerate() {
        let name = Name::new(&message.name).ok();
        let Some(service) = name.and_then(|name| configuration.services.get(&name)) else {
            continue;
        };
        let key = (service.address, service.port, service.protocol);
        if let Some(other) = first.insert(key, &message.name) {
            let at = Place::default().child("services", index, &message.name);
            let (address, port, protocol) = (key.0, key.1, key.2.name());
            let cause = format!("{address}, port {port}, {protocol} is already service {other:?}");
            return Err(at.wrong("address", cause));
        }
    }
    Ok(())
}
