//! Mistakes, one at a time.

mod health_checks;
mod pools;
mod services;

use spillway_proto::v1;

pub(super) fn http(message: &mut v1::Configuration) -> &mut v1::HttpCheck {
    match message.health_checks[0].kind.as_mut() {
        Some(v1::health_check::Kind::Http(http)) => http,
        _ => panic!("the first check is http"),
    }
}

/// Makes the first check one of gRPC.
fn grpc(message: &mut v1::Configuration) -> &mut v1::GrpcCheck {
    let probe = &mut message.health_checks[0].kind;
    match probe.insert(v1::health_check::Kind::Grpc(v1::GrpcCheck::default())) {
        v1::health_check::Kind::Grpc(grpc) => grpc,
        _ => unreachable!("it was just made one"),
    }
}

/// Makes the first check one of UDP.
fn udp(message: &mut v1::Configuration) -> &mut v1::UdpCheck {
    let probe = &mut message.health_checks[0].kind;
    match probe.insert(v1::health_check::Kind::Udp(v1::UdpCheck::default())) {
        v1::health_check::Kind::Udp(udp) => udp,
        _ => unreachable!("it was just made one"),
    }
}

/// Makes the first check one that asks an agent.
fn agent(message: &mut v1::Configuration) -> &mut v1::AgentCheck {
    let probe = &mut message.health_checks[0].kind;
    match probe.insert(v1::health_check::Kind::Agent(v1::AgentCheck::default())) {
        v1::health_check::Kind::Agent(agent) => agent,
        _ => unreachable!("it was just made one"),
    }
}

/// Gives the first check TLS.
fn tls(message: &mut v1::Configuration) -> &mut v1::CheckTls {
    message.health_checks[0].tls.get_or_insert_default()
}

/// What is done wrong.
pub(super) type Mistake = fn(&mut v1::Configuration);

/// What is done to the correct message, the answer, and the field it names.
pub(super) type Row = (Mistake, &'static str, &'static str);

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    let kinds = [
        NAMES,
        REGIONS,
        health_checks::CHECKS,
        health_checks::PROBES,
        pools::POOLS,
        pools::GROUPS,
        pools::BACKENDS,
        services::SERVICES,
        WHOLE,
        VIPS,
    ];
    kinds.into_iter().flatten()
}

