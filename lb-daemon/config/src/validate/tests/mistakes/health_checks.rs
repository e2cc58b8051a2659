//! What health checks ask.

use prost_types::Duration;

use super::{Row, agent, grpc, http, tls, udp};

pub(super) const PROBES: &[Row] = &[
    (
        |m| http(m).path = "healthz".into(),
        r#"health_checks[0] "http": http.path: "healthz" must begin with '/'"#,
        "health_checks[0].http.path",
    ),
    (
        |m| http(m).path = "/a b".into(),
        r#"health_checks[0] "http": http.path: holds ' '; only printable ASCII without blanks is allowed"#,
        "health_checks[0].http.path",
    ),
    (
        |m| http(m).path = format!("/{}", "x".repeat(2048)),
        r#"health_checks[0] "http": http.path: has 2049 bytes; at most 2048 are allowed"#,
        "health_checks[0].http.path",
    ),
    (
        |m| http(m).host = "a\r\nx: y".into(),
        r#"health_checks[0] "http": http.host: holds '\r'; only printable ASCII without blanks is allowed"#,
        "health_checks[0].http.host",
    ),
    (
        |m| http(m).host = "x".repeat(256),
        r#"health_checks[0] "http": http.host: has 256 bytes; at most 255 are allowed"#,
        "health_checks[0].http.host",
    ),
    (
        |m| http(m).status_min = 99,
        r#"health_checks[0] "http": http.status_min: 99 is not within 100 to 599"#,
        "health_checks[0].http.status_min",
    ),
    (
        |m| http(m).status_max = 600,
        r#"health_checks[0] "http": http.status_max: 600 is not within 100 to 599"#,
        "health_checks[0].http.status_max",
    ),
    (
        |m| http(m).status_max = 199,
        r#"health_checks[0] "http": http.status_max: 199 is below status_min, 200"#,
        "health_checks[0].http.status_max",
    ),
    (
        |m| http(m).method = "get".into(),
        r#"health_checks[0] "http": http.method: "get" may hold only A-Z and '-'"#,
        "health_checks[0].http.method",
    ),
    (
        |m| http(m).method = "X".repeat(17),
        r#"health_checks[0] "http": http.method: has 17 bytes; at most 16 are allowed"#,
        "health_checks[0].http.method",
    ),
    (
        |m| http(m).method = "CONNECT".into(),
        r#"health_checks[0] "http": http.method: CONNECT asks for a tunnel; give GET or HEAD"#,
        "health_checks[0].http.method",
    ),
    (
        |m| http(m).body_contains = "x".repeat(1025),
        r#"health_checks[0] "http": http.body_contains: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].http.body_contains",
    ),
    (
        |m| http(m).agent_header = "x-load: y".into(),
        r#"health_checks[0] "http": http.agent_header: "x-load: y" is not a header name"#,
        "health_checks[0].http.agent_header",
    ),
    (
        |m| http(m).agent_header = "x".repeat(65),
        r#"health_checks[0] "http": http.agent_header: has 65 bytes; at most 64 are allowed"#,
        "health_checks[0].http.agent_header",
    ),
    (
        |m| agent(m).send = vec![0; 1025],
        r#"health_checks[0] "http": agent.send: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].agent.send",
    ),
    (
        |m| (http(m).method, http(m).body_contains) = ("HEAD".into(), "x".into()),
        r#"health_checks[0] "http": http.body_contains: an answer to HEAD has no body"#,
        "health_checks[0].http.body_contains",
    ),
    (
        |m| grpc(m).service = "a b".into(),
        r#"health_checks[0] "http": grpc.service: holds ' '; only printable ASCII without blanks is allowed"#,
        "health_checks[0].grpc.service",
    ),
    (
        |m| grpc(m).service = "x".repeat(256),
        r#"health_checks[0] "http": grpc.service: has 256 bytes; at most 255 are allowed"#,
        "health_checks[0].grpc.service",
    ),
    (
        |m| grpc(m).authority = "a/b".into(),
        r#"health_checks[0] "http": grpc.authority: is not a host, with or without a port"#,
        "health_checks[0].grpc.authority",
    ),
    (
        |m| udp(m).request = vec![0; 1233],
        r#"health_checks[0] "http": udp.request: has 1233 bytes; at most 1232 are allowed"#,
        "health_checks[0].udp.request",
    ),
    (
        |m| udp(m).answer_prefix = vec![0; 1025],
        r#"health_checks[0] "http": udp.answer_prefix: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].udp.answer_prefix",
    ),
    (
        |m| udp(m).answer_contains = vec![0; 1025],
        r#"health_checks[0] "http": udp.answer_contains: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].udp.answer_contains",
    ),
    (
        |m| (*udp(m), *tls(m)) = Default::default(),
        r#"health_checks[0] "http": tls: is not for udp"#,
        "health_checks[0].tls",
    ),
    (
        |m| tls(m).server_name = "a_b c".into(),
        r#"health_checks[0] "http": tls.server_name: "a_b c" is not a DNS name"#,
        "health_checks[0].tls.server_name",
    ),
    (
        |m| tls(m).server_name = "10.0.0.1".into(),
        r#"health_checks[0] "http": tls.server_name: "10.0.0.1" is not a DNS name"#,
        "health_checks[0].tls.server_name",
    ),
    (
        |m| (tls(m).ca_file, tls(m).verify) = ("/a".into(), Some(false)),
        r#"health_checks[0] "http": tls.ca_file: is set, but verify is false; give one of them"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| tls(m).ca_file = "ca.pem".into(),
        r#"health_checks[0] "http": tls.ca_file: "ca.pem" must begin with '/'"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| tls(m).ca_file = "/a\n".into(),
        r#"health_checks[0] "http": tls.ca_file: holds '\n'"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| tls(m).ca_file = format!("/{}", "x".repeat(4095)),
        r#"health_checks[0] "http": tls.ca_file: has 4096 bytes; at most 4095 are allowed"#,
        "health_checks[0].tls.ca_file",
    ),
];

