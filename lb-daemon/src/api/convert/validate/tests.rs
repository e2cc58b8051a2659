use proptest::prelude::*;
use prost_types::Duration;
use spillway_proto::v1;

use super::*;
use crate::{
    document::Document,
    model::{Affinity, Backend, HealthCheck, HttpProbe, Name, Probe, WantedState, arbitrary},
};

/// A correct message with one of everything twice; the mistakes below are made in it.
fn correct() -> v1::Configuration {
    let text = r#"
        [[region]]
        name = "eu"
        overflow_to = ["us"]
        [[region]]
        name = "us"
        overflow_to = ["eu"]
        [[health_check]]
        name = "http"
        port = 8080
        http = { path = "/healthz" }
        [[health_check]]
        name = "tcp"
        port = 80
        tcp = {}
        [[pool]]
        name = "web"
        health_checks = ["http"]
        [[pool.backend]]
        address = "10.0.0.1"
        region = "eu"
        [[pool.backend]]
        address = "10.0.0.2"
        region = "us"
        [[pool]]
        name = "dns"
        [[pool.backend]]
        address = "10.0.0.1"
        region = "eu"
        [[service]]
        name = "web"
        address = "192.0.2.1"
        port = 80
        protocol = "tcp"
        pool = "web"
        [[service]]
        name = "dns"
        address = "192.0.2.1"
        port = 53
        protocol = "udp"
        pool = "dns"
    "#;
    Document::parse(text).unwrap().into()
}

fn http(message: &mut v1::Configuration) -> &mut v1::HttpProbe {
    match message.health_checks[0].probe.as_mut() {
        Some(v1::health_check::Probe::Http(http)) => http,
        _ => panic!("the first check is http"),
    }
}

type Mistake = fn(&mut v1::Configuration);

/// What is done to the correct message, the answer, and the field it names.
const MISTAKES: &[(Mistake, &str, &str)] = &[
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
                m.regions.push(v1::Region { name, overflow_to: vec![] });
            }
        },
        r#"regions[0] "eu": overflow_to: names 9 regions; at most 7 are allowed"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.health_checks[0].probe = None,
        r#"health_checks[0] "http": probe: must be set; give tcp or http"#,
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
        |m| m.pools[0].slots = 5,
        r#"pools[0] "web": slots: 5 is not within 7 to 16777213"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = 16_777_214,
        r#"pools[0] "web": slots: 16777214 is not within 7 to 16777213"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = 65_536,
        r#"pools[0] "web": slots: 65536 is not a prime: 2 divides it"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = 251 * 257,
        r#"pools[0] "web": slots: 64507 is not a prime: 251 divides it"#,
        "pools[0].slots",
    ),
    (
        |m| {
            m.pools[0].slots = 7;
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
                m.regions.push(v1::Region { name: region.clone(), overflow_to: vec![] });
                m.pools[0].backends.push(v1::Backend { address, region, ..Default::default() });
            }
        },
        r#"pools[0] "web": backends: stand in 9 regions; at most 8 are allowed"#,
        "pools[0].backends",
    ),
    (
        |m| m.pools[0].backends.iter_mut().for_each(|backend| backend.weight = Some(0)),
        r#"pools[0] "web": backends: all weights are 0, so nobody would be served; give one of them a weight"#,
        "pools[0].backends",
    ),
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
        |m| m.pools[0].backends[1].wanted = 3,
        r#"pools[0] "web": backends[1] "10.0.0.2": wanted: 3 is no state that this version knows"#,
        "pools[0].backends[1].wanted",
    ),
    (
        |m| m.pools[0].backends[1].mtu = 1279,
        r#"pools[0] "web": backends[1] "10.0.0.2": mtu: 1279 is not within 1280 to 65535"#,
        "pools[0].backends[1].mtu",
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
            m.services[1].port = 80;
        },
        r#"services[1] "dns": address: 192.0.2.1, port 80, tcp is already service "web""#,
        "services[1].address",
    ),
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

#[test]
fn every_mistake_is_named() {
    configuration(&correct()).unwrap();
    for (mistake, expected, path) in MISTAKES {
        let mut message = correct();
        mistake(&mut message);
        let error = configuration(&message).unwrap_err();
        assert_eq!(error.to_string(), *expected);
        assert_eq!(error.path(), *path);
    }
}