const NAMES: &[Row] = &[
    (|m| m.regions[1].name.clear(), r#"regions[1] "": name: must be set"#, "regions[1].name"),
    (
        |m| m.regions[1].name = "US".into(),
        r#"regions[1] "US": name: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit"#,
        "regions[1].name",
    ),
    (
        |m| m.regions[1].name = "x".repeat(1000),
        r#"regions[1] "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…: name: has 1000 bytes; at most 63 are allowed"#,
        "regions[1].name",
    ),
    (
        |m| m.regions[1].name = "eu".into(),
        r#"regions[1] "eu": name: is already the name of regions[0]"#,
        "regions[1].name",
    ),
    (
        |m| m.health_checks[1].name = "http".into(),
        r#"health_checks[1] "http": name: is already the name of health_checks[0]"#,
        "health_checks[1].name",
    ),
    (
        |m| m.pools[1].name = "web".into(),
        r#"pools[1] "web": name: is already the name of pools[0]"#,
        "pools[1].name",
    ),
    (
        |m| m.services[1].name = "web".into(),
        r#"services[1] "web": name: is already the name of services[0]"#,
        "services[1].name",
    ),
];

const REGIONS: &[Row] = &[
    (
        |m| m.regions[0].overflow_to = vec!["asia".into()],
        r#"regions[0] "eu": overflow_to: "asia" is not among the regions"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["eu".into()],
        r#"regions[0] "eu": overflow_to: names the region itself"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["us".into(), "us".into()],
        r#"regions[0] "eu": overflow_to: "us" is named twice"#,
        "regions[0].overflow_to",
    ),
    (
        |m| {
            for n in 0..8 {
                let name = format!("r{n}");
                m.regions[0].overflow_to.push(name.clone());
                m.regions.push(v1::Region { name, ..Default::default() });
            }
        },
        r#"regions[0] "eu": overflow_to: names 9 regions; at most 7 are allowed"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[1].etag = "0123456789abcdef".into(),
        r#"regions[1] "us": etag: is only for calls about this object alone"#,
        "regions[1].etag",
    ),
    (
        |m| m.regions[1].overflow_to = vec!["eu".into()],
        r#"regions[0] "eu": overflow_to: forms a loop: eu -> us -> eu"#,
        "regions[0].overflow_to",
    ),
];

const WHOLE: &[Row] = &[
    (|m| m.balancers = 1001, "balancers: 1001 is not within 1 to 1000", "balancers"),
    (
        |m| m.hash_key = "0123".into(),
        "hash_key: give 32 hexadecimal digits; these are 4 bytes",
        "hash_key",
    ),
    (
        |m| m.hash_key = "+123456789abcdef+123456789abcdef".into(),
        "hash_key: give 32 hexadecimal digits; these are 32 bytes",
        "hash_key",
    ),
];

/// Makes the only range of VIPs one of this prefix.
fn vip(message: &mut v1::Configuration, prefix: &str) {
    message.vips = vec![v1::VipRange { prefix: prefix.into(), unserved: 0 }];
}

const VIPS: &[Row] = &[
    (|m| vip(m, ""), r#"vips[0] "": prefix: must be set"#, "vips[0].prefix"),
    (
        |m| vip(m, "shop.example"),
        r#"vips[0] "shop.example": prefix: "shop.example" is not an IPv4 or IPv6 address or prefix; write 203.0.113.0/24"#,
        "vips[0].prefix",
    ),
    (
        |m| vip(m, "203.0.113.0/"),
        r#"vips[0] "203.0.113.0/": prefix: "203.0.113.0/" is not an IPv4 or IPv6 address or prefix; write 203.0.113.0/24"#,
        "vips[0].prefix",
    ),
    (
        |m| vip(m, "203.0.113.0/33"),
        r#"vips[0] "203.0.113.0/33": prefix: "203.0.113.0/33" has more bits than the 32 of an address"#,
        "vips[0].prefix",
    ),
    (
        |m| vip(m, "2001:db8::/129"),
        r#"vips[0] "2001:db8::/129": prefix: "2001:db8::/129" has more bits than the 128 of an address"#,
        "vips[0].prefix",
    ),
    (
        |m| vip(m, "203.0.113.1/24"),
        r#"vips[0] "203.0.113.1/24": prefix: "203.0.113.1/24" has bits set behind the prefix; give 203.0.113.0/24"#,
        "vips[0].prefix",
    ),
    (
        |m| vip(m, "2001:db8::1/64"),
        r#"vips[0] "2001:db8::1/64": prefix: "2001:db8::1/64" has bits set behind the prefix; give 2001:db8::/64"#,
        "vips[0].prefix",
    ),
    (
        |m| vip(m, "::ffff:203.0.113.0/120"),
        r#"vips[0] "::ffff:203.0.113.0/120": prefix: "::ffff:203.0.113.0/120" is IPv4 written as IPv6; give 203.0.113.0/24"#,
        "vips[0].prefix",
    ),
    (
        |m| {
            vip(m, "203.0.113.7");
            m.vips.push(v1::VipRange { prefix: "203.0.113.0/24".into(), unserved: 0 });
            m.vips.push(v1::VipRange { prefix: "203.0.113.7/32".into(), unserved: 0 });
        },
        r#"vips[2] "203.0.113.7/32": prefix: 203.0.113.7/32 is already the prefix of vips[0]"#,
        "vips[2].prefix",
    ),
    (
        |m| {
            vip(m, "203.0.113.0/24");
            m.vips[0].unserved = 4;
        },
        r#"vips[0] "203.0.113.0/24": unserved: 4 is not a value that this version knows"#,
        "vips[0].unserved",
    ),
    (
        |m| m.vips = vec![v1::VipRange::default(); 10_001],
        "vips: 10001 ranges; at most 10000 are allowed",
        "vips",
    ),
];
