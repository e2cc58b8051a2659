//! Whether the packet path has room for a configuration.
//!
//! Tables, groups and members of a new generation are written beside those of the old one. So a generation may use half
//! of those maps, and an acknowledged generation can always be published. During a remap there is a third version and
//! less may fit, so the reconciler checks that before anything is acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::{limiter::FIRST_LIMITER, limits, slot::TableShape};
use lb_model::{Configuration, Name, Pool, Rate, Scaler, Service};
use spillway_proto::v1;

use super::invalid::{Invalid, ObjectPath};

/// How many of something a configuration may have.
struct Maximum {
    /// The field that is refused.
    field: &'static str,
    /// What there are too many of.
    what: &'static str,
    most: u32,
}

const MIB: u64 = 1 << 20;
const CHUNK_MIB: u32 = (limits::CHUNK_WORDS as u64 * 8 / MIB) as u32;

/// All of them; docs/configuration.md has the same table. Index 0 of services, pools and backends is never
/// given out.
const MAXIMA: [Maximum; 8] = [
    Maximum { field: "services", what: "services", most: limits::MAX_SERVICES - 1 },
    Maximum {
        field: "services",
        what: "ports of services (any_port and fragments are one each)",
        most: limits::MAX_SERVICE_KEYS,
    },
    Maximum { field: "pools", what: "pools", most: limits::MAX_POOLS - 1 },
    Maximum { field: "pools", what: "distinct backend addresses", most: limits::MAX_BACKENDS - 1 },
    Maximum { field: "pools", what: "backends in all", most: limits::MAX_MEMBERS / 2 },
    Maximum {
        field: "pools",
        what: "groups (a pool's backends in one region)",
        most: limits::MAX_GROUPS / 2,
    },
    // A quarter: where tables fill more than half of a chunk, each takes a whole one.
    Maximum {
        field: "pools",
        what: "MiB of slot tables",
        most: limits::MAX_CHUNKS / 4 * CHUNK_MIB,
    },
    Maximum {
        field: "pools",
        what: "groups and backends with a limit of their own",
        most: (limits::MAX_LIMITERS - FIRST_LIMITER) / 2,
    },
];

/// Refuses configurations that exceed a limit of the maps.
pub(super) fn fits(configuration: &Configuration) -> Result<(), Invalid> {
    let pools = configuration.pools.values();
    let backends: BTreeSet<_> = pools.clone().flat_map(|pool| pool.backends.keys()).collect();
    let groups: Vec<_> = pools.clone().flat_map(groups).collect();
    let tables: BTreeSet<_> = groups.iter().collect();
    let words = |(slots, members): &(u32, Vec<_>)| {
        u64::from(TableShape { slots: *slots, members: members.len() as u32 }.words())
    };
    let table_bytes = 8 * tables.into_iter().map(words).sum::<u64>();
    let members = pools.clone().map(|pool| pool.backends.len()).sum();
    let limited = pools.flat_map(|pool| pool.backends.values());
    let limited = limited.filter(|backend| backend.max_connection_rate.is_some()).count();
    let limiters = groups.len() + limited;
    let keys = configuration.services.values().map(Service::keys).sum();
    let numbers: [usize; MAXIMA.len()] = [
        configuration.services.len(),
        keys,
        configuration.pools.len(),
        backends.len(),
        members,
        groups.len(),
        table_bytes.div_ceil(MIB) as usize,
        limiters,
    ];
    for (Maximum { field, what, most }, number) in MAXIMA.iter().zip(numbers) {
        if number > *most as usize {
            let cause = format!("{number} {what} exceed the limit of {most}");
            return Err(ObjectPath::default().invalid(field, cause));
        }
    }
    Ok(())
}

/// What the table of each group of a pool is made of: pools with the same share it.
fn groups(pool: &Pool) -> impl Iterator<Item = (u32, Vec<(&std::net::IpAddr, u32)>)> {
    let mut groups: BTreeMap<&Name, Vec<_>> = BTreeMap::new();
    for (address, backend) in &pool.backends {
        groups.entry(&backend.region).or_default().push((address, backend.weight));
    }
    groups.into_values().map(|members| (pool.slots, members))
}

/// Connections a second of the least share: one a minute, which a limit can just say.
const LEAST: f64 = 1.0 / 60.0;

/// Refuses capacities of which a balancer's share is less than one connection a minute.
pub(super) fn shares_suffice(
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
        let place = ObjectPath::default().child("pools", index, &message.name);
        let name = Name::new(&message.name).ok();
        let Some(pool) = name.and_then(|name| configuration.pools.get(&name)) else { continue };
        for (index, group) in message.groups.iter().enumerate() {
            let Some(set) = Name::new(&group.region).ok().map(|region| pool.group(&region)) else {
                continue;
            };
            let cause = set.capacity.and_then(|capacity| too_little(capacity, set.scaler));
            if let Some(cause) = cause {
                let at = place.child("groups", index, &group.region);
                return Err(at.invalid("capacity_per_second", cause));
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
                return Err(at.invalid("max_connection_rate_per_second", cause));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lb_model::bounds;

    use super::*;

    fn document(path: &str) -> String {
        fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// With commas between the thousands.
    fn spelt(number: u32) -> String {
        let digits = number.to_string();
        let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(str::from_utf8).collect();
        groups.into_iter().map(Result::unwrap).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn the_document_has_all_maxima_in_one_table() {
        let document = document("docs/configuration.md");
        let (_, section) = document.split_once("\n## How much fits\n").expect("no such section");
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let rows: Vec<_> = rows.filter_map(|row| row.split_once(" | ")).skip(1).collect();
        let regions = limits::MAX_REGIONS_PER_POOL as u32;
        let of_region = [("regions that a pool has backends in", regions)];
        let expected = MAXIMA.iter().map(|it| (it.what, it.most)).chain(of_region);
        let expected: Vec<_> = expected.map(|(what, most)| (what, spelt(most))).collect();
        let expected: Vec<_> = expected.iter().map(|(what, most)| (*what, most.as_str())).collect();
        assert_eq!(rows, expected);
    }

    /// Each other place where one of them stands.
    #[test]
    fn other_documents_say_the_same_or_point_to_the_table() {
        let keys = limits::MAX_SERVICE_KEYS;
        let message = document("proto/spillway/v1/configuration.proto");
        assert!(message.contains(&format!("are {keys} for all services")), "ports");
        let configuration = document("docs/configuration.md");
        let others = format!("at most {} other regions", limits::MAX_REGIONS_PER_POOL - 1);
        assert!(configuration.contains(&others), "overflow_to");
        for path in ["docs/configuration.md", "docs/services.md", "docs/operations.md"] {
            for line in document(path).lines().filter(|line| !line.starts_with("| ports of ")) {
                let is_number = line.contains(&keys.to_string()) || line.contains(&spelt(keys));
                let of_ports = ["ports", "listed port"].iter().any(|word| line.contains(word));
                assert!(!is_number || !of_ports, "{path}: {line}");
            }
        }
        assert!(document("docs/services.md").contains("(configuration.md#how-much-fits)"));
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
