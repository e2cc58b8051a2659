use super::right::Step;

/// What stands as it would be unset follows the field that it depends on.
pub(super) const FOLLOWING: &[Step] = &[
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" interval { nanos: 500000000 } } update_mask { paths: "interval" }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { nanos: 500000000 }
             timeout { nanos: 500000000 } fast_interval { nanos: 500000000 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 2
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "spare" } text: "health check spare"
             fields { field: "interval" old: "1s" new: "500ms" text: "interval: 1s -> 500ms" }
             fields { field: "fast_interval" old: "1s" new: "500ms" text: "fast_interval: 1s -> 500ms" }
             fields { field: "timeout" old: "1s" new: "500ms" text: "timeout: 1s -> 500ms" } } }"#,
    ),
    // The timeout has an end of its own.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" interval { seconds: 5 } }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { seconds: 5 }
             timeout { seconds: 1 } fast_interval { seconds: 5 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "spare" } text: "health check spare"
             fields { field: "interval" old: "500ms" new: "5s" text: "interval: 500ms -> 5s" }
             fields { field: "fast_interval" old: "500ms" new: "5s" text: "fast_interval: 500ms -> 5s" }
             fields { field: "timeout" old: "500ms" new: "1s" text: "timeout: 500ms -> 1s" } } }"#,
    ),
    // What was set to something else stays.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" fast_interval { seconds: 2 } timeout { nanos: 300000000 } }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { seconds: 5 }
             timeout { nanos: 300000000 } fast_interval { seconds: 2 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 4
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "spare" } text: "health check spare"
             fields { field: "fast_interval" old: "5s" new: "2s" text: "fast_interval: 5s -> 2s" }
             fields { field: "timeout" old: "1s" new: "300ms" text: "timeout: 1s -> 300ms" } } }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "spare" interval { seconds: 4 } }"#,
        r#"health_check { name: "spare" port: 81 tcp {} interval { seconds: 4 }
             timeout { nanos: 300000000 } fast_interval { seconds: 2 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 5
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "spare" } text: "health check spare"
             fields { field: "interval" old: "5s" new: "4s" text: "interval: 5s -> 4s" } } }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" http { status_min: 404 } } update_mask { paths: "http.status_min" }"#,
        r#"health_check { name: "http" port: 80
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 6
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "http.status_min" old: "200" new: "404" text: "http.status_min: 200 -> 404" }
             fields { field: "http.status_max" old: "299" new: "404" text: "http.status_max: 299 -> 404" } } }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" tls { server_name: "web.example" } } update_mask { paths: "tls" }"#,
        r#"health_check { name: "http" port: 80 tls { server_name: "web.example" verify: false }
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 7
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "tls" old: "off" new: "on" text: "tls: off -> on" } } }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" tls { ca_file: "/ca.pem" } } update_mask { paths: "tls.ca_file" }"#,
        r#"health_check { name: "http" port: 80 tls { server_name: "web.example" verify: true ca_file: "/ca.pem" }
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 8
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "tls.verify" old: "false" new: "true" text: "tls.verify: false -> true" }
             fields { field: "tls.ca_file" old: "unset" new: "/ca.pem" text: "tls.ca_file: unset -> /ca.pem" } } }"#,
    ),
    // Nobody stops verifying because the file goes.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" } update_mask { paths: "tls.ca_file" }"#,
        r#"health_check { name: "http" port: 80 tls { server_name: "web.example" verify: true }
             http { path: "/alive" host: "web.example" status_min: 404 status_max: 404 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 9
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "tls.ca_file" old: "/ca.pem" new: "unset" text: "tls.ca_file: /ca.pem -> unset" } } }"#,
    ),
    (
        "CreateService",
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_UDP pool: "spare" udp: UDP_MODE_TRACKED }"#,
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_UDP pool: "spare"
             udp: UDP_MODE_TRACKED idle_timeout { seconds: 60 } affinity: AFFINITY_CONNECTION
             when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED }
           result { generation: 10
           changes { kind: KIND_ADDED object { kind: KIND_SERVICE name: "dns" } text: "service dns" }
           warnings { reason: WARNING_REASON_POOL_EMPTY object { kind: KIND_POOL name: "spare" } text: "pool spare has no backends, so all packets of service dns are dropped" } }"#,
    ),
    (
        "UpdateService",
        r#"service { name: "dns" udp: UDP_MODE_STATELESS }"#,
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_UDP pool: "spare"
             udp: UDP_MODE_STATELESS affinity: AFFINITY_CONNECTION when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED }
           result { generation: 11
           changes { kind: KIND_CHANGED object { kind: KIND_SERVICE name: "dns" } text: "service dns"
             fields { field: "udp" old: "tracked" new: "stateless" text: "udp: tracked -> stateless" }
             fields { field: "idle_timeout" old: "60s" new: "unset" text: "idle_timeout: 60s -> unset" } }
           warnings { reason: WARNING_REASON_POOL_EMPTY object { kind: KIND_POOL name: "spare" } text: "pool spare has no backends, so all packets of service dns are dropped" } }"#,
    ),
    (
        "UpdateService",
        r#"service { name: "dns" protocol: PROTOCOL_TCP }"#,
        r#"service { name: "dns" address: "192.0.2.53" port: 53 protocol: PROTOCOL_TCP pool: "spare"
             affinity: AFFINITY_CONNECTION when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED }
           result { generation: 12
           changes { kind: KIND_CHANGED object { kind: KIND_SERVICE name: "dns" } text: "service dns"
             fields { field: "protocol" old: "udp" new: "tcp" text: "protocol: udp -> tcp" } }
           movements { object { kind: KIND_SERVICE name: "dns" } text: "service dns" effect: EFFECT_END share: 1 }
           warnings { reason: WARNING_REASON_POOL_EMPTY object { kind: KIND_POOL name: "spare" } text: "pool spare has no backends, so all packets of service dns are dropped" } }"#,
    ),
];
