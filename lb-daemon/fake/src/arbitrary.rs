//! Random valid configurations for property tests, small and close to each other so that two of them
//! share objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    num::NonZeroU32,
    time::Duration,
};

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{select, subsequence},
};

use lb_base::Prefix;
use lb_model::*;

fn names(prefix: &'static str, count: usize) -> Vec<Name> {
    (0..count).map(|n| Name::new(&format!("{prefix}{n}")).unwrap()).collect()
}

fn backend_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (1u8..30).prop_map(|n| IpAddr::from([10, 0, 0, n])),
        (1u16..10).prop_map(|n| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 1, n])),
    ]
}

/// An address has the same region and MTU in every pool, because both derive from it.
fn backend(address: IpAddr) -> impl Strategy<Value = Backend> {
    let last = match address {
        IpAddr::V4(v4) => u16::from(v4.octets()[3]),
        IpAddr::V6(v6) => v6.segments()[7],
    };
    let admin_state = prop_oneof![
        3 => Just(AdminState::Active), 1 => Just(AdminState::Disabled), 1 => Just(AdminState::Drain),
    ];
    (1u32..5, admin_state, option::of(rate())).prop_map(
        move |(weight, admin_state, max_connection_rate)| Backend {
            region: names("region", 3)[usize::from(last % 3)].clone(),
            weight,
            admin_state,
            mtu: last.is_multiple_of(5).then_some(1400),
            max_connection_rate,
        },
    )
}

/// From what a few balancers can share to more than a machine can take.
fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![Just(1.0), 1.0f64..100.0, (1u32..10_000_000).prop_map(f64::from)]
        .prop_map(|per_second| Rate::new(per_second).unwrap())
}

/// Valid group settings for such backends.
fn groups(
    backends: &BTreeMap<IpAddr, Backend>,
) -> impl Strategy<Value = BTreeMap<Name, GroupSettings>> + use<> {
    let mut limited: BTreeMap<Name, bool> = BTreeMap::new();
    for backend in backends.values().filter(|backend| backend.weight > 0) {
        *limited.entry(backend.region.clone()).or_insert(true) &=
            backend.max_connection_rate.is_some();
    }
    let group = |(region, limited): (Name, bool)| {
        let scaler = prop_oneof![Just(0.0), Just(1.0), 0.1f64..1.0];
        (option::of(rate()), scaler, any::<bool>()).prop_map(move |(capacity, scaler, drained)| {
            let fixed = !limited && capacity.is_none();
            let scaler = if fixed { scaler.round() } else { scaler };
            let scaler = Scaler::new(scaler).unwrap();
            (region.clone(), GroupSettings { capacity, scaler, drained })
        })
    };
    limited.into_iter().map(group).collect::<Vec<_>>().prop_map(|groups| {
        groups.into_iter().filter(|(_, group)| *group != GroupSettings::default()).collect()
    })
}

fn http() -> impl Strategy<Value = CheckKind> {
    let method = select(vec!["GET", "HEAD", "POST"]);
    let rest = ("/[!-~]{0,5}", option::of("[!-~]{1,5}"), 100u16..=599, 100u16..=599);
    (method, option::of(".{1,5}"), option::of("[a-z-]{1,5}"), rest).prop_map(
        |(method, body, agent_header, (path, host, a, b))| {
            CheckKind::Http(HttpCheck {
                method: method.to_owned(),
                path,
                host,
                status_min: a.min(b),
                status_max: a.max(b),
                body_contains: body.filter(|_| method != "HEAD"),
                agent_header,
            })
        },
    )
}

fn check_kind() -> impl Strategy<Value = CheckKind> {
    let bytes = || vec(any::<u8>(), 0..5);
    prop_oneof![
        Just(CheckKind::Tcp),
        http(),
        ("[a-z.]{0,5}", option::of("[a-z]{1,5}"))
            .prop_map(|(service, authority)| { CheckKind::Grpc(GrpcCheck { service, authority }) }),
        (bytes(), bytes(), bytes()).prop_map(|(request, answer_prefix, answer_contains)| {
            CheckKind::Udp(UdpCheck { request, answer_prefix, answer_contains })
        }),
        bytes().prop_map(|send| CheckKind::Agent(AgentCheck { send })),
    ]
}

