use proptest::prelude::*;
use prost_types::Duration;
use spillway_proto::v1;

/// Messages near enough to correct ones that the checks deep inside are reached.
pub(super) fn garbage() -> impl Strategy<Value = v1::Configuration> {
    let text = || {
        prop_oneof![
            Just(String::new()),
            prop::sample::select(vec!["eu", "us", "http", "web", "10.0.0.1", "::1", "2001:db8::1"])
                .prop_map(String::from),
            any::<String>(),
        ]
    };
    let number = || prop_oneof![0u32..300, any::<u32>()];
    let duration = || {
        prop::option::of((any::<i64>(), any::<i32>()))
            .prop_map(|duration| duration.map(|(seconds, nanos)| Duration { seconds, nanos }))
    };
    let backend = (text(), text(), any::<Option<u32>>(), -1i32..4, number()).prop_map(
        |(address, region, weight, wanted, mtu)| v1::Backend {
            address,
            region,
            weight,
            wanted,
            mtu,
        },
    );
    let pool = (text(), prop::collection::vec(backend, 0..4), number()).prop_map(
        |(name, backends, slots)| v1::Pool { name, backends, health_checks: vec![], slots },
    );
    let check = (text(), number(), duration(), duration(), number()).prop_map(
        |(name, port, interval, timeout, rise)| v1::HealthCheck {
            probe: Some(v1::health_check::Probe::Tcp(v1::TcpProbe {})),
            name,
            port,
            interval,
            timeout,
            rise,
            ..Default::default()
        },
    );
    let service = (text(), text(), number(), -1i32..4, text(), -1i32..4).prop_map(
        |(name, address, port, protocol, pool, affinity)| v1::Service {
            name,
            address,
            port,
            protocol,
            pool,
            affinity,
        },
    );
    let region = (text(), prop::collection::vec(text(), 0..3));
    (
        prop::collection::vec(region, 0..3),
        prop::collection::vec(check, 0..3),
        prop::collection::vec(pool, 0..3),
        prop::collection::vec(service, 0..3),
        text(),
    )
        .prop_map(|(regions, health_checks, pools, services, hash_key)| v1::Configuration {
            regions: regions
                .into_iter()
                .map(|(name, overflow_to)| v1::Region { name, overflow_to })
                .collect(),
            health_checks,
            pools,
            services,
            hash_key,
        })
}
