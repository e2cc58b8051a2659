//! Backends.

use super::Row;

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
