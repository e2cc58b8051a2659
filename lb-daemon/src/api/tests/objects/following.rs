use super::right::Step;

/// What stands as it would be unset follows the field that it depends on.
pub(super) const FOLLOWING: &[Step] = &[
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" interval { nanos: 500000000 } } update_mask { paths: "interval" }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { nanos: 500000000 }
             timeout { nanos: 500000000 } fast_interval { nanos: 500000000 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 2
           changes { kind: KIND_CHANGED object: "health check spare" details: "interval: 1s -> 500ms"
             details: "fast_interval: 1s -> 500ms" details: "timeout: 1s -> 500ms" }"#,
    ),
    // The timeout has an end of its own.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" interval { seconds: 5 } }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { seconds: 5 }
             timeout { seconds: 1 } fast_interval { seconds: 5 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 3
           changes { kind: KIND_CHANGED object: "health check spare" details: "interval: 500ms -> 5s"
             details: "fast_interval: 500ms -> 5s" details: "timeout: 500ms -> 1s" }"#,
    ),
    // What was set to something else stays.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" fast_interval { seconds: 2 } timeout { nanos: 300000000 } }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { seconds: 5 }
             timeout { nanos: 300000000 } fast_interval { seconds: 2 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 4
           changes { kind: KIND_CHANGED object: "health check spare"
             details: "fast_interval: 5s -> 2s" details: "timeout: 1s -> 300ms" }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" interval { seconds: 4 } }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { seconds: 4 }
             timeout { nanos: 300000000 } fast_interval { seconds: 2 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 5
           changes { kind: KIND_CHANGED object: "health check spare" details: "interval: 5s -> 4s" }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" http { status_min: 404 } } update_mask { paths: "http.status_min" }"#,
        r#"health_check { name: "http" port: 80
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 6
           changes { kind: KIND_CHANGED object: "health check http"
             details: "http.status_min: 200 -> 404" details: "http.status_max: 299 -> 404" }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" tls { server_name: "web.example" } } update_mask { paths: "tls" }"#,
        r#"health_check { name: "http" port: 80 tls { server_name: "web.example" verify: false }
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 7
           changes { kind: KIND_CHANGED object: "health check http" details: "tls: off -> on" }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" tls { ca_file: "/ca.pem" } } update_mask { paths: "tls.ca_file" }"#,
        r#"health_check { name: "http" port: 80 tls { server_name: "web.example" verify: true ca_file: "/ca.pem" }
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 8
           changes { kind: KIND_CHANGED object: "health check http"
             details: "tls.verify: false -> true" details: "tls.ca_file: unset -> /ca.pem" }"#,
    ),
    // Nobody stops verifying because the file goes.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" } update_mask { paths: "tls.ca_file" }"#,
        r#"health_check { name: "http" port: 80 tls { server_name: "web.example" verify: true }
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 9
           changes { kind: KIND_CHANGED object: "health check http" details: "tls.ca_file: /ca.pem -> unset" }"#,
    ),
    (
        "CreateService",
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_UDP pool: "spare" udp: UDP_MODE_TRACKED }"#,
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_UDP pool: "spare"
             udp: UDP_MODE_TRACKED idle_timeout { seconds: 60 } affinity: AFFINITY_CONNECTION
             when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED } generation: 10
           changes { kind: KIND_ADDED object: "service dns" }
           warnings: "pool spare has no backends, so all packets of service dns are dropped""#,
    ),
    (
        "UpdateService",
        r#"service { name: "dns" udp: UDP_MODE_STATELESS }"#,
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_UDP pool: "spare"
             udp: UDP_MODE_STATELESS affinity: AFFINITY_CONNECTION when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED } generation: 11
           changes { kind: KIND_CHANGED object: "service dns" details: "udp: tracked -> stateless" details: "idle_timeout: 60s -> unset" }
           warnings: "pool spare has no backends, so all packets of service dns are dropped""#,
    ),
    (
        "UpdateService",
        r#"service { name: "dns" protocol: PROTOCOL_TCP }"#,
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_TCP pool: "spare"
             affinity: AFFINITY_CONNECTION when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED } generation: 12
           changes { kind: KIND_CHANGED object: "service dns" details: "protocol: udp -> tcp" }
           movements { object: "service dns" effect: EFFECT_END share: 1 }
           warnings: "pool spare has no backends, so all packets of service dns are dropped""#,
    ),
];
