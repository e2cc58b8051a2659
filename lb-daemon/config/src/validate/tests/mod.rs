mod garbage;
mod mistakes;
mod slots;

use std::{collections::BTreeSet, net::Ipv4Addr};

use proptest::prelude::*;
use prost_types::Duration;
use spillway_proto::v1;

use super::{validate_first as validate, *};
use crate::document::Document;
use garbage::garbage;
use lb_fake::arbitrary;
use lb_model::{
    AdminState, Affinity, Backend, CheckKind, GroupSettings, HealthCheck, HttpCheck, Isolation,
    Name, Rate, Scaler, Via, WhenFull,
};
use mistakes::http;

/// A correct message with one of everything twice; the mistakes below are made in it.
fn correct() -> v1::Configuration {
    Document::parse(CORRECT).unwrap().into()
}

const CORRECT: &str = r#"
        [[region]]
        name = "eu"
        overflow_to = ["us"]
        [[region]]
        name = "us"
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
        [[pool.group]]
        region = "eu"
        capacity = "10/s"
        scaler = 0.5
        [[pool.group]]
        region = "us"
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
        udp = "tracked"
"#;

#[test]
fn every_mistake_is_named() {
    validate(&correct()).unwrap();
    for (mistake, expected, path) in mistakes::all() {
        let mut message = correct();
        mistake(&mut message);
        let error = validate(&message).unwrap_err();
        assert_eq!(error.mistakes()[0].to_string(), *expected);
        assert_eq!(error.path(), *path);
        let others = &error.mistakes()[1..];
        let is_reference = |other: &Mistake| other.to_string().contains("\" is not among the ");
        assert!(others.iter().all(is_reference), "{expected} leads to {others:?}");
    }
}

/// Not a row of the table, each of which is made beside each other one.
#[test]
fn a_region_has_no_more_backends_of_a_pool_than_there_are_ranks() {
    let mut message = correct();
    let pool = &mut message.pools[0];
    // One is there already.
    pool.backends.extend((1..65_534).map(|n| v1::Backend {
        address: Ipv4Addr::from_bits(0x0a01_0000 + n).to_string(),
        region: "eu".into(),
        ..v1::Backend::default()
    }));
    pool.slots = Some(131_071);
    validate(&message).unwrap();
    let one_more =
        v1::Backend { address: "10.3.0.1".into(), ..message.pools[0].backends[0].clone() };
    message.pools[0].backends.push(one_more);
    let error = validate(&message).unwrap_err();
    let expected = r#"pools[0] "web": backends: 65535 are in region "eu"; at most 65534 are allowed: make several regions or pools of them"#;
    assert_eq!((error.to_string().as_str(), &*error.path()), (expected, "pools[0].backends"));
}

fn paths(invalid: &Invalid) -> Vec<String> {
    invalid.mistakes().iter().map(Mistake::path).collect()
}

#[test]
fn all_mistakes_are_named_at_once() {
    let mut message = correct();
    message.regions[1].overflow_to = vec!["asia".into(), "africa".into()];
    message.health_checks[0].port = 70_000;
    message.health_checks[0].rise = 1_000;
    http(&mut message).path = "healthz".into();
    message.health_checks[1].name = "TCP".into();
    message.health_checks[1].kind = None;
    message.pools[0].slots = Some(6);
    message.pools[0].backends[0].weight = Some(u32::MAX);
    message.pools[0].backends[1].address = "10.0.0".into();
    message.pools[0].backends[1].region = "asia".into();
    message.pools[0].groups[0].scaler = Some(7.0);
    message.services[1].address = "0.0.0.0".into();
    message.services[1].protocol = 0;
    message.services[1].pool = "dmz".into();
    message.hash_key = "0123".into();
    message.balancers = 5_000;
    let invalid = validate(&message).unwrap_err();
    let expected = [
        "regions[1].overflow_to",
        "regions[1].overflow_to",
        "health_checks[1].name",
        "health_checks[0].http.path",
        "health_checks[0].port",
        "health_checks[0].rise",
        "health_checks[1].kind",
        "pools[0].backends[0].weight",
        "pools[0].backends[1].address",
        "pools[0].backends[1].region",
        "pools[0].groups[0].scaler",
        "pools[0].slots",
        "services[1].address",
        "services[1].protocol",
        "services[1].pool",
        "hash_key",
        "balancers",
    ];
    assert_eq!(paths(&invalid), expected);
    assert_eq!(
        invalid.to_string(),
        "regions[1] \"us\": overflow_to: \"asia\" is not among the regions (and 16 more mistakes)"
    );
    let invalid = invalid.for_single_object(&[("services", 1)], "service", "service");
    let mistakes: Vec<_> = invalid.mistakes().iter().map(ToString::to_string).collect();
    assert_eq!(mistakes[13], "service \"dns\": protocol: must be set; give tcp or udp");
    assert_eq!(mistakes[5], "health_checks[0] \"http\": rise: 1000 is not within 1 to 100");
}

