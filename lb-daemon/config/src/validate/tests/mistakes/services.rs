//! Services.

use prost_types::Duration;

use spillway_proto::v1;

use super::Row;

fn range(first: u32, last: u32) -> v1::PortRange {
    v1::PortRange { first, last }
}

/// Gives the second service ports.
fn ports(message: &mut v1::Configuration, ports: &[(u32, u32)]) {
    message.services[1].port = 0;
    message.services[1].ports = ports.iter().map(|(first, last)| range(*first, *last)).collect();
}

/// Adds a service of the second one's address and protocol.
fn overlapping(message: &mut v1::Configuration, ports: impl FnOnce(&mut v1::Service)) {
    let mut more = v1::Service {
        name: "more".into(),
        address: "192.0.2.1".into(),
        protocol: v1::Protocol::Udp.into(),
        pool: "dns".into(),
        ..v1::Service::default()
    };
    ports(&mut more);
    message.services.push(more);
}

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
        r#"services[1] "dns": protocol: -1 is not a value that this version knows"#,
        "services[1].protocol",
    ),
    (|m| m.services[1].pool.clear(), r#"services[1] "dns": pool: must be set"#, "services[1].pool"),
    (
        |m| m.services[1].pool = "mail".into(),
        r#"services[1] "dns": pool: "mail" is not among the pools"#,
        "services[1].pool",
    ),
    (
        |m| m.services[1].affinity = 4,
        r#"services[1] "dns": affinity: 4 is not a value that this version knows"#,
        "services[1].affinity",
    ),
    (
        |m| m.services[1].affinity = 3,
        r#"services[1] "dns": affinity: port would give all connections of one port to one backend; give ports or any_port, or another affinity"#,
        "services[1].affinity",
    ),
    (
        |m| m.services[1].port = 0,
        r#"services[1] "dns": port: must be set; give port, ports or any_port"#,
        "services[1].port",
    ),
    (
        |m| m.services[1].any_port = true,
        r#"services[1] "dns": any_port: has all ports already; leave port out"#,
        "services[1].any_port",
    ),
    (
        |m| m.services[1].ports = vec![range(54, 0)],
        r#"services[1] "dns": ports: leave port out, and put 53 among them"#,
        "services[1].ports",
    ),
    (
        |m| {
            m.services[1].port = 0;
            m.services[1].any_port = true;
            m.services[1].ports = vec![range(54, 0)];
        },
        r#"services[1] "dns": any_port: has all ports already; leave ports out"#,
        "services[1].any_port",
    ),
    (
        |m| ports(m, &[(53, 0), (0, 0)]),
        r#"services[1] "dns": ports[1] "0": first: must be set; give 1 to 65535"#,
        "services[1].ports[1].first",
    ),
    (
        |m| ports(m, &[(53, 0), (0, 99)]),
        r#"services[1] "dns": ports[1] "0-99": first: must be set; give 1 to 65535"#,
        "services[1].ports[1].first",
    ),
    (
        |m| ports(m, &[(70_000, 0)]),
        r#"services[1] "dns": ports[0] "70000": first: 70000 is not a port; give 1 to 65535"#,
        "services[1].ports[0].first",
    ),
    (
        |m| ports(m, &[(53, 65_536)]),
        r#"services[1] "dns": ports[0] "53-65536": last: 65536 is not a port; give 1 to 65535"#,
        "services[1].ports[0].last",
    ),
    (
        |m| ports(m, &[(54, 53)]),
        r#"services[1] "dns": ports[0] "54-53": last: 53 is below the first, 54"#,
        "services[1].ports[0].last",
    ),
    (
        |m| overlapping(m, |s| s.ports = vec![range(40, 53)]),
        r#"services[2] "more": address: 192.0.2.1, port 53, udp is already used by service "dns""#,
        "services[2].address",
    ),
    (
        |m| {
            ports(m, &[(1000, 2000), (50, 60)]);
            overlapping(m, |s| s.ports = vec![range(61, 999), range(55, 0)]);
        },
        r#"services[2] "more": address: 192.0.2.1, port 55, udp is already used by service "dns""#,
        "services[2].address",
    ),
    (
        |m| {
            m.services[1].port = 0;
            m.services[1].any_port = true;
            overlapping(m, |s| s.any_port = true);
        },
        r#"services[2] "more": any_port: 192.0.2.1, any port, udp is already used by service "dns""#,
        "services[2].any_port",
    ),
    (
        |m| {
            m.services[1].affinity = 2;
            m.services[1].fragments = 2;
            overlapping(m, |s| {
                s.port = 54;
                s.affinity = 2;
                s.fragments = 2;
            });
        },
        r#"services[2] "more": fragments: 192.0.2.1, fragments, udp is already used by service "dns""#,
        "services[2].fragments",
    ),
    (
        |m| m.services[1].fragments = 2,
        r#"services[1] "dns": fragments: served needs affinity client, because only the first fragment has ports"#,
        "services[1].fragments",
    ),
    (
        |m| m.services[1].fragments = 3,
        r#"services[1] "dns": fragments: 3 is not a value that this version knows"#,
        "services[1].fragments",
    ),
    (
        |m| {
            m.services[1].protocol = 1;
            m.services[1].udp = 0;
            m.services[1].port = 80;
        },
        r#"services[1] "dns": address: 192.0.2.1, port 80, tcp is already used by service "web""#,
        "services[1].address",
    ),
    (
        |m| m.services[1].when_full = 3,
        r#"services[1] "dns": when_full: 3 is not a value that this version knows"#,
        "services[1].when_full",
    ),
    (
        |m| {
            m.services[1].when_full = 2;
            m.services[1].udp = 1;
        },
        r#"services[1] "dns": when_full: reject cannot be used with stateless UDP, which has no new connections"#,
        "services[1].when_full",
    ),
    (
        |m| m.services[1].udp = 3,
        r#"services[1] "dns": udp: 3 is not a value that this version knows"#,
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
