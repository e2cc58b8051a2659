//! Random valid configurations for property tests, small and close to each other so that two of them
//! share objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{select, subsequence},
};

use super::*;

fn names(prefix: &'static str, count: usize) -> Vec<Name> {
    (0..count).map(|n| Name::new(&format!("{prefix}{n}")).unwrap()).collect()
}

fn backend_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (1u8..30).prop_map(|n| IpAddr::from([10, 0, 0, n])),
        (1u16..10).prop_map(|n| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 1, n])),
    ]
}

/// A host's region and MTU follow from its address: they are the same in every pool.
fn backend(address: IpAddr) -> impl Strategy<Value = Backend> {
    let last = match address {
        IpAddr::V4(v4) => u16::from(v4.octets()[3]),
        IpAddr::V6(v6) => v6.segments()[7],
    };
    let wanted = prop_oneof![3 => Just(WantedState::Active), 1 => Just(WantedState::Disabled)];
    (1u32..5, wanted).prop_map(move |(weight, wanted)| Backend {
        region: names("region", 3)[usize::from(last % 3)].clone(),
        weight,
        wanted,
        mtu: last.is_multiple_of(5).then_some(1400),
    })
}

prop_compose! {
    fn health_check()(
        http in option::of((
            "/[!-~]{0,5}", option::of("[!-~]{1,5}"), 100u16..=599, 100u16..=599,
        )),
        port in 1u16..,
        times in (10u64..3_600_000, 1u64..3_600_000),
        rise in 1u32..=100, fall in 1u32..=100, jitter_percent in 0u32..=50,
    ) -> HealthCheck {
        HealthCheck {
            probe: http.map_or(Probe::Tcp, |(path, host, a, b)| {
                Probe::Http(HttpProbe { path, host, status_min: a.min(b), status_max: a.max(b) })
            }),
            port,
            interval: Duration::from_millis(times.0),
            timeout: Duration::from_millis(times.0.min(times.1)),
            rise, fall, jitter_percent,
        }
    }
}

fn pool(checks: Vec<Name>) -> impl Strategy<Value = Pool> {
    let backends = vec(backend_address(), 0..8).prop_flat_map(|addresses| {
        let addresses: BTreeSet<IpAddr> = addresses.into_iter().collect();
        addresses.into_iter().map(|a| (Just(a), backend(a))).collect::<Vec<_>>()
    });
    let most = checks.len();
    (backends, subsequence(checks, 0..=most), select(vec![31u32, 251, 65_537])).prop_map(
        |(backends, health_checks, slots)| Pool {
            backends: backends.into_iter().collect(),
            health_checks,
            slots,
        },
    )
}

fn services(pools: Vec<Name>) -> BoxedStrategy<BTreeMap<Name, Service>> {
    if pools.is_empty() {
        return Just(BTreeMap::new()).boxed();
    }
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)];
    let endpoint = (0u8..3, 80u16..83, protocol);
    let rest = (
        select(names("service", 6)),
        select(pools),
        prop_oneof![Just(Affinity::Connection), Just(Affinity::Client)],
    );
    btree_map(endpoint, rest, 0..5)
        .prop_map(|services| {
            services
                .into_iter()
                .map(|((host, port, protocol), (name, pool, affinity))| {
                    let address = match host {
                        0 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
                        n => IpAddr::from([192, 0, 2, n]),
                    };
                    (name, Service { address, port, protocol, pool, affinity })
                })
                .collect()
        })
        .boxed()
}

/// A valid configuration.
pub(crate) fn configuration() -> impl Strategy<Value = Configuration> {
    let regions = names("region", 3).into_iter().map(|name| {
        let others: Vec<_> =
            names("region", 3).into_iter().filter(|other| *other != name).collect();
        (Just(name.clone()), subsequence(others, 0..=2).prop_shuffle())
    });
    let checks = btree_map(select(names("check", 3)), health_check(), 0..3);
    (regions.collect::<Vec<_>>(), checks, option::of(any::<[u64; 2]>()))
        .prop_flat_map(|(regions, checks, hash_key)| {
            let pools = pool(checks.keys().cloned().collect());
            let pools = btree_map(select(names("pool", 4)), pools, 0..4);
            (Just(regions), Just(checks), Just(hash_key), pools)
        })
        .prop_flat_map(|(regions, checks, hash_key, pools)| {
            let services = services(pools.keys().cloned().collect());
            (Just(regions), Just(checks), Just(hash_key), Just(pools), services)
        })
        .prop_map(|(regions, health_checks, hash_key, pools, services)| Configuration {
            regions: regions
                .into_iter()
                .map(|(name, overflow_to)| (name, Region { overflow_to }))
                .collect(),
            health_checks,
            pools,
            services,
            hash_key,
        })
}
