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
    let float =
        || prop::option::of(prop_oneof![Just(0.0), Just(1.0), 0.0f64..2.0, prop::num::f64::ANY]);
    let backend = (text(), text(), any::<Option<u32>>(), -1i32..5, number(), float()).prop_map(
        |(address, region, weight, admin_state, mtu, rate)| v1::Backend {
            address,
            region,
            weight,
            admin_state,
            mtu,
            max_connection_rate_per_second: rate,
            ..Default::default()
        },
    );
    let group = (text(), float(), float()).prop_map(|(region, capacity_per_second, scaler)| {
        v1::Group { region, capacity_per_second, scaler, drained: false }
    });
    let regions = || prop::collection::vec(text(), 0..3);
    let rest = (
        prop::collection::vec(group, 0..3),
        -1i32..5,
        regions(),
        number(),
        [duration(), duration(), duration(), duration()],
        (-1i32..5, number()),
    );
    let slots = prop::option::of(number());
    let pool = (text(), prop::collection::vec(backend, 0..4), slots, rest).prop_map(
        |(name, backends, slots, (groups, isolation, preferred_regions, panic, times, way))| {
            let [settle_time, slow_start, hold_down, max_hold_down] = times;
            v1::Pool {
                name,
                backends,
                health_checks: vec![],
                slots,
                groups,
                isolation,
                preferred_regions,
                panic_threshold_percent: panic,
                settle_time,
                slow_start,
                hold_down,
                max_hold_down,
                encapsulation: way.0,
                gue_port: way.1,
                ..Default::default()
            }
        },
    );
    let tls = (text(), any::<Option<bool>>(), text())
        .prop_map(|(server_name, verify, ca_file)| v1::CheckTls { server_name, verify, ca_file });
    let times = (duration(), duration(), duration());
    let kind = (kind(), prop::option::of(tls));
    let check = (text(), number(), times, number(), kind).prop_map(
        |(name, port, (interval, fast_interval, timeout), rise, (kind, tls))| v1::HealthCheck {
            kind,
            tls,
            fast_interval,
            name,
            port,
            interval,
            timeout,
            rise,
            ..Default::default()
        },
    );
    let range = (number(), number()).prop_map(|(first, last)| v1::PortRange { first, last });
    let ports = (prop::collection::vec(range, 0..3), any::<bool>(), -1i32..4);
    let rest = (-1i32..4, -1i32..4, duration(), ports);
    let service = (text(), text(), number(), -1i32..4, text(), -1i32..5, rest).prop_map(
        |(name, address, port, protocol, pool, affinity, rest)| {
            let (when_full, udp, idle_timeout, (ports, any_port, fragments)) = rest;
            v1::Service {
                name,
                address,
                port,
                protocol,
                pool,
                affinity,
                when_full,
                udp,
                idle_timeout,
                ports,
                any_port,
                fragments,
                ..Default::default()
            }
        },
    );
    let region = (text(), regions());
    (
        prop::collection::vec(region, 0..3),
        prop::collection::vec(check, 0..3),
        prop::collection::vec(pool, 0..3),
        prop::collection::vec(service, 0..3),
        (text(), number(), prop::collection::vec((text(), number()), 0..3)),
    )
        .prop_map(|(regions, health_checks, pools, services, rest)| v1::Configuration {
            regions: regions
                .into_iter()
                .map(|(name, overflow_to)| v1::Region { name, overflow_to, ..Default::default() })
                .collect(),
            health_checks,
            pools,
            services,
            hash_key: rest.0,
            balancers: rest.1,
            vips: rest
                .2
                .into_iter()
                .map(|(prefix, unserved)| v1::VipRange { prefix, unserved: unserved.cast_signed() })
                .collect(),
        })
}

fn kind() -> impl Strategy<Value = Option<v1::health_check::Kind>> {
    use v1::health_check::Kind as CheckKind;
    let text = || prop_oneof![Just(String::new()), "[/A-Z]{1,4}", any::<String>()];
    let bytes = || prop::collection::vec(any::<u8>(), 0..4);
    let http = (text(), text(), text(), (text(), text()), 0u32..700, 0u32..700).prop_map(
        |(method, path, host, (body_contains, agent_header), status_min, status_max)| {
            CheckKind::Http(v1::HttpCheck {
                path,
                host,
                status_min,
                status_max,
                method,
                body_contains,
                agent_header,
            })
        },
    );
    let grpc = (text(), text())
        .prop_map(|(service, authority)| CheckKind::Grpc(v1::GrpcCheck { service, authority }));
    let udp = (bytes(), bytes(), bytes()).prop_map(|(request, answer_prefix, answer_contains)| {
        CheckKind::Udp(v1::UdpCheck { request, answer_prefix, answer_contains })
    });
    let agent = bytes().prop_map(|send| CheckKind::Agent(v1::AgentCheck { send }));
    let tcp = Just(CheckKind::Tcp(v1::TcpCheck {}));
    prop::option::weighted(0.9, prop_oneof![tcp, http, grpc, udp, agent])
}