/// Rules between objects, of which each is broken in more than one place.
#[test]
fn all_mistakes_between_objects_are_named_at_once() {
    let mut message = correct();
    message.regions.push(v1::Region {
        name: "asia".into(),
        overflow_to: vec!["africa".into()],
        ..Default::default()
    });
    message.regions.push(v1::Region {
        name: "africa".into(),
        overflow_to: vec!["asia".into()],
        ..Default::default()
    });
    message.regions[1].overflow_to = vec!["eu".into()];
    message.services[1].protocol = message.services[0].protocol;
    (message.services[1].udp, message.services[1].port) = (0, 80);
    message.pools[1].backends[0].region = "us".into();
    message.pools[1].backends[0].mtu = 1_400;
    message.pools[0].backends[1].address = "192.0.2.1".into();
    let expected = [
        "regions[0].overflow_to",
        "regions[2].overflow_to",
        "services[1].address",
        "pools[0].backends[1].address",
        "pools[1].backends[0].region",
        "pools[1].backends[0].mtu",
    ];
    assert_eq!(paths(&validate(&message).unwrap_err()), expected);
}

/// Two mistakes in different lists are both found, unless one of them is of a rule between objects, which the other one may
/// keep.
#[test]
fn no_mistake_hides_one_of_another_list() {
    let list = |path: &str| path.split('[').next().unwrap().to_owned();
    let with = |mistakes: &[&mistakes::Row]| {
        let mut message = correct();
        mistakes.iter().for_each(|(mistake, ..)| mistake(&mut message));
        paths(&validate(&message).unwrap_err())
    };
    // Rules between objects come after the balancers.
    let beside = (|m: &mut v1::Configuration| m.balancers = 1_001) as mistakes::Mistake;
    let alone = (beside, "", "balancers");
    let of_fields: Vec<_> = mistakes::all()
        // What refers to an object without a name is wrong too.
        .filter(|row| row.2 != "balancers" && !row.2.ends_with(".name"))
        .filter(|row| {
            let found = with(&[row, &alone]);
            let fields = found.iter().take_while(|path| *path != "balancers");
            fields.into_iter().any(|path| path == row.2)
        })
        .collect();
    let all = mistakes::all().count();
    assert!(of_fields.len() + 25 > all, "{} of {all} are of fields", of_fields.len());
    for one in &of_fields {
        for other in of_fields.iter().filter(|other| list(other.2) != list(one.2)) {
            let found = with(&[one, other]);
            assert!(found.iter().any(|path| path == one.2), "{} hides {}", other.1, one.1);
            assert!(found.iter().any(|path| path == other.2), "{} hides {}", one.1, other.1);
        }
    }
}

/// A hostile message does not fill the memory with what is wrong with it.
#[test]
fn the_mistakes_of_a_message_are_bounded() {
    let mut message = correct();
    let wrong = v1::Backend { address: "nowhere".into(), ..v1::Backend::default() };
    message.pools[1].backends = vec![wrong; 10_000];
    let invalid = validate(&message).unwrap_err();
    assert_eq!((invalid.mistakes().len(), invalid.count()), (MOST_MISTAKES, 20_000));
    assert!(invalid.to_string().ends_with(" (and 19999 more mistakes)"), "{invalid}");
}

