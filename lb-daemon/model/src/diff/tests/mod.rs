mod fields;
mod movements;
mod tables;

use std::{net::IpAddr, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::arbitrary;
use crate::{
    AdminState, Affinity, Backend, CheckKind, Fragments, HealthCheck, Name, Ports, Protocol,
    Region, Service, Unserved, Via, WhenFull,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn backend(region: &str) -> Backend {
    Backend {
        region: name(region),
        weight: 1,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn configuration() -> Configuration {
    let check = HealthCheck {
        kind: CheckKind::Tcp,
        tls: None,
        via: Via::Address,
        port: 80,
        interval: Duration::from_secs(1),
        fast_interval: Duration::from_secs(1),
        timeout: Duration::from_millis(500),
        rise: 2,
        fall: 3,
        jitter_percent: 10,
        host_probe: lb_model::HostProbe::Auto,
        host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
    };
    let pool = Pool {
        backends: [(ip(1), backend("eu")), (ip(2), backend("eu")), (ip(3), backend("us"))].into(),
        health_checks: vec![name("tcp")],
        slots: 7,
        ..Pool::default()
    };
    let service = Service {
        address: [192, 0, 2, 1].into(),
        ports: Ports::one(80),
        protocol: Protocol::Tcp,
        pool: name("web"),
        affinity: Affinity::Connection,
        when_full: WhenFull::Nearest,
        idle_timeout: None,
        fragments: Fragments::Dropped,
    };
    Configuration {
        regions: [(name("eu"), Region::default()), (name("us"), Region::default())].into(),
        health_checks: [(name("tcp"), check)].into(),
        pools: [(name("web"), pool.into())].into(),
        services: [(name("web"), service)].into(),
        ..Configuration::EMPTY
    }
}

/// Slots go round the members: easy to count by hand.
fn in_turn(table: &TableMembers) -> Vec<IpAddr> {
    let members = &table.members;
    (0..table.slots).map(|slot| members[slot as usize % members.len()].0).collect()
}

/// A change as it is printed.
type Printed = (Kind, String, Vec<String>, u64);

/// The changes, with such tables.
fn between(old: &Configuration, new: &Configuration) -> Vec<Printed> {
    let changes = super::between(old, new, &TableDiffs::new(old, new, &in_turn));
    let printed = |Change { kind, object, fields, slots_moved }| {
        let fields = fields.iter().map(FieldChange::to_string).collect();
        (kind, object.to_string(), fields, slots_moved)
    };
    changes.into_iter().map(printed).collect()
}

fn changed(change: impl FnOnce(&mut Configuration)) -> Vec<Printed> {
    let mut new = configuration();
    change(&mut new);
    between(&configuration(), &new)
}

fn entry(kind: Kind, object: &str, fields: &[&str], slots_moved: u64) -> Printed {
    (kind, object.into(), fields.iter().map(ToString::to_string).collect(), slots_moved)
}

fn web(configuration: &mut Configuration) -> &mut Pool {
    configuration.pool_mut(&name("web")).unwrap()
}

#[test]
fn objects_come_and_go_in_order() {
    let whole = ["region eu", "region us", "health check tcp", "pool web", "service web"];
    let empty = Configuration::default();
    let expected = |kind| whole.map(|object| entry(kind, object, &[], 0)).to_vec();
    assert_eq!(between(&empty, &configuration()), expected(Kind::Added));
    assert_eq!(between(&configuration(), &empty), expected(Kind::Removed));
}

proptest! {
    #[test]
    fn only_equal_configurations_have_no_difference(
        old in arbitrary::configuration(), new in arbitrary::configuration(),
    ) {
        prop_assert_eq!(between(&old, &old), []);
        let there = between(&old, &new);
        let back = between(&new, &old);
        prop_assert_eq!(there.is_empty(), old == new);
        for (kind, _, fields, _) in &there {
            prop_assert_eq!(fields.is_empty(), *kind != Kind::Changed);
        }
        let objects = |changes: &[Printed], kind| -> Vec<String> {
            changes.iter().filter(|c| c.0 == kind).map(|c| c.1.clone()).collect()
        };
        prop_assert_eq!(objects(&there, Kind::Added), objects(&back, Kind::Removed));
        prop_assert_eq!(objects(&there, Kind::Removed), objects(&back, Kind::Added));
        prop_assert_eq!(objects(&there, Kind::Changed), objects(&back, Kind::Changed));
    }
}
