use std::{num::NonZeroU32, time::Duration};

use proptest::{collection::vec, option, prelude::*};
use spillway_proto::v1;

use super::*;

const FILE: &str = r#"
hash_key = "000102030405060708090a0b0c0d0e0f"
balancers = 2

[[region]]
name = "eu"
overflow_to = ["us"]

[[region]]
name = "us"

[[health_check]]
name = "web-http"
port = 8080
interval = "500ms"
timeout = "1s"
rise = 3
fall = 4
jitter_percent = 0
http = { path = "/healthz", host = "web.example", status_min = 200, status_max = 204 }

[[health_check]]
name = "open"
port = 80
tcp = {}

[[health_check]]
name = "shop"
port = 443
fast_interval = "100ms"
http = { method = "POST", body_contains = '"ok"', agent_header = "endpoint-load-metrics" }
tls = { server_name = "shop.example", verify = true, ca_file = "/etc/ca.pem" }

[[health_check]]
name = "cart"
port = 50051
grpc = { service = "shop.Cart", authority = "cart.example" }
tls = {}

[[health_check]]
name = "dns"
port = 53
udp = { request = "hex:00ff 0a", answer_prefix = "pong\n", answer_contains = "hex:80" }
[[health_check]]
name = "load"
port = 9707
agent = { send = "status\n" }

[[pool]]
name = "web"
health_checks = ["web-http", "open"]
slots = 251
isolation = "on_failure"
preferred_regions = ["us"]
panic_threshold_percent = 40
settle_time = "90s"
slow_start = "30s"

[[pool.group]]
region = "eu"
capacity = "600/m"
scaler = 1
drained = true

[[pool.backend]]
address = "10.0.0.1"
region = "eu"
weight = 0
wanted = "disabled"
mtu = 1400
max_connection_rate = "2.5/s"

[[pool.backend]]
address = "2001:db8::1"
region = "us"

[[service]]
name = "web"
address = "192.0.2.1"
port = 80
protocol = "tcp"
pool = "web"
affinity = "client"
when_full = "reject"

[[service]]
name = "dns"
address = "192.0.2.1"
port = 53
protocol = "udp"
pool = "web"
udp = "tracked"
idle_timeout = "1m"
"#;

