//! A file that says everything.

use super::*;

pub(super) const FILE: &str = r#"
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
host_probe = "icmp"
host_probe_port = 9
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
hold_down = "0s"
max_hold_down = "2m"
encapsulation = "gue"
gue_port = 6081

[[pool.group]]
region = "eu"
capacity = "600/m"
scaler = 1
drained = true

[[pool.backend]]
address = "10.0.0.1"
region = "eu"
weight = 0
admin_state = "disabled"
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

[[vip]]
prefix = "192.0.2.0/24"
unserved = "drop"

[[vip]]
prefix = "2001:db8::1"
"#;

#[test]
fn a_file_says_what_the_message_says() {
    let expected = v1::Configuration {
        regions: vec![
            v1::Region { name: "eu".into(), overflow_to: vec!["us".into()], ..Default::default() },
            v1::Region { name: "us".into(), ..Default::default() },
        ],
        health_checks: vec![
            v1::HealthCheck {
                name: "web-http".into(),
                kind: Some(v1::health_check::Kind::Http(v1::HttpCheck {
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
                host_probe: v1::HostProbe::Icmp.into(),
                host_probe_port: 9,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "open".into(),
                kind: Some(v1::health_check::Kind::Tcp(v1::TcpCheck {})),
                port: 80,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "shop".into(),
                kind: Some(v1::health_check::Kind::Http(v1::HttpCheck {
                    method: "POST".into(),
                    body_contains: "\"ok\"".into(),
                    agent_header: "endpoint-load-metrics".into(),
                    ..Default::default()
                })),
                tls: Some(v1::CheckTls {
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
                kind: Some(v1::health_check::Kind::Grpc(v1::GrpcCheck {
                    service: "shop.Cart".into(),
                    authority: "cart.example".into(),
                })),
                tls: Some(v1::CheckTls::default()),
                port: 50051,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "dns".into(),
                kind: Some(v1::health_check::Kind::Udp(v1::UdpCheck {
                    request: b"\x00\xff\n".to_vec(),
                    answer_prefix: b"pong\n".to_vec(),
                    answer_contains: b"\x80".to_vec(),
                })),
                port: 53,
                ..Default::default()
            },
            v1::HealthCheck {
                name: "load".into(),
                kind: Some(v1::health_check::Kind::Agent(v1::AgentCheck {
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
                    admin_state: v1::AdminState::Disabled.into(),
                    mtu: 1400,
                    max_connection_rate_per_second: Some(2.5),
                    ..Default::default()
                },
                v1::Backend {
                    address: "2001:db8::1".into(),
                    region: "us".into(),
                    ..Default::default()
                },
            ],
            health_checks: vec!["web-http".into(), "open".into()],
            slots: Some(251),
            groups: vec![v1::Group {
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
            hold_down: Some(prost_types::Duration { seconds: 0, nanos: 0 }),
            max_hold_down: Some(prost_types::Duration { seconds: 120, nanos: 0 }),
            encapsulation: v1::Encapsulation::Gue.into(),
            gue_port: 6081,
            ..Default::default()
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
        vips: vec![
            v1::VipRange { prefix: "192.0.2.0/24".into(), unserved: v1::Unserved::Drop.into() },
            v1::VipRange { prefix: "2001:db8::1".into(), unserved: 0 },
        ],
    };
    assert_eq!(v1::Configuration::from(Document::parse(FILE).unwrap()), expected);
}
