use spillway_proto::v1;

use super::invalid::{Invalid, Place};
use lb_model::{Configuration, Name, Rate, Scaler};

/// Connections a second of the least share: one a minute, which a limit can just say.
const LEAST: f64 = 1.0 / 60.0;

/// What each balancer has of a capacity is at least one connection a minute.
pub(super) fn enough(
    message: &v1::Configuration,
    configuration: &Configuration,
) -> Result<(), Invalid> {
    let balancers = configuration.balancers.get();
    let too_little = |rate: Rate, scaler: Scaler| {
        let share = rate.per_second() * scaler.share() / f64::from(balancers);
        let cause = || {
            format!(
                "{rate} times a scaler of {scaler} among {balancers} balancers is less than one \
                 connection a minute for each"
            )
        };
        (scaler != Scaler::NONE && share < LEAST).then(cause)
    };
    for (index, message) in message.pools.iter().enumerate() {
        let place = Place::default().child("pools", index, &message.name);
        let name = Name::new(&message.name).ok();
        let Some(pool) = name.and_then(|name| configuration.pools.get(&name)) else { continue };
        for (index, group) in message.groups.iter().enumerate() {
            let Some(set) = Name::new(&group.region).ok().map(|region| pool.group(&region)) else {
                continue;
            };
            let cause = set.capacity.and_then(|capacity| too_little(capacity, set.scaler));
            if let Some(cause) = cause {
                let at = place.child("groups", index, &group.region);
                return Err(at.wrong("capacity_per_second", cause));
            }
        }
        for (index, message) in message.backends.iter().enumerate() {
            let address = message.address.parse().ok();
            let Some(backend) = address.and_then(|address| pool.backends.get(&address)) else {
                continue;
            };
            let Some(rate) = backend.max_connection_rate else { continue };
            let set = pool.group(&backend.region);
            // Alone healthy, it is the whole capacity of its group where that is the sum.
            let scaler = if set.capacity.is_none() { set.scaler } else { Scaler::WHOLE };
            let cause = too_little(rate, scaler).or_else(|| too_little(rate, Scaler::WHOLE));
            if let Some(cause) = cause {
                let at = place.child("backends", index, &message.address);
                return Err(at.wrong("max_connection_rate_per_second", cause));
            }
        }
    }
    Ok(())
}