fn tls() -> impl Strategy<Value = CheckTls> {
    let trust =
        prop_oneof![Just(Trust::Anybody), Just(Trust::Host), "/[ -~]{0,5}".prop_map(Trust::File),];
    (option::of("[a-z]{1,5}\\.example"), trust)
        .prop_map(|(server_name, trust)| CheckTls { server_name, trust })
}

prop_compose! {
    fn health_check()(
        kind in check_kind(), tls in option::of(tls()),
        via in prop_oneof![Just(Via::Address), Just(Via::Tunnel)],
        port in 1u16..,
        times in (10u64..3_600_000, 10u64..3_600_000, 1u64..3_600_000),
        rise in 1u32..=100, fall in 1u32..=100, jitter_percent in 0u32..=50,
        host_probe in select(HostProbe::ALL), host_probe_port in 1u16..,
    ) -> HealthCheck {
        HealthCheck {
            tls: tls.filter(|_| !matches!(kind, CheckKind::Udp(_))),
            kind,
            via,
            port,
            interval: Duration::from_millis(times.0),
            fast_interval: Duration::from_millis(times.0.min(times.1)),
            timeout: Duration::from_millis(times.0.min(times.2)),
            rise, fall, jitter_percent, host_probe, host_probe_port,
        }
    }
}

fn pool(checks: Vec<Name>) -> impl Strategy<Value = Pool> {
    let backends = vec(backend_address(), 0..8).prop_flat_map(|addresses| {
        let addresses: BTreeSet<IpAddr> = addresses.into_iter().collect();
        addresses.into_iter().map(|a| (Just(a), backend(a))).collect::<Vec<_>>()
    });
    let backends = backends.prop_flat_map(|backends| {
        let backends: BTreeMap<_, _> = backends.into_iter().collect();
        let groups = groups(&backends);
        (Just(backends), groups)
    });
    let most = checks.len();
    let isolation =
        prop_oneof![Just(Isolation::None), Just(Isolation::OnFailure), Just(Isolation::Strict)];
    let encapsulation = prop_oneof![
        Just(Encapsulation::IpInIp),
        (1u16..).prop_map(Encapsulation::Gue),
        Just(Encapsulation::Direct),
    ];
    let rest = (
        subsequence(checks, 0..=most),
        select(vec![31u32, 251, 65_537]),
        isolation,
        subsequence(names("region", 3), 0..=2).prop_shuffle(),
        prop_oneof![Just(0), 1u32..=100],
        (1_000u64..86_400_000).prop_map(Duration::from_millis),
        prop_oneof![Just(0), 1_000u64..=3_600_000].prop_map(Duration::from_millis),
        (prop_oneof![Just(0), 1_000u64..=600_000], 600_000u64..=86_400_000)
            .prop_map(|(first, most)| (Duration::from_millis(first), Duration::from_millis(most))),
        encapsulation,
    );
    (backends, rest).prop_map(
        |(
            (backends, groups),
            (
                health_checks,
                slots,
                isolation,
                preferred_regions,
                panic,
                settle,
                slow_start,
                (hold_down, max_hold_down),
                encapsulation,
            ),
        )| {
            Pool {
                backends,
                health_checks,
                slots,
                groups,
                isolation,
                preferred_regions,
                panic_threshold_percent: panic,
                settle_time: settle,
                slow_start,
                hold_down,
                max_hold_down,
                encapsulation,
            }
        },
    )
}