/// Kinds of mistakes: the field, whichever object has it, and what is said of it whatever the values.
#[test]
fn each_of_many_kinds_of_mistakes_names_its_field() {
    let no_values = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let mut kinds = BTreeSet::new();
    for (_, said, path) in mistakes::all() {
        let field = path.rsplit("].").next().unwrap_or(path);
        let (_, cause) = format!(": {said}")
            .split_once(&format!(": {field}: "))
            .map(|(before, cause)| (before.to_owned(), cause.to_owned()))
            .unwrap_or_else(|| panic!("{said} does not name {field}"));
        let words: String = cause.split('"').step_by(2).collect();
        kinds.insert((no_values(path), no_values(&words)));
    }
    assert!(kinds.len() >= 50, "{} kinds: {kinds:#?}", kinds.len());
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
        ("240.0.0.0", "in 240.0.0.0/4, which is reserved and not routed"),
        ("255.255.255.254", "in 240.0.0.0/4, which is reserved and not routed"),
        ("::ffff:10.0.0.1", "an IPv4 address written as IPv6"),
        ("fe80::1", "link-local, which says nothing without its interface"),
    ] {
        let mut message = correct();
        message.services[0].address = address.into();
        assert_eq!(
            validate(&message).unwrap_err().to_string(),
            format!(
                "services[0] {address:?}: address: {address} is {kind}; \
                 give the unicast address of one host"
            )
            .replacen(&format!("{address:?}"), "\"web\"", 1)
        );
        let mut message = correct();
        message.pools[0].backends[0].address = address.into();
        let place = "pools[0].backends[0].address";
        assert_eq!(validate(&message).unwrap_err().path(), place);
    }
}

/// An exact port is its own service's beside one that has any; other addresses and protocols are apart.
#[test]
fn ports_that_do_not_meet_are_no_mistake() {
    let mut message = correct();
    let service = |name: &str, change: fn(&mut v1::Service)| {
        let mut service = v1::Service { name: name.into(), ..correct().services[1].clone() };
        service.port = 0;
        change(&mut service);
        service
    };
    let list = |first, last| vec![v1::PortRange { first, last }];
    message.services.extend([
        service("any", |s| s.any_port = true),
        service("below", |s| s.ports = vec![v1::PortRange { first: 1, last: 52 }]),
        service("above", |s| s.ports = vec![v1::PortRange { first: 54, last: 99 }]),
        service("six", |s| (s.address, s.any_port) = ("2001:db8::1".into(), true)),
    ]);
    message.services.push(v1::Service {
        protocol: v1::Protocol::Tcp.into(),
        udp: 0,
        ports: list(100, 300),
        ..service("tcp", |_| {})
    });
    let configuration = validate(&message).unwrap();
    let spelt: Vec<_> = configuration
        .services
        .iter()
        .map(|(name, service)| format!("{name} {}", service.endpoint()))
        .collect();
    assert_eq!(
        spelt,
        [
            "above 192.0.2.1:54-99",
            "any 192.0.2.1:any",
            "below 192.0.2.1:1-52",
            "dns 192.0.2.1:53",
            "six [2001:db8::1]:any",
            "tcp 192.0.2.1:100-300",
            "web 192.0.2.1:80",
        ]
    );
}