pub(super) const CHECKS: &[Row] = &[
    (
        |m| m.health_checks[0].kind = None,
        r#"health_checks[0] "http": kind: must be set; give tcp, http, grpc, udp or agent"#,
        "health_checks[0].kind",
    ),
    (
        |m| m.health_checks[0].port = 0,
        r#"health_checks[0] "http": port: must be set; give 1 to 65535"#,
        "health_checks[0].port",
    ),
    (
        |m| m.health_checks[0].interval = Some(Duration { seconds: 0, nanos: 9_999_999 }),
        r#"health_checks[0] "http": interval: 9.999999ms is not within 10ms to 1h"#,
        "health_checks[0].interval",
    ),
    (
        |m| m.health_checks[0].interval = Some(Duration { seconds: 3600, nanos: 1 }),
        r#"health_checks[0] "http": interval: 3600.000000001s is not within 10ms to 1h"#,
        "health_checks[0].interval",
    ),
    (
        |m| m.health_checks[0].interval = Some(Duration { seconds: -1, nanos: 0 }),
        r#"health_checks[0] "http": interval: is not a valid duration"#,
        "health_checks[0].interval",
    ),
    (
        |m| m.health_checks[0].timeout = Some(Duration { seconds: 1, nanos: 1 }),
        r#"health_checks[0] "http": timeout: 1.000000001s is not within 1ms to the interval of 1s"#,
        "health_checks[0].timeout",
    ),
    (
        |m| m.health_checks[0].timeout = Some(Duration { seconds: 0, nanos: 0 }),
        r#"health_checks[0] "http": timeout: 0ns is not within 1ms to the interval of 1s"#,
        "health_checks[0].timeout",
    ),
    (
        |m| m.health_checks[0].rise = 101,
        r#"health_checks[0] "http": rise: 101 is not within 1 to 100"#,
        "health_checks[0].rise",
    ),
    (
        |m| m.health_checks[0].fall = 101,
        r#"health_checks[0] "http": fall: 101 is not within 1 to 100"#,
        "health_checks[0].fall",
    ),
    (
        |m| m.health_checks[0].jitter_percent = Some(51),
        r#"health_checks[0] "http": jitter_percent: 51 is not within 0 to 50"#,
        "health_checks[0].jitter_percent",
    ),
    (
        |m| m.health_checks[0].host_probe = 5,
        r#"health_checks[0] "http": host_probe: 5 is not a value that this version knows"#,
        "health_checks[0].host_probe",
    ),
    (
        |m| m.health_checks[0].host_probe_port = 65_536,
        r#"health_checks[0] "http": host_probe_port: 65536 is not within 1 to 65535"#,
        "health_checks[0].host_probe_port",
    ),
    (
        |m| m.health_checks[0].fast_interval = Some(Duration { seconds: 0, nanos: 9_999_999 }),
        r#"health_checks[0] "http": fast_interval: 9.999999ms is not within 10ms to the interval of 1s"#,
        "health_checks[0].fast_interval",
    ),
    (
        |m| m.health_checks[0].fast_interval = Some(Duration { seconds: 2, nanos: 0 }),
        r#"health_checks[0] "http": fast_interval: 2s is not within 10ms to the interval of 1s"#,
        "health_checks[0].fast_interval",
    ),
];
