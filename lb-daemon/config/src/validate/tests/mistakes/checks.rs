//! Health checks, whatever they ask.

use prost_types::Duration;

use super::Row;

pub(super) const CHECKS: &[Row] = &[
    (
        |m| m.health_checks[0].probe = None,
        r#"health_checks[0] "http": probe: must be set; give tcp, http, grpc, udp or agent"#,
        "health_checks[0].probe",
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
        r#"health_checks[0] "http": interval: is negative or no duration at all"#,
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
