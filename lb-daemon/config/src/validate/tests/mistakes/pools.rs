//! Pools, but for what stands in them.

use prost_types::Duration;
use spillway_proto::v1;

use super::Row;

pub(super) const POOLS: &[Row] = &[
    (
        |m| m.pools[0].health_checks = vec!["grpc".into()],
        r#"pools[0] "web": health_checks: "grpc" is not among the health checks"#,
        "pools[0].health_checks",
    ),
    (
        |m| m.pools[0].health_checks.push("http".into()),
        r#"pools[0] "web": health_checks: "http" is named twice"#,
        "pools[0].health_checks",
    ),
    (
        |m| m.pools[0].slots = Some(5),
        r#"pools[0] "web": slots: 5 is not within 7 to 419423"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = Some(419_424),
        r#"pools[0] "web": slots: 419424 is not within 7 to 419423"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = Some(65_536),
        r#"pools[0] "web": slots: 65536 is not a prime: 2 divides it"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = Some(251 * 257),
        r#"pools[0] "web": slots: 64507 is not a prime: 251 divides it"#,
        "pools[0].slots",
    ),
    (
        |m| {
            m.pools[0].slots = Some(7);
            for n in 0..6 {
                let (address, region) = (format!("10.0.1.{n}"), "eu".into());
                m.pools[0].backends.push(v1::Backend { address, region, ..Default::default() });
            }
        },
        r#"pools[0] "web": slots: 7 must be more than the 7 backends in region "eu""#,
        "pools[0].slots",
    ),
    (
        |m| {
            for n in 0..7 {
                let (address, region) = (format!("10.0.1.{n}"), format!("r{n}"));
                m.regions.push(v1::Region { name: region.clone(), ..Default::default() });
                m.pools[0].backends.push(v1::Backend { address, region, ..Default::default() });
            }
        },
        r#"pools[0] "web": backends: are in 9 regions; at most 8 are allowed"#,
        "pools[0].backends",
    ),
    (
        |m| m.pools[0].etag = "0".into(),
        r#"pools[0] "web": etag: is only for calls about this object alone"#,
        "pools[0].etag",
    ),
    (
        |m| m.pools[0].backends[1].etag = "0".into(),
        r#"pools[0] "web": backends[1] "10.0.0.2": etag: is only for calls about this object alone"#,
        "pools[0].backends[1].etag",
    ),
    (
        |m| m.pools[0].backends[0].pool = "api".into(),
        r#"pools[0] "web": backends[0] "10.0.0.1": pool: is "api", but the backend is in "web""#,
        "pools[0].backends[0].pool",
    ),
    (
        |m| m.pools[0].backends.iter_mut().for_each(|backend| backend.weight = Some(0)),
        r#"pools[0] "web": backends: all weights are 0, so no backend would take connections; give at least one a weight"#,
        "pools[0].backends",
    ),
    (
        |m| m.pools[0].isolation = 4,
        r#"pools[0] "web": isolation: 4 is not a value that this version knows"#,
        "pools[0].isolation",
    ),
    (
        |m| m.pools[0].encapsulation = 9,
        r#"pools[0] "web": encapsulation: 9 is not a value that this version knows"#,
        "pools[0].encapsulation",
    ),
    (
        |m| (m.pools[0].encapsulation, m.pools[0].gue_port) = (2, 65_536),
        r#"pools[0] "web": gue_port: 65536 is not within 1 to 65535"#,
        "pools[0].gue_port",
    ),
    (
        |m| {
            let mut other = m.pools[0].clone();
            (other.name, other.encapsulation) = ("other".into(), 3);
            m.pools.push(other);
        },
        r#"pools[2] "other": encapsulation: is direct here, but pool "web" has 10.0.0.1 too, with ip_in_ip; if one pool uses direct, all pools with that backend must"#,
        "pools[2].encapsulation",
    ),
    (
        |m| m.pools[0].gue_port = 6_080,
        r#"pools[0] "web": gue_port: 6080 is set, but the encapsulation is not gue; leave it out"#,
        "pools[0].gue_port",
    ),
    (
        |m| m.pools[0].preferred_regions = vec!["asia".into()],
        r#"pools[0] "web": preferred_regions: "asia" is not among the regions"#,
        "pools[0].preferred_regions",
    ),
    (
        |m| m.pools[0].preferred_regions = vec!["us".into(), "us".into()],
        r#"pools[0] "web": preferred_regions: "us" is named twice"#,
        "pools[0].preferred_regions",
    ),
    (
        |m| m.pools[0].panic_threshold_percent = 101,
        r#"pools[0] "web": panic_threshold_percent: 101 is not within 1 to 100"#,
        "pools[0].panic_threshold_percent",
    ),
    (
        |m| m.pools[0].settle_time = Some(Duration { seconds: 0, nanos: 999_999_999 }),
        r#"pools[0] "web": settle_time: 999.999999ms is not within 1s to 24h"#,
        "pools[0].settle_time",
    ),
    (
        |m| m.pools[0].settle_time = Some(Duration { seconds: 86_401, nanos: 0 }),
        r#"pools[0] "web": settle_time: 86401s is not within 1s to 24h"#,
        "pools[0].settle_time",
    ),
    (
        |m| m.pools[0].slow_start = Some(Duration { seconds: 0, nanos: 1 }),
        r#"pools[0] "web": slow_start: 1ns is not within 1s to 1h"#,
        "pools[0].slow_start",
    ),
    (
        |m| m.pools[0].slow_start = Some(Duration { seconds: 3600, nanos: 1 }),
        r#"pools[0] "web": slow_start: 3600.000000001s is not within 1s to 1h"#,
        "pools[0].slow_start",
    ),
    (
        |m| m.pools[0].hold_down = Some(Duration { seconds: 0, nanos: 1 }),
        r#"pools[0] "web": hold_down: 1ns is not within 1s to 24h"#,
        "pools[0].hold_down",
    ),
    (
        |m| m.pools[0].max_hold_down = Some(Duration { seconds: 0, nanos: 0 }),
        r#"pools[0] "web": max_hold_down: 0ns is not within 1s to 24h"#,
        "pools[0].max_hold_down",
    ),
    (
        |m| m.pools[0].max_hold_down = Some(Duration { seconds: 9, nanos: 0 }),
        r#"pools[0] "web": max_hold_down: 9s is less than hold_down, 10s"#,
        "pools[0].max_hold_down",
    ),
];