#[test]
fn addresses_are_unicast_addresses_of_one_host() {
    for (address, kind) in [
        ("0.0.0.0", "the unspecified address"),
        ("::", "the unspecified address"),
        ("127.0.0.1", "a loopback address"),
        ("::1", "a loopback address"),
        ("224.0.0.1", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("255.255.255.255", "the broadcast address"),
        ("0.1.2.3", "in 0.0.0.0/8, which means this network"),
        ("::ffff:10.0.0.1", "an IPv4 address written as IPv6"),
        ("fe80::1", "link-local, which says nothing without its interface"),
    ] {
        let mut message = correct();
        message.services[0].address = address.into();
        assert_eq!(
            configuration(&message).unwrap_err().to_string(),
            format!(
                "services[0] {address:?}: address: {address} is {kind}; \
                 give the unicast address of one host"
            )
            .replacen(&format!("{address:?}"), "\"web\"", 1)
        );
        let mut message = correct();
        message.pools[0].backends[0].address = address.into();
        let place = "pools[0].backends[0].address";
        assert_eq!(configuration(&message).unwrap_err().path(), place);
    }
}

#[test]
fn defaults_are_those_of_the_comments() {
    let configuration = configuration(&correct()).unwrap();
    let name = |text| Name::new(text).unwrap();
    let second = std::time::Duration::from_secs(1);
    let expected = HealthCheck {
        probe: Probe::Http(HttpProbe {
            path: "/healthz".into(),
            host: None,
            status_min: 200,
            status_max: 299,
        }),
        port: 8080,
        interval: second,
        timeout: second,
        rise: 2,
        fall: 3,
        jitter_percent: 10,
    };
    assert_eq!(configuration.health_checks[&name("http")], expected);
    let pool = &configuration.pools[&name("web")];
    assert_eq!(pool.slots, 65_537);
    let region = name("eu");
    let expected = Backend { region, weight: 1, wanted: WantedState::Active, mtu: None };
    assert_eq!(pool.backends[&"10.0.0.1".parse().unwrap()], expected);
    assert_eq!(configuration.services[&name("web")].affinity, Affinity::Connection);
    assert_eq!(configuration.hash_key, None);
}

#[test]
fn a_timeout_follows_a_short_interval_and_a_range_its_lower_end() {
    let mut message = correct();
    message.health_checks[0].interval = Some(Duration { seconds: 0, nanos: 20_000_000 });
    http(&mut message).status_min = 301;
    let checks = configuration(&message).unwrap().health_checks;
    let check = &checks[&Name::new("http").unwrap()];
    assert_eq!(check.timeout, std::time::Duration::from_millis(20));
    let Probe::Http(http) = &check.probe else { panic!("it asks by http") };
    assert_eq!((http.status_min, http.status_max), (301, 301));
}

#[test]
fn a_hash_key_is_read_most_significant_digit_first() {
    let mut message = correct();
    message.hash_key = "000102030405060708090A0b0c0d0e0f".into();
    let key = configuration(&message).unwrap().hash_key;
    assert_eq!(key, Some([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]));
}

#[test]
fn what_the_packet_path_has_no_room_for_is_refused() {
    let mut message = correct();
    for n in 0..4095u32 {
        let mut service = message.services[0].clone();
        service.name = format!("s{n}");
        service.port = 1000 + n;
        message.services.push(service);
    }
    assert_eq!(
        configuration(&message).unwrap_err().to_string(),
        "services: 4097 services are more than the 4096 there is room for"
    );
    message.services.pop();
    configuration(&message).unwrap();

    let mut message = correct();
    for n in 0..2049u32 {
        let mut pool = message.pools[1].clone();
        pool.name = format!("p{n}");
        pool.backends[0].address = std::net::Ipv4Addr::from(0x0a01_0000 + n).to_string();
        message.pools.push(pool);
    }
    assert_eq!(
        configuration(&message).unwrap_err().to_string(),
        "pools: 2051 different tables are more than the 2048 there is room for"
    );
    // The two pools of the correct message share one table and have another.
    message.pools.truncate(2 + 2046);
    configuration(&message).unwrap();
}

/// Messages near enough to correct ones that the checks deep inside are reached.
fn garbage() -> impl Strategy<Value = v1::Configuration> {
    let text = || {
        prop_oneof![
            Just(String::new()),
            prop::sample::select(vec!["eu", "us", "http", "web", "10.0.0.1", "::1", "2001:db8::1"])
                .prop_map(String::from),
            any::<String>(),
        ]
    };
    let number = || prop_oneof![0u32..300, any::<u32>()];
    let duration = || {
        prop::option::of((any::<i64>(), any::<i32>()))
            .prop_map(|duration| duration.map(|(seconds, nanos)| Duration { seconds, nanos }))
    };
    let backend = (text(), text(), any::<Option<u32>>(), -1i32..4, number()).prop_map(
        |(address, region, weight, wanted, mtu)| v1::Backend {
            address,
            region,
            weight,
            wanted,
            mtu,
        },
    );
    let pool = (text(), prop::collection::vec(backend, 0..4), number()).prop_map(
        |(name, backends, slots)| v1::Pool { name, backends, health_checks: vec![], slots },
    );
    let check = (text(), number(), duration(), duration(), number()).prop_map(
        |(name, port, interval, timeout, rise)| v1::HealthCheck {
            probe: Some(v1::health_check::Probe::Tcp(v1::TcpProbe {})),
            name,
            port,
            interval,
            timeout,
            rise,
            ..Default::default()
        },
    );
    let service = (text(), text(), number(), -1i32..4, text(), -1i32..4).prop_map(
        |(name, address, port, protocol, pool, affinity)| v1::Service {
            name,
            address,
            port,
            protocol,
            pool,
            affinity,
        },
    );
    let region = (text(), prop::collection::vec(text(), 0..3));
    (
        prop::collection::vec(region, 0..3),
        prop::collection::vec(check, 0..3),
        prop::collection::vec(pool, 0..3),
        prop::collection::vec(service, 0..3),
        text(),
    )
        .prop_map(|(regions, health_checks, pools, services, hash_key)| v1::Configuration {
            regions: regions
                .into_iter()
                .map(|(name, overflow_to)| v1::Region { name, overflow_to })
                .collect(),
            health_checks,
            pools,
            services,
            hash_key,
        })
}

proptest! {
    #[test]
    fn every_model_survives_its_message(model in arbitrary::configuration()) {
        prop_assert_eq!(configuration(&v1::Configuration::from(&model)).unwrap(), model);
    }

    #[test]
    fn no_message_panics_and_what_passes_is_stable(message in garbage()) {
        if let Ok(model) = configuration(&message) {
            prop_assert_eq!(configuration(&v1::Configuration::from(&model)).unwrap(), model);
        }
    }
}
