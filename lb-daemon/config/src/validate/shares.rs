//! Whether each balancer's share of the capacities is enough to be kept.

use lb_model::{Configuration, Name, Rate, Scaler};
use spillway_proto::v1;

use super::{
    Names,
    invalid::{Invalid, ObjectPath},
};

/// Connections a second of the least share: one a minute, which a limit can just say.
const LEAST: f64 = 1.0 / 60.0;

/// Refuses capacities of which a balancer's share is less than one connection a minute.
pub(super) fn shares_suffice(
    message: &v1::Configuration,
    names: &Names<'_>,
    configuration: &Configuration,
) -> Result<(), Invalid> {
    let mut invalid = Invalid::default();
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
        let place = ObjectPath::default().child("pools", index, &message.name);
        let pool = names.at(index).and_then(|name| configuration.pools.get(name));
        let Some(pool) = pool else { continue };
        for (index, group) in message.groups.iter().enumerate() {
            let Some(set) = Name::new(&group.region).ok().map(|region| pool.group(&region)) else {
                continue;
            };
            let cause = set.capacity.and_then(|capacity| too_little(capacity, set.scaler));
            if let Some(cause) = cause {
                let at = place.child("groups", index, &group.region);
                invalid.add(at.invalid("capacity_per_second", cause));
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
                invalid.add(at.invalid("max_connection_rate_per_second", cause));
            }
        }
    }
    invalid.or(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lb_common::abi::limits;
    use lb_model::bounds;

    fn document(path: &str) -> String {
        fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn the_document_has_the_number_of_regions() {
        let document = document("docs/configuration.md");
        let others = format!("at most {} other regions", limits::MAX_REGIONS_PER_POOL - 1);
        assert!(document.contains(&others), "overflow_to");
    }

    /// The ranges of fields stand with the fields.
    #[test]
    fn the_document_has_the_range_of_each_number() {
        let document = document("docs/configuration.md");
        for field in [
            "port",
            "gue_port",
            "slots",
            "weight",
            "mtu",
            "panic_threshold_percent",
            "rise",
            "fall",
            "jitter_percent",
            "host_probe_port",
            "status_min",
            "balancers",
        ] {
            let range = bounds::field_range(field).unwrap();
            let range = format!("{} to {}", range.start(), range.end());
            let row = format!("| `{field}`");
            let mut rows = document.lines().filter(|line| line.starts_with(&row));
            assert!(rows.any(|line| line.contains(&range)), "{field}: {range}");
        }
    }
}