pub(super) const BACKENDS: &[Row] = &[
    (
        |m| m.pools[0].backends[1].address = "10.0.0.1".into(),
        r#"pools[0] "web": backends[1] "10.0.0.1": address: 10.0.0.1 is already the address of backends[0]"#,
        "pools[0].backends[1].address",
    ),
    (
        |m| m.pools[0].backends[1].region.clear(),
        r#"pools[0] "web": backends[1] "10.0.0.2": region: must be set"#,
        "pools[0].backends[1].region",
    ),
    (
        |m| m.pools[0].backends[1].region = "asia".into(),
        r#"pools[0] "web": backends[1] "10.0.0.2": region: "asia" is not among the regions"#,
        "pools[0].backends[1].region",
    ),
    (
        |m| m.pools[0].backends[1].weight = Some(1_000_001),
        r#"pools[0] "web": backends[1] "10.0.0.2": weight: 1000001 is not within 0 to 1000000"#,
        "pools[0].backends[1].weight",
    ),
    (
        |m| m.pools[0].backends[1].admin_state = 4,
        r#"pools[0] "web": backends[1] "10.0.0.2": admin_state: 4 is not a value that this version knows"#,
        "pools[0].backends[1].admin_state",
    ),
    (
        |m| m.pools[0].backends[1].mtu = 1279,
        r#"pools[0] "web": backends[1] "10.0.0.2": mtu: 1279 is not within 1280 to 65535"#,
        "pools[0].backends[1].mtu",
    ),
    (
        |m| {
            m.pools[0].backends[1].mtu = 1299;
            m.services[0].pool = "web".into();
            m.services[0].address = "2001:db8::1".into();
        },
        r#"pools[0] "web": backends[1] "10.0.0.2": mtu: 1299 leaves less than 1280 bytes in the tunnel, which IPv6 service "web" needs; give at least 1300"#,
        "pools[0].backends[1].mtu",
    ),
    (
        |m| m.pools[0].backends[1].max_connection_rate_per_second = Some(-0.5),
        r#"pools[0] "web": backends[1] "10.0.0.2": max_connection_rate_per_second: -0.5 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].backends[1].max_connection_rate_per_second",
    ),
    (
        |m| m.pools[1].backends[0].region = "us".into(),
        r#"pools[1] "dns": backends[0] "10.0.0.1": region: is "us" here but "eu" in pool "web""#,
        "pools[1].backends[0].region",
    ),
    (
        |m| m.pools[1].backends[0].mtu = 1400,
        r#"pools[1] "dns": backends[0] "10.0.0.1": mtu: is 1400 here but unset in pool "web""#,
        "pools[1].backends[0].mtu",
    ),
    (
        |m| m.pools[1].backends[0].address = "192.0.2.1".into(),
        r#"pools[1] "dns": backends[0] "192.0.2.1": address: 192.0.2.1 is the address of service "dns""#,
        "pools[1].backends[0].address",
    ),
    (
        |m| {
            m.balancers = 10;
            m.pools[0].backends[1].max_connection_rate_per_second = Some(0.1);
        },
        r#"pools[0] "web": backends[1] "10.0.0.2": max_connection_rate_per_second: 0.1/s times a scaler of 1 among 10 balancers is less than one connection a minute for each"#,
        "pools[0].backends[1].max_connection_rate_per_second",
    ),
    (
        |m| {
            m.balancers = 2;
            m.pools[0].groups[0].capacity_per_second = None;
            m.pools[0].groups[0].scaler = Some(0.1);
            m.pools[0].backends[0].max_connection_rate_per_second = Some(0.3);
        },
        r#"pools[0] "web": backends[0] "10.0.0.1": max_connection_rate_per_second: 0.3/s times a scaler of 0.1 among 2 balancers is less than one connection a minute for each"#,
        "pools[0].backends[0].max_connection_rate_per_second",
    ),
];

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
        r#"pools[0] "web": groups[0] "eu": scaler: 0.5 has no effect without a limit; set capacity_per_second, or the max_connection_rate_per_second of every backend there"#,
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
