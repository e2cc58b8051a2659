//! Groups of pools.

use super::Row;

pub(super) const GROUPS: &[Row] = &[
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(-5.0),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: -5 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(0.0),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 0 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(0.05),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 0.05 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(10_000_001.0),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 10000001 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(f64::NAN),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: NaN is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(f64::INFINITY),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: inf is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(0.05),
        r#"pools[0] "web": groups[0] "eu": scaler: 0.05 is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(1.5),
        r#"pools[0] "web": groups[0] "eu": scaler: 1.5 is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(-1.0),
        r#"pools[0] "web": groups[0] "eu": scaler: -1 is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(f64::NAN),
        r#"pools[0] "web": groups[0] "eu": scaler: NaN is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| {
            m.pools[0].groups[0].capacity_per_second = None;
        },
        r#"pools[0] "web": groups[0] "eu": scaler: 0.5 of no limit is no limit; set capacity_per_second, or the max_connection_rate_per_second of every backend there"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[1].region = "asia".into(),
        r#"pools[0] "web": groups[1] "asia": region: "asia" is not among the regions"#,
        "pools[0].groups[1].region",
    ),
    (
        |m| m.pools[0].groups[1].region.clear(),
        r#"pools[0] "web": groups[1] "": region: must be set"#,
        "pools[0].groups[1].region",
    ),
    (
        |m| m.pools[0].groups[1].region = "eu".into(),
        r#"pools[0] "web": groups[1] "eu": region: "eu" is already the region of groups[0]"#,
        "pools[0].groups[1].region",
    ),
    (
        |m| drop(m.pools[0].backends.pop()),
        r#"pools[0] "web": groups[1] "us": region: the pool has no backend in "us""#,
        "pools[0].groups[1].region",
    ),
    (
        |m| {
            m.balancers = 2;
            m.pools[0].groups[0].capacity_per_second = Some(0.3);
            m.pools[0].groups[0].scaler = Some(0.1);
        },
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 0.3/s times a scaler of 0.1 among 2 balancers is less than one connection a minute for each"#,
        "pools[0].groups[0].capacity_per_second",
    ),
];