fn services(pools: Vec<Name>) -> BoxedStrategy<BTreeMap<Name, Service>> {
    if pools.is_empty() {
        return Just(BTreeMap::new()).boxed();
    }
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)];
    // The last is any port, which excludes other ports.
    let endpoint = (0u8..3, 80u16..84, protocol);
    let rest = (
        select(names("service", 6)),
        select(pools),
        select(vec![Affinity::Connection, Affinity::Client, Affinity::Port]),
        any::<bool>(),
        any::<[bool; 2]>(),
        option::of((1u64..64_800, 0u32..1_000_000_000)),
    );
    btree_map(endpoint, rest, 0..5)
        .prop_map(|services| {
            services
                .into_iter()
                .map(|((host, port, protocol), rest)| {
                    let (name, pool, affinity, reject, [several, fragments], idle) = rest;
                    let ports = match port {
                        83 => Ports::Any,
                        _ if several || affinity == Affinity::Port => {
                            let ranges = [(port, port), (100 * port, 100 * port + 2)];
                            Ports::Listed(PortList::new(ranges).unwrap())
                        }
                        port => Ports::one(port),
                    };
                    // Only one service of an address and protocol may have them.
                    let served = fragments && affinity == Affinity::Client && port == 80;
                    let fragments = if served { Fragments::Served } else { Fragments::Dropped };
                    let address = match host {
                        0 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
                        n => IpAddr::from([192, 0, 2, n]),
                    };
                    let idle = idle.filter(|_| protocol == Protocol::Udp);
                    let idle_timeout = idle.map(|(s, ns)| Duration::new(s, ns));
                    let stateless = protocol == Protocol::Udp && idle.is_none();
                    let when_full =
                        if reject && !stateless { WhenFull::Reject } else { WhenFull::Nearest };
                    let service = Service {
                        address,
                        ports,
                        protocol,
                        pool,
                        affinity,
                        when_full,
                        idle_timeout,
                        fragments,
                    };
                    (name, service)
                })
                .collect()
        })
        .boxed()
}

/// Pools that share a backend must agree on direct return: makes those use a tunnel that share one with a
/// pool in a tunnel.
fn agree(mut pools: BTreeMap<Name, Pool>) -> BTreeMap<Name, Pool> {
    let is_direct = |pool: &Pool| pool.encapsulation == Encapsulation::Direct;
    loop {
        let in_tunnels = pools.values().filter(|pool| !is_direct(pool));
        let in_tunnels: BTreeSet<IpAddr> =
            in_tunnels.flat_map(|pool| pool.backends.keys().copied()).collect();
        let shares = |pool: &&mut Pool| {
            is_direct(pool) && pool.backends.keys().any(|address| in_tunnels.contains(address))
        };
        let Some(pool) = pools.values_mut().find(shares) else { return pools };
        pool.encapsulation = Encapsulation::IpInIp;
    }
}

/// Prefixes of VIPs, of which longer ones are in shorter ones.
fn vip_prefix() -> impl Strategy<Value = Prefix> {
    (select(vec!["192.0.2.1", "2001:db8::1"]), 0..=128u8)
        .prop_map(|(address, bits)| Prefix::containing(address.parse().unwrap(), bits))
}

/// A valid configuration.
pub fn configuration() -> impl Strategy<Value = Configuration> {
    // Each region overflows only to later ones in some order, so there is no circle.
    let regions = Just(names("region", 3)).prop_shuffle().prop_flat_map(|order| {
        let regions = order.iter().enumerate().map(|(place, name)| {
            let later = order[place + 1..].to_vec();
            let most = later.len();
            (Just(name.clone()), subsequence(later, 0..=most).prop_shuffle())
        });
        regions.collect::<Vec<_>>()
    });
    let checks = btree_map(select(names("check", 3)), health_check(), 0..3);
    let rest = (
        option::of(any::<[u64; 2]>()),
        1u32..=5,
        btree_map(vip_prefix(), select(Unserved::ALL), 0..4),
    );
    (regions, checks, rest)
        .prop_flat_map(|(regions, checks, rest)| {
            let pools = pool(checks.keys().cloned().collect());
            let pools = btree_map(select(names("pool", 4)), pools, 0..4).prop_map(agree);
            (Just(regions), Just(checks), Just(rest), pools)
        })
        .prop_flat_map(|(regions, checks, rest, pools)| {
            let services = services(pools.keys().cloned().collect());
            (Just(regions), Just(checks), Just(rest), Just(pools), services)
        })
        .prop_map(|(regions, health_checks, (hash_key, balancers, vips), pools, services)| {
            Configuration {
                regions: regions
                    .into_iter()
                    .map(|(name, overflow_to)| (name, Region { overflow_to }))
                    .collect(),
                health_checks,
                pools: pools.into_iter().map(|(name, pool)| (name, pool.into())).collect(),
                services,
                // Several balancers need one.
                hash_key: hash_key.or((balancers > 1).then_some([5, 6])),
                balancers: NonZeroU32::new(balancers).unwrap(),
                vips,
            }
        })
}
