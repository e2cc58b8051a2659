//! Services.

use prost_types::Duration;

use super::Row;

pub(super) const SERVICES: &[Row] = &[
    (
        |m| m.services[1].address.clear(),
        r#"services[1] "dns": address: must be set"#,
        "services[1].address",
    ),
    (
        |m| m.services[1].address = "192.0.2.1:53".into(),
        r#"services[1] "dns": address: "192.0.2.1:53" is not an IPv4 or IPv6 address"#,
        "services[1].address",
    ),
    (
        |m| m.services[1].port = 70_000,
        r#"services[1] "dns": port: 70000 is not a port; give 1 to 65535"#,
        "services[1].port",
    ),
    (
        |m| m.services[1].protocol = 0,
        r#"services[1] "dns": protocol: must be set; give tcp or udp"#,
        "services[1].protocol",
    ),
    (
        |m| m.services[1].protocol = -1,
        r#"services[1] "dns": protocol: -1 is no protocol that this version knows"#,
        "services[1].protocol",
    ),
    (|m| m.services[1].pool.clear(), r#"services[1] "dns": pool: must be set"#, "services[1].pool"),
    (
        |m| m.services[1].pool = "mail".into(),
        r#"services[1] "dns": pool: "mail" is not among the pools"#,
        "services[1].pool",
    ),
    (
        |m| m.services[1].affinity = 3,
        r#"services[1] "dns": affinity: 3 is no affinity that this version knows"#,
        "services[1].affinity",
    ),
    (
        |m| {
            m.services[1].protocol = 1;
            m.services[1].udp = 0;
            m.services[1].port = 80;
        },
        r#"services[1] "dns": address: 192.0.2.1, port 80, tcp is already service "web""#,
        "services[1].address",
    ),
    (
        |m| m.services[1].when_full = 3,
        r#"services[1] "dns": when_full: 3 is no answer that this version knows"#,
        "services[1].when_full",
    ),
    (
        |m| {
            m.services[1].when_full = 2;
            m.services[1].udp = 1;
        },
        r#"services[1] "dns": when_full: reject is not for stateless UDP, which knows no new connections"#,
        "services[1].when_full",
    ),
    (
        |m| m.services[1].udp = 3,
        r#"services[1] "dns": udp: 3 is no mode that this version knows"#,
        "services[1].udp",
    ),
    (
        |m| m.services[0].udp = 1,
        r#"services[0] "web": udp: is for UDP; this service is TCP"#,
        "services[0].udp",
    ),
    (
        |m| m.services[0].idle_timeout = Some(Duration { seconds: 60, nanos: 0 }),
        r#"services[0] "web": idle_timeout: is for tracked UDP; this service is not"#,
        "services[0].idle_timeout",
    ),
    (
        |m| {
            m.services[1].udp = 0;
            m.services[1].idle_timeout = Some(Duration { seconds: 60, nanos: 0 });
        },
        r#"services[1] "dns": idle_timeout: is for tracked UDP; this service is not"#,
        "services[1].idle_timeout",
    ),
    (
        |m| m.services[1].idle_timeout = Some(Duration { seconds: 0, nanos: 999_999_999 }),
        r#"services[1] "dns": idle_timeout: 999.999999ms is not within 1s to 18h"#,
        "services[1].idle_timeout",
    ),
    (
        |m| m.services[1].idle_timeout = Some(Duration { seconds: 64_801, nanos: 0 }),
        r#"services[1] "dns": idle_timeout: 64801s is not within 1s to 18h"#,
        "services[1].idle_timeout",
    ),
];