#[test]
fn a_file_says_what_the_message_says() {
    let expected = v1::Configuration {
        regions: vec![
            v1::Region { name: "eu".into(), overflow_to: vec!["us".into()] },
            v1::Region { name: "us".into(), overflow_to: vec![] },
        ],
        health_checks: vec![
            v1::HealthCheck {
                name: "web-http".into(),
                probe: Some(v1::health_check::Probe::Http(v1::HttpProbe {
                    path: "/healthz".into(),
                    host: "web.example".into(),
                    status_min: 200,
                    status_max: 204,
                    ..Default::default()
                })),
                port: 8080,
                interval: Some(prost_types::Duration { seconds: 0, nanos: 500_000_000 }),
                timeout: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
                rise: 3,
                fall: 4,
                jitter_percent: Some(0),
                ..Default::default()
            },
            v1::HealthCheck {
                name: "open".into(),
                probe: Some(v1::health_check::Probe::Tcp(v1::TcpProbe {})),
                port: 80,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "shop".into(),
                probe: Some(v1::health_check::Probe::Http(v1::HttpProbe {
                    method: "POST".into(),
                    body_contains: "\"ok\"".into(),
                    agent_header: "endpoint-load-metrics".into(),
                    ..Default::default()
                })),
                tls: Some(v1::TlsProbe {
                    server_name: "shop.example".into(),
                    verify: Some(true),
                    ca_file: "/etc/ca.pem".into(),
                }),
                port: 443,
                fast_interval: Some(prost_types::Duration { seconds: 0, nanos: 100_000_000 }),
                ..Default::default()
            },
            v1::HealthCheck {
                name: "cart".into(),
                probe: Some(v1::health_check::Probe::Grpc(v1::GrpcProbe {
                    service: "shop.Cart".into(),
                    authority: "cart.example".into(),
                })),
                tls: Some(v1::TlsProbe::default()),
                port: 50051,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "dns".into(),
                probe: Some(v1::health_check::Probe::Udp(v1::UdpProbe {
                    request: b"\x00\xff\n".to_vec(),
                    answer_prefix: b"pong\n".to_vec(),
                    answer_contains: b"\x80".to_vec(),
                })),
                port: 53,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "load".into(),
                probe: Some(v1::health_check::Probe::Agent(v1::AgentProbe {
                    send: b"status\n".to_vec(),
                })),
                port: 9707,
                ..Default::default()
            },
        ],
        pools: vec![v1::Pool {
            name: "web".into(),
            backends: vec![
                v1::Backend {
                    address: "10.0.0.1".into(),
                    region: "eu".into(),
                    weight: Some(0),
                    wanted: v1::WantedState::Disabled.into(),
                    mtu: 1400,
                    max_connection_rate_per_second: Some(2.5),
                },
                v1::Backend {
                    address: "2001:db8::1".into(),
                    region: "us".into(),
                    ..Default::default()
                },
            ],
            health_checks: vec!["web-http".into(), "open".into()],
            slots: 251,
            groups: vec![v1::PoolRegion {
                region: "eu".into(),
                capacity_per_second: Some(10.0),
                scaler: Some(1.0),
                drained: true,
            }],
            isolation: v1::Isolation::OnFailure.into(),
            preferred_regions: vec!["us".into()],
            panic_threshold_percent: 40,
            settle_time: Some(prost_types::Duration { seconds: 90, nanos: 0 }),
            slow_start: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
        }],
        services: vec![
            v1::Service {
                name: "web".into(),
                address: "192.0.2.1".into(),
                port: 80,
                protocol: v1::Protocol::Tcp.into(),
                pool: "web".into(),
                affinity: v1::Affinity::Client.into(),
                when_full: v1::WhenFull::Reject.into(),
                ..Default::default()
            },
            v1::Service {
                name: "dns".into(),
                address: "192.0.2.1".into(),
                port: 53,
                protocol: v1::Protocol::Udp.into(),
                pool: "web".into(),
                udp: v1::UdpMode::Tracked.into(),
                idle_timeout: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
                ..Default::default()
            },
        ],
        hash_key: "000102030405060708090a0b0c0d0e0f".into(),
        balancers: 2,
    };
    assert_eq!(v1::Configuration::from(Document::parse(FILE).unwrap()), expected);
}

