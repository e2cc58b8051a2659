use std::{collections::HashMap, time::Duration};

use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    Names, address, number,
};
use crate::model::{Affinity, Configuration, Name, Protocol, Service, WhenFull};

const SHORTEST_IDLE: Duration = Duration::from_secs(1);
/// What sixteen bits of seconds hold, rounded down.
const LONGEST_IDLE: Duration = Duration::from_secs(18 * 3600);
const DEFAULT_IDLE: Duration = Duration::from_secs(60);

/// A service whose pool is known.
pub(super) fn service(
    at: &Place,
    message: &v1::Service,
    pools: &Names,
) -> Result<Service, Invalid> {
    let (address, port) =
        (address::address(at, &message.address)?, number::port(at, message.port)?);
    let protocol = protocol(at, message.protocol)?;
    let idle_timeout = idle_timeout(at, message, protocol)?;
    Ok(Service {
        address,
        port,
        protocol,
        pool: pools.resolve(at, "pool", &message.pool)?,
        affinity: match v1::Affinity::try_from(message.affinity) {
            Ok(v1::Affinity::Unspecified | v1::Affinity::Connection) => Affinity::Connection,
            Ok(v1::Affinity::Client) => Affinity::Client,
            Err(_) => {
                let cause = format!("{} is no affinity that this version knows", message.affinity);
                return Err(at.wrong("affinity", cause));
            }
        },
        when_full: when_full(at, message.when_full, protocol, idle_timeout)?,
        idle_timeout,
    })
}

fn protocol(at: &Place, number: i32) -> Result<Protocol, Invalid> {
    match v1::Protocol::try_from(number) {
        Ok(v1::Protocol::Tcp) => Ok(Protocol::Tcp),
        Ok(v1::Protocol::Udp) => Ok(Protocol::Udp),
        Ok(v1::Protocol::Unspecified) => Err(at.wrong("protocol", "must be set; give tcp or udp")),
        Err(_) => {
            let cause = format!("{number} is no protocol that this version knows");
            Err(at.wrong("protocol", cause))
        }
    }
}

/// How long flows are remembered; `None`: they are not.
fn idle_timeout(
    at: &Place,
    message: &v1::Service,
    protocol: Protocol,
) -> Result<Option<Duration>, Invalid> {
    let tracked = match v1::UdpMode::try_from(message.udp) {
        Ok(v1::UdpMode::Unspecified) => false,
        Ok(_) if protocol == Protocol::Tcp => {
            return Err(at.wrong("udp", "is for UDP; this service is TCP"));
        }
        Ok(mode) => mode == v1::UdpMode::Tracked,
        Err(_) => {
            let cause = format!("{} is no mode that this version knows", message.udp);
            return Err(at.wrong("udp", cause));
        }
    };
    match message.idle_timeout {
        None => Ok(tracked.then_some(DEFAULT_IDLE)),
        Some(_) if !tracked => {
            Err(at.wrong("idle_timeout", "is for tracked UDP; this service is not"))
        }
        Some(timeout) => {
            let (shortest, longest) = (SHORTEST_IDLE, LONGEST_IDLE);
            number::duration(at, "idle_timeout", timeout, shortest, longest, "18h").map(Some)
        }
    }
}

fn when_full(
    at: &Place,
    number: i32,
    protocol: Protocol,
    idle_timeout: Option<Duration>,
) -> Result<WhenFull, Invalid> {
    match v1::WhenFull::try_from(number) {
        Ok(v1::WhenFull::Unspecified | v1::WhenFull::Nearest) => Ok(WhenFull::Nearest),
        Ok(v1::WhenFull::Reject) if protocol == Protocol::Udp && idle_timeout.is_none() => {
            let cause = "reject is not for stateless UDP, which knows no new connections";
            Err(at.wrong("when_full", cause))
        }
        Ok(v1::WhenFull::Reject) => Ok(WhenFull::Reject),
        Err(_) => {
            let cause = format!("{number} is no answer that this version knows");
            Err(at.wrong("when_full", cause))
        }
    }
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