#[test]
fn defaults_are_those_of_the_comments() {
    let configuration = validate(&correct()).unwrap();
    let name = |text| Name::new(text).unwrap();
    let second = std::time::Duration::from_secs(1);
    let expected = HealthCheck {
        kind: CheckKind::Http(HttpCheck {
            method: "GET".into(),
            path: "/healthz".into(),
            host: None,
            status_min: 200,
            status_max: 299,
            body_contains: None,
            agent_header: None,
        }),
        tls: None,
        via: Via::Address,
        port: 8080,
        interval: second,
        fast_interval: second,
        timeout: second,
        rise: 2,
        fall: 3,
        jitter_percent: 10,
        host_probe: lb_model::HostProbe::Auto,
        host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
    };
    assert_eq!(configuration.health_checks[&name("http")], expected);
    let pool = &configuration.pools[&name("web")];
    assert_eq!(pool.slots, 1_009);
    let region = name("eu");
    let expected = Backend {
        region,
        weight: 1,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    assert_eq!(pool.backends[&"10.0.0.1".parse().unwrap()], expected);
    assert_eq!(configuration.services[&name("web")].affinity, Affinity::Connection);
    assert_eq!(configuration.hash_key, None);
    assert_eq!(configuration.balancers.get(), 1);
    let scaler = Scaler::new(0.5).unwrap();
    let group = GroupSettings { capacity: Rate::new(10.0), scaler, drained: false };
    assert_eq!(pool.groups, [(name("eu"), group)].into(), "the other says nothing");
    let rest = (pool.isolation, &*pool.preferred_regions, pool.panic_threshold_percent);
    assert_eq!(rest, (Isolation::None, &[][..], 0));
    assert_eq!((pool.settle_time, pool.slow_start), (600 * second, std::time::Duration::ZERO));
    assert_eq!((pool.hold_down, pool.max_hold_down), (10 * second, 300 * second));
    let how = |text| {
        let service = &configuration.services[&name(text)];
        (service.when_full, service.idle_timeout)
    };
    assert_eq!(how("web"), (WhenFull::Nearest, None));
    assert_eq!(how("dns"), (WhenFull::Nearest, Some(60 * second)));
}

#[test]
fn what_says_no_number_is_refused_in_a_files_form_too() {
    for (from, to, expected) in [
        (
            "capacity = \"10/s\"",
            "capacity = \"nan/s\"",
            "pools[0] \"web\": groups[0] \"eu\": capacity_per_second: NaN is not within 0.1 to \
             10000000 new connections a second",
        ),
        (
            "scaler = 0.5",
            "scaler = -inf",
            "pools[0] \"web\": groups[0] \"eu\": scaler: -inf is neither 0 nor within 0.1 to 1",
        ),
    ] {
        assert!(CORRECT.contains(from), "{from}");
        let message = Document::parse(&CORRECT.replace(from, to)).unwrap().into();
        assert_eq!(validate(&message).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_circle_is_named_whole_from_its_first_region_in_the_file() {
    let mut message = correct();
    let region = |name: &str, to: &[&str]| v1::Region {
        name: name.into(),
        overflow_to: to.iter().map(ToString::to_string).collect(),
        ..Default::default()
    };
    // eu -> us -> a -> b -> us: eu only leads into it. The shortest way back to us is told.
    message.regions = vec![
        region("eu", &["us"]),
        region("b", &["us"]),
        region("us", &["a", "b"]),
        region("a", &["b"]),
    ];
    let invalid = validate(&message).unwrap_err();
    let loops: Vec<_> = invalid.mistakes().iter().map(ToString::to_string).collect();
    let expected = [
        r#"regions[1] "b": overflow_to: forms a loop: b -> us -> b"#,
        r#"regions[3] "a": overflow_to: forms a loop: a -> b -> us -> a"#,
    ];
    assert_eq!(loops, expected);
    // Two ways to one region are no circle.
    message.regions[1].overflow_to.clear();
    validate(&message).unwrap();
}

#[test]
fn a_scaler_of_backends_with_limits_of_their_own_is_of_their_sum() {
    let mut message = correct();
    message.pools[0].groups[0].capacity_per_second = None;
    let error = validate(&message).unwrap_err();
    assert_eq!(error.path(), "pools[0].groups[0].scaler");
    message.pools[0].backends[0].max_connection_rate_per_second = Some(5.0);
    validate(&message).unwrap();
    // One that takes nothing needs none.
    let (address, region) = ("10.0.0.3".into(), "eu".into());
    let weight = Some(0);
    message.pools[0].backends.push(v1::Backend { address, region, weight, ..Default::default() });
    validate(&message).unwrap();
    message.pools[0].backends[2].weight = None;
    assert_eq!(validate(&message).unwrap_err(), error);
}

#[test]
fn a_timeout_follows_a_short_interval_and_a_range_its_lower_end() {
    let mut message = correct();
    message.health_checks[0].interval = Some(Duration { seconds: 0, nanos: 20_000_000 });
    http(&mut message).status_min = 301;
    let checks = validate(&message).unwrap().health_checks;
    let check = &checks[&Name::new("http").unwrap()];
    assert_eq!(check.timeout, std::time::Duration::from_millis(20));
    let CheckKind::Http(http) = &check.kind else { panic!("it asks by http") };
    assert_eq!((http.status_min, http.status_max), (301, 301));
}

#[test]
fn a_hash_key_is_read_most_significant_digit_first() {
    let mut message = correct();
    message.hash_key = "000102030405060708090A0b0c0d0e0f".into();
    let key = validate(&message).unwrap().hash_key;
    assert_eq!(key, Some([0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]));
}

proptest! {
    #[test]
    fn every_model_survives_its_message(model in arbitrary::configuration()) {
        prop_assert_eq!(validate(&crate::to_message(&model)).unwrap(), model);
    }

    #[test]
    fn no_message_panics_and_what_passes_is_stable(message in garbage()) {
        if let Ok(model) = validate(&message) {
            prop_assert_eq!(validate(&crate::to_message(&model)).unwrap(), model);
        }
    }
}