#[test]
fn a_file_that_says_so_is_an_empty_configuration_and_one_that_was_cut_off_is_not() {
    let document = Document::parse("# nothing\n").unwrap();
    assert_eq!(v1::Configuration::from(document.clone()), v1::Configuration::default());
    assert_eq!(document.to_toml().unwrap(), "# nothing\n");
    for text in ["", "\n", " \t\r\n\n"] {
        let error = Document::parse(text).unwrap_err().to_string();
        assert_eq!(error, "is empty, by which everything would go; `# nothing` alone means that");
    }
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let service = "[[service]]\nname = \"web\"\naddress = \"192.0.2.1\"\npool = \"web\"\n";
    let check = "\n[[health_check]]\nname = \"x\"\nport = 1\n";
    for (text, expected) in [
        ("hash_key = 5", "line 1, column 12: invalid type: integer `5`, expected a string"),
        (
            &format!("{service}port = 80\nprotcol = \"tcp\"\n"),
            "line 6, column 1: unknown field `protcol`, expected one of \
             `name`, `address`, `port`, `protocol`, `pool`, `affinity`, `when_full`, `udp`, \
             `idle_timeout`",
        ),
        (&format!("{service}port = 80\n"), "line 1, column 1: missing field `protocol`"),
        (
            &format!("{service}protocol = \"tcp\"\nport = -1\n"),
            "line 6, column 8: invalid value: integer `-1`, expected u32",
        ),
        (
            &format!("{service}port = 80\nprotocol = \"sctp\"\n"),
            "line 6, column 12: unknown variant `sctp`, expected `tcp` or `udp`",
        ),
        (
            &format!("{check}tcp = {{}}\ninterval = 5\n"),
            "line 6, column 12: invalid type: integer `5`, expected a duration with its unit, \
             such as \"500ms\" or \"2s\"",
        ),
        (
            &format!("{check}tcp = {{}}\ninterval = \"5\"\n"),
            "line 6, column 12: invalid value: string \"5\", expected a duration with its unit, \
             such as \"500ms\" or \"2s\"",
        ),
        (
            "[[pool]]\nname = \"web\"\n[[pool.group]]\nregion = \"eu\"\ncapacity = \"10\"\n",
            "line 5, column 12: invalid value: string \"10\", expected a rate with its unit, \
             such as \"10/s\" or \"600/m\"",
        ),
        (
            "[[pool]]\nname = \"web\"\n[[pool.group]]\nregion = \"eu\"\ncapacity = 10\n",
            "line 5, column 12: invalid type: integer `10`, expected a rate with its unit, \
             such as \"10/s\" or \"600/m\"",
        ),
        (
            &format!("{check}tcp = {{}}\nrise = 0\n"),
            "line 6, column 8: invalid value: integer `0`, expected a nonzero u32",
        ),
        (
            check,
            "line 2, column 1: health check \"x\": give one of tcp = {}, http = {}, grpc = {}, \
             udp = {} and agent = {}",
        ),
        (
            &format!("{check}tcp = {{}}\nhttp = {{}}\n"),
            "line 2, column 1: health check \"x\": give one of tcp = {}, http = {}, grpc = {}, \
             udp = {} and agent = {}",
        ),
        (
            &format!("{check}udp = {{ request = \"hex:0\" }}\n"),
            "line 5, column 19: invalid value: string \"hex:0\", expected a text, or bytes such as \
             \"hex:0001 00ff\"",
        ),
        ("[[region]]\nname = \"ä\"\nname = \"b\"", "line 3, column 1: duplicate key"),
        ("[[region", "line 1, column 9: unclosed array table, expected `]]`"),
    ] {
        assert_eq!(Document::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn durations_are_whole_numbers_with_a_unit() {
    for (text, expected, again) in [
        ("500ms", Duration::from_millis(500), "500ms"),
        ("2s", Duration::from_secs(2), "2s"),
        ("0090s", Duration::from_secs(90), "90s"),
        ("120s", Duration::from_secs(120), "2m"),
        ("1h", Duration::from_secs(3600), "1h"),
        ("0ms", Duration::ZERO, "0s"),
        ("1500us", Duration::from_micros(1500), "1500us"),
        ("7ns", Duration::from_nanos(7), "7ns"),
        ("18446744073709551615s", Duration::from_secs(u64::MAX), "18446744073709551615s"),
    ] {
        assert_eq!(duration::parse(text), Some(expected), "{text}");
        assert_eq!(duration::spell(expected), again);
    }
    for bad in ["", "5", "s", "-1s", "1.5s", "1 s", "1S", "1s ", "1d", "18446744073709551615h"] {
        assert_eq!(duration::parse(bad), None, "{bad}");
    }
}

fn number() -> impl Strategy<Value = Option<NonZeroU32>> {
    option::of((1u32..).prop_map(|n| NonZeroU32::new(n).unwrap()))
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{1,8}")
}

fn time() -> impl Strategy<Value = Option<Duration>> {
    option::of((0u64..4_000_000_000_000).prop_map(Duration::from_nanos))
}

fn bytes() -> impl Strategy<Value = Option<Bytes>> {
    option::of(
        prop_oneof![vec(any::<u8>(), 1..8), "(hex:)?.{1,8}".prop_map(String::into_bytes),]
            .prop_map(Bytes),
    )
}

fn probe() -> impl Strategy<Value = Probe> {
    prop_oneof![
        Just(Probe::Tcp),
        (text(), text(), text(), number(), number(), text(), text()).prop_map(
            |(method, path, host, status_min, status_max, body_contains, agent_header)| {
                Probe::Http(HttpProbe {
                    method,
                    path,
                    host,
                    status_min,
                    status_max,
                    body_contains,
                    agent_header,
                })
            },
        ),
        (text(), text())
            .prop_map(|(service, authority)| { Probe::Grpc(GrpcProbe { service, authority }) }),
        (bytes(), bytes(), bytes()).prop_map(|(request, answer_prefix, answer_contains)| {
            Probe::Udp(UdpProbe { request, answer_prefix, answer_contains })
        }),
        bytes().prop_map(|send| Probe::Agent(AgentProbe { send })),
    ]
}

fn tls() -> impl Strategy<Value = TlsProbe> {
    (text(), any::<Option<bool>>(), text()).prop_map(|(server_name, verify, ca_file)| TlsProbe {
        server_name,
        verify,
        ca_file,
    })
}

prop_compose! {
    fn check()(
        name in ".{0,8}", port in any::<u32>(), interval in time(), fast_interval in time(),
        timeout in time(), rise in number(), fall in number(),
        jitter_percent in any::<Option<u32>>(), probe in probe(), tls in option::of(tls()),
    ) -> HealthCheck {
        HealthCheck {
            name, probe, tls, port, interval, fast_interval, timeout, rise, fall, jitter_percent,
        }
    }
}

prop_compose! {
    fn backend()(
        address in ".{0,8}", region in ".{0,8}", weight in any::<Option<u32>>(), mtu in number(),
        wanted in option::of(prop_oneof![
            Just(WantedState::Active), Just(WantedState::Disabled), Just(WantedState::Drain),
        ]),
        max_connection_rate in float(),
    ) -> Backend {
        Backend { address, region, weight, wanted, mtu, max_connection_rate }
    }
}

prop_compose! {
    fn service()(
        name in ".{0,8}", address in ".{0,8}", port in any::<u32>(), pool in ".{0,8}",
        protocol in prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)],
        affinity in option::of(prop_oneof![Just(Affinity::Connection), Just(Affinity::Client)]),
        when_full in option::of(prop_oneof![Just(WhenFull::Nearest), Just(WhenFull::Reject)]),
        udp in option::of(prop_oneof![Just(UdpMode::Stateless), Just(UdpMode::Tracked)]),
        idle_timeout in time(),
    ) -> Service {
        Service { name, address, port, protocol, pool, affinity, when_full, udp, idle_timeout }
    }
}

/// Whatever a message can hold and a comparison can see.
fn float() -> impl Strategy<Value = Option<f64>> {
    use proptest::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    option::of(POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE)
}

prop_compose! {
    fn pool()(
        name in ".{0,8}", health_checks in vec(".{0,8}", 0..3), slots in number(),
        isolation in option::of(prop_oneof![
            Just(Isolation::None), Just(Isolation::OnFailure), Just(Isolation::Strict),
        ]),
        preferred_regions in vec(".{0,8}", 0..3), panic_threshold_percent in number(),
        settle_time in time(), slow_start in time(),
        groups in vec((".{0,8}", float(), float(), any::<bool>()), 0..3),
        backends in vec(backend(), 0..3),
    ) -> Pool {
        let group = |(region, capacity, scaler, drained)| PoolRegion {
            region, capacity, scaler, drained,
        };
        Pool {
            name, health_checks, slots, isolation, preferred_regions, panic_threshold_percent,
            settle_time, slow_start,
            groups: groups.into_iter().map(group).collect(),
            backends,
        }
    }
}

prop_compose! {
    fn document()(
        hash_key in text(),
        regions in vec((".{0,8}", vec(".{0,8}", 0..3)), 0..3),
        health_checks in vec(check(), 0..3),
        pools in vec(pool(), 0..3),
        services in vec(service(), 0..3),
        balancers in number(),
    ) -> Document {
        let region = |(name, overflow_to)| Region { name, overflow_to };
        Document {
            hash_key,
            balancers,
            regions: regions.into_iter().map(region).collect(),
            health_checks,
            pools,
            services,
        }
    }
}

proptest! {
    #[test]
    fn every_document_survives_its_file_and_its_message(document in document()) {
        prop_assert_eq!(&Document::parse(&document.to_toml().unwrap()).unwrap(), &document);
        let message = v1::Configuration::from(document.clone());
        prop_assert_eq!(Document::try_from(message).unwrap(), document);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), cut in any::<prop::sample::Index>()) {
        let _ = Document::parse(&text);
        let _ = Document::parse(&FILE[..cut.index(FILE.len())]);
    }
}
