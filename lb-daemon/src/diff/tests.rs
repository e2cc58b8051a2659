use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::model::{
    Affinity, AgentProbe, Backend, GroupSettings, GrpcProbe, HealthCheck, HttpProbe, Isolation,
    Name, Probe, Protocol, Rate, Region, Scaler, Service, TlsProbe, Trust, UdpProbe, WantedState,
    WhenFull, arbitrary,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn backend(region: &str) -> Backend {
    Backend {
        region: name(region),
        weight: 1,
        wanted: WantedState::Active,
        mtu: None,
        max_connection_rate: None,
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn configuration() -> Configuration {
    let check = HealthCheck {
        probe: Probe::Tcp,
        tls: None,
        port: 80,
        interval: Duration::from_secs(1),
        fast_interval: Duration::from_secs(1),
        timeout: Duration::from_millis(500),
        rise: 2,
        fall: 3,
        jitter_percent: 10,
    };
    let pool = Pool {
        backends: [(ip(1), backend("eu")), (ip(2), backend("eu")), (ip(3), backend("us"))].into(),
        health_checks: vec![name("tcp")],
        slots: 7,
        ..Pool::default()
    };
    let service = Service {
        address: [192, 0, 2, 1].into(),
        port: 80,
        protocol: Protocol::Tcp,
        pool: name("web"),
        affinity: Affinity::Connection,
        when_full: WhenFull::Nearest,
        idle_timeout: None,
    };
    Configuration {
        regions: [(name("eu"), Region::default()), (name("us"), Region::default())].into(),
        health_checks: [(name("tcp"), check)].into(),
        pools: [(name("web"), pool)].into(),
        services: [(name("web"), service)].into(),
        ..Configuration::EMPTY
    }
}

/// Slots go round the members: easy to count by hand.
fn in_turn(members: &[(IpAddr, u32)], slots: u32) -> Vec<IpAddr> {
    (0..slots).map(|slot| members[slot as usize % members.len()].0).collect()
}

fn changed(change: impl FnOnce(&mut Configuration)) -> Vec<Change> {
    let mut new = configuration();
    change(&mut new);
    between(&configuration(), &new, &in_turn)
}

fn entry(kind: Kind, object: &str, details: &[&str], slots_moved: u64) -> Change {
    let details = details.iter().map(ToString::to_string).collect();
    Change { kind, object: object.into(), details, slots_moved }
}

fn web(configuration: &mut Configuration) -> &mut Pool {
    configuration.pools.get_mut(&name("web")).unwrap()
}

#[test]
fn objects_come_and_go_in_order() {
    let whole = ["region eu", "region us", "health check tcp", "pool web", "service web"];
    let empty = Configuration::default();
    let expected = |kind| whole.map(|object| entry(kind, object, &[], 0)).to_vec();
    assert_eq!(between(&empty, &configuration(), &in_turn), expected(Kind::Added));
    assert_eq!(between(&configuration(), &empty, &in_turn), expected(Kind::Removed));
}

#[test]
fn every_field_is_told_with_both_values() {
    let changes = changed(|new| {
        new.regions.get_mut(&name("eu")).unwrap().overflow_to = vec![name("us")];
        let check = new.health_checks.get_mut(&name("tcp")).unwrap();
        *check = HealthCheck {
            probe: Probe::Http(request("/", None, 200, 299)),
            tls: Some(TlsProbe { server_name: None, trust: Trust::Anybody }),
            port: 81,
            interval: Duration::from_millis(1500),
            fast_interval: Duration::from_millis(50),
            timeout: Duration::from_secs(1),
            rise: 1,
            fall: 2,
            jitter_percent: 0,
        };
        let pool = web(new);
        pool.health_checks.clear();
        pool.isolation = Isolation::OnFailure;
        pool.preferred_regions = vec![name("us"), name("eu")];
        pool.panic_threshold_percent = 40;
        pool.settle_time = Duration::from_secs(90);
        pool.slow_start = Duration::from_secs(30);
        let group =
            GroupSettings { capacity: Rate::new(10.0), scaler: Scaler::NONE, drained: true };
        pool.groups = [(name("us"), group)].into();
        let service = new.services.get_mut(&name("web")).unwrap();
        service.address = [192, 0, 2, 2].into();
        service.port = 443;
        service.protocol = Protocol::Udp;
        service.affinity = Affinity::Client;
        service.when_full = WhenFull::Reject;
        service.idle_timeout = Some(Duration::from_secs(90));
        new.hash_key = Some([1, 2]);
        new.balancers = NonZeroU32::new(3).unwrap();
    });
    assert_eq!(
        changes,
        [
            entry(Kind::Changed, "region eu", &["overflow_to: none -> us"], 0),
            entry(
                Kind::Changed,
                "health check tcp",
                &[
                    "probe: tcp -> http",
                    "tls: off -> on",
                    "port: 80 -> 81",
                    "interval: 1s -> 1.5s",
                    "fast_interval: 1s -> 50ms",
                    "timeout: 500ms -> 1s",
                    "rise: 2 -> 1",
                    "fall: 3 -> 2",
                    "jitter_percent: 10 -> 0",
                ],
                0,
            ),
            entry(
                Kind::Changed,
                "pool web",
                &[
                    "health_checks: tcp -> none",
                    "isolation: none -> on_failure",
                    "preferred_regions: none -> us, eu",
                    "panic_threshold_percent: 0 -> 40",
                    "settle_time: 600s -> 90s",
                    "slow_start: 0ns -> 30s",
                    "capacity in us: unset -> 10/s",
                    "scaler in us: 1 -> 0",
                    "drained in us: no -> yes",
                ],
                0,
            ),
            entry(
                Kind::Changed,
                "service web",
                &[
                    "address: 192.0.2.1 -> 192.0.2.2",
                    "port: 80 -> 443",
                    "protocol: tcp -> udp",
                    "affinity: connection -> client",
                    "when_full: nearest -> reject",
                    "udp: stateless -> tracked",
                    "idle_timeout: unset -> 90s",
                ],
                0,
            ),
            entry(Kind::Changed, "hash key", &["hash_key: the daemon's own -> another"], 0),
            entry(Kind::Changed, "balancers", &["balancers: 1 -> 3"], 0),
        ]
    );
}

fn request(path: &str, host: Option<&str>, min: u16, max: u16) -> HttpProbe {
    HttpProbe {
        method: "GET".into(),
        path: path.into(),
        host: host.map(Into::into),
        status_min: min,
        status_max: max,
        body_contains: None,
        agent_header: None,
    }
}

#[test]
fn fields_of_a_probe_are_told_one_by_one() {
    let of = |probe: &Probe, tls: Option<TlsProbe>| {
        let mut configuration = configuration();
        let check = configuration.health_checks.get_mut(&name("tcp")).unwrap();
        (check.probe, check.tls) = (probe.clone(), tls);
        configuration
    };
    let http = Probe::Http(request("/", None, 200, 299));
    let posted = Probe::Http(HttpProbe {
        method: "POST".into(),
        body_contains: Some("\"ok\"".into()),
        agent_header: Some("x-load".into()),
        ..request("/a", Some("b"), 201, 202)
    });
    let grpc = |service: &str, authority: Option<&str>| {
        let (service, authority) = (service.into(), authority.map(Into::into));
        Probe::Grpc(GrpcProbe { service, authority })
    };
    let udp = |request: &[u8], prefix: &[u8], contains: &[u8]| {
        let (answer_prefix, answer_contains) = (prefix.into(), contains.into());
        Probe::Udp(UdpProbe { request: request.into(), answer_prefix, answer_contains })
    };
    let agent = |send: &[u8]| Probe::Agent(AgentProbe { send: send.into() });
    let tls =
        |name: Option<&str>, trust| Some(TlsProbe { server_name: name.map(Into::into), trust });
    let (nobody, somebody) =
        (tls(None, Trust::Anybody), tls(Some("a.b"), Trust::File("/c".into())));
    for (old, new, expected) in [
        (
            of(&http, None),
            of(&posted, None),
            &[
                "http.method: GET -> POST",
                "http.path: / -> /a",
                "http.host: unset -> b",
                "http.status_min: 200 -> 201",
                "http.status_max: 299 -> 202",
                "http.body_contains: unset -> \"\\\"ok\\\"\"",
                "http.agent_header: unset -> x-load",
            ][..],
        ),
        (
            of(&grpc("", None), None),
            of(&grpc("a.B", Some("c")), None),
            &["grpc.service: \"\" -> \"a.B\"", "grpc.authority: unset -> c"],
        ),
        (
            of(&udp(b"a\n", b"", b"b"), None),
            of(&udp(b"\x00", b"c", b""), None),
            &[
                "udp.request: \"a\\n\" -> \"hex:00\"",
                "udp.answer_prefix: \"\" -> \"c\"",
                "udp.answer_contains: \"b\" -> \"\"",
            ],
        ),
        (of(&agent(b""), None), of(&agent(b"?\n"), None), &["agent.send: \"\" -> \"?\\n\""]),
        (
            of(&http, nobody),
            of(&http, somebody),
            &[
                "tls.server_name: unset -> a.b",
                "tls.verify: false -> true",
                "tls.ca_file: unset -> /c",
            ],
        ),
        (of(&http, tls(None, Trust::Host)), of(&http, None), &["tls: on -> off"]),
    ] {
        let expected = entry(Kind::Changed, "health check tcp", expected, 0);
        assert_eq!(between(&old, &new, &in_turn), [expected]);
    }
}

#[test]
fn slots_that_change_their_owner_are_counted() {
    // 1 2 1 2 1 2 1 becomes 1 2 4 1 2 4 1: slots 2 to 5 differ.
    assert_eq!(
        changed(|new| drop(web(new).backends.insert(ip(4), backend("eu")))),
        [
            entry(Kind::Changed, "pool web", &["backends in eu: 2 -> 3 (1 new)"], 4),
            entry(Kind::Added, "pool web: backend 10.0.0.4", &[], 0),
        ]
    );
    // 1 2 1 2 1 2 1 becomes 2 2 2 2 2 2 2.
    assert_eq!(
        changed(|new| drop(web(new).backends.remove(&ip(1)))),
        [
            entry(Kind::Changed, "pool web", &["backends in eu: 2 -> 1 (1 gone)"], 4),
            entry(Kind::Removed, "pool web: backend 10.0.0.1", &[], 0),
        ]
    );
}

#[test]
fn a_table_that_goes_counts_whole_and_one_that_comes_not() {
    assert_eq!(
        changed(|new| web(new).backends.get_mut(&ip(3)).unwrap().region = name("eu")),
        [
            entry(
                Kind::Changed,
                "pool web",
                &["backends in eu: 2 -> 3 (1 new)", "backends in us: 1 -> 0 (1 gone)"],
                4 + 7,
            ),
            entry(Kind::Changed, "pool web: backend 10.0.0.3", &["region: us -> eu"], 0),
        ]
    );
    assert_eq!(
        changed(|new| web(new).backends.get_mut(&ip(2)).unwrap().region = name("asia")),
        [
            entry(
                Kind::Changed,
                "pool web",
                &["backends in asia: 0 -> 1 (1 new)", "backends in eu: 2 -> 1 (1 gone)"],
                3,
            ),
            entry(Kind::Changed, "pool web: backend 10.0.0.2", &["region: eu -> asia"], 0),
        ]
    );
    assert_eq!(
        changed(|new| web(new).slots = 11),
        [entry(Kind::Changed, "pool web", &["slots: 7 -> 11"], 22)]
    );
}

#[test]
fn what_touches_no_table_moves_no_slot() {
    assert_eq!(
        changed(|new| {
            let backend = web(new).backends.get_mut(&ip(1)).unwrap();
            backend.wanted = WantedState::Drain;
            backend.mtu = Some(1400);
            backend.max_connection_rate = Rate::new(0.5);
        }),
        [entry(
            Kind::Changed,
            "pool web: backend 10.0.0.1",
            &[
                "wanted: active -> drain",
                "mtu: unset -> 1400",
                "max_connection_rate: unset -> 0.5/s",
            ],
            0,
        )]
    );
}

#[test]
fn a_weight_is_a_matter_of_the_table() {
    assert_eq!(
        changed(|new| web(new).backends.get_mut(&ip(1)).unwrap().weight = 3),
        [
            entry(Kind::Changed, "pool web", &["backends in eu: 2 -> 2 (1 of another weight)"], 0,),
            entry(Kind::Changed, "pool web: backend 10.0.0.1", &["weight: 1 -> 3"], 0),
        ]
    );
}

/// Whoever leaves leaves at least its own slots; the exact quotas of equal members are known.
#[test]
fn the_owners_that_packets_meet_have_exact_quotas() {
    let members: Vec<_> = (1..=4).map(|n| (ip(n), 1)).collect();
    let owners = owners(&members, 65_537);
    let count = |n| owners.iter().filter(|owner| **owner == ip(n)).count();
    assert_eq!([count(1), count(2), count(3), count(4)], [16_385, 16_384, 16_384, 16_384]);

    let mut old = configuration();
    let pool = web(&mut old);
    pool.slots = 65_537;
    pool.backends = (1..=4).map(|n| (ip(n), backend("eu"))).collect();
    let mut new = old.clone();
    web(&mut new).backends.remove(&ip(4));
    let moved = between(&old, &new, &super::owners)[0].slots_moved;
    assert!((16_384..20_000).contains(&moved), "{moved}");
}

proptest! {
    #[test]
    fn only_equal_configurations_have_no_difference(
        old in arbitrary::configuration(), new in arbitrary::configuration(),
    ) {
        prop_assert_eq!(between(&old, &old, &in_turn), []);
        let there = between(&old, &new, &in_turn);
        let back = between(&new, &old, &in_turn);
        prop_assert_eq!(there.is_empty(), old == new);
        for change in &there {
            prop_assert_eq!(change.details.is_empty(), change.kind != Kind::Changed);
        }
        let objects = |changes: &[Change], kind| -> Vec<String> {
            changes.iter().filter(|c| c.kind == kind).map(|c| c.object.clone()).collect()
        };
        prop_assert_eq!(objects(&there, Kind::Added), objects(&back, Kind::Removed));
        prop_assert_eq!(objects(&there, Kind::Removed), objects(&back, Kind::Added));
        prop_assert_eq!(objects(&there, Kind::Changed), objects(&back, Kind::Changed));
    }
}

/// What becomes of open connections in a daemon that stands in a region.
fn moved(own: &str, change: impl FnOnce(&mut Configuration)) -> Vec<(String, Effect, f64)> {
    let mut new = configuration();
    change(&mut new);
    moved_from(&configuration(), &new, own)
}

fn moved_from(old: &Configuration, new: &Configuration, own: &str) -> Vec<(String, Effect, f64)> {
    let movements = movements(old, new, Some(&name(own)), &in_turn);
    movements.into_iter().map(|moved| (moved.object, moved.effect, moved.share)).collect()
}

fn expected(all: &[(&str, Effect, f64)]) -> Vec<(String, Effect, f64)> {
    all.iter().map(|(object, effect, share)| ((*object).into(), *effect, *share)).collect()
}

#[test]
fn what_moves_no_connection_is_not_said_to() {
    assert_eq!(moved("eu", |_| {}), []);
    let quiet = moved("eu", |new| {
        new.balancers = NonZeroU32::new(4).unwrap();
        new.health_checks.get_mut(&name("tcp")).unwrap().port = 81;
        let pool = web(new);
        pool.health_checks.clear();
        pool.backends.get_mut(&ip(1)).unwrap().wanted = WantedState::Drain;
        // Not where connections are at home.
        pool.backends.insert(ip(4), backend("us"));
    });
    assert_eq!(quiet, []);
}

/// Slots of the home before: 1, 2, 1, 2, 1, 2, 1.
#[test]
fn a_change_of_home_settles_and_says_how_much_of_it() {
    let settles = |share| expected(&[("pool web", Effect::Settle, share)]);
    // 1, 2, 4, 1, 2, 4, 1
    let added = |new: &mut Configuration| drop(web(new).backends.insert(ip(4), backend("eu")));
    assert_eq!(moved("eu", added), settles(4.0 / 7.0));
    // 3, 3, 3, 3, 3, 3, 3 becomes 3, 4, 3, 4, 3, 4, 3.
    let there = |new: &mut Configuration| drop(web(new).backends.insert(ip(4), backend("us")));
    assert_eq!(moved("us", there), settles(3.0 / 7.0));
    // The other region first: all.
    let prefers = |new: &mut Configuration| web(new).preferred_regions = vec![name("us")];
    assert_eq!(moved("eu", prefers), settles(1.0));
    // Counted over thirteen places of the hash.
    assert_eq!(moved("eu", |new| web(new).slots = 13), settles(7.0 / 13.0));
    // Of two equal backends another hash finds the same half of the time.
    assert_eq!(moved("eu", |new| new.hash_key = Some([1, 2])), settles(0.5));
    // Nobody's connections.
    let mut idle = configuration();
    idle.services.clear();
    let mut more = idle.clone();
    added(&mut more);
    assert_eq!(moved_from(&idle, &more, "eu"), []);
}

#[test]
fn what_moves_at_once_or_ends_is_named() {
    let off = |new: &mut Configuration| {
        web(new).backends.get_mut(&ip(1)).unwrap().wanted = WantedState::Disabled;
    };
    let backend_1 = expected(&[("pool web: backend 10.0.0.1", Effect::AtOnce, 1.0)]);
    assert_eq!(moved("eu", off), backend_1);

    let service = |new: &mut Configuration| new.services.get_mut(&name("web")).unwrap().clone();
    let with = |change: fn(&mut Service)| {
        move |new: &mut Configuration| {
            let mut other = service(new);
            change(&mut other);
            // A pool with the first backend alone.
            let mut pool = web(new).clone();
            pool.backends.remove(&ip(2));
            new.pools.insert(name("one"), pool);
            new.services.insert(name("web"), other);
        }
    };
    let at_once = |share| expected(&[("service web", Effect::AtOnce, share)]);
    assert_eq!(moved("eu", with(|s| s.affinity = Affinity::Client)), at_once(0.5));
    assert_eq!(moved("eu", with(|s| s.pool = name("one"))), at_once(3.0 / 7.0));
    assert_eq!(moved("eu", with(|s| s.when_full = WhenFull::Reject)), []);
    let end = expected(&[("service web", Effect::End, 1.0)]);
    assert_eq!(moved("eu", with(|s| s.port = 81)), end);
    assert_eq!(moved("eu", |new| new.services.clear()), end);
}

/// Each packet of stateless UDP goes by its slot: nothing settles.
#[test]
fn stateless_flows_move_at_once() {
    let mut old = configuration();
    let dns = old.services.get_mut(&name("web")).unwrap();
    dns.protocol = Protocol::Udp;
    let mut new = old.clone();
    web(&mut new).backends.insert(ip(4), backend("eu"));
    let at_once = expected(&[("service web", Effect::AtOnce, 4.0 / 7.0)]);
    assert_eq!(moved_from(&old, &new, "eu"), at_once);
    // Remembered ones do as connections.
    for configuration in [&mut old, &mut new] {
        let dns = configuration.services.get_mut(&name("web")).unwrap();
        dns.idle_timeout = Some(Duration::from_secs(60));
    }
    let settles = expected(&[("pool web", Effect::Settle, 4.0 / 7.0)]);
    assert_eq!(moved_from(&old, &new, "eu"), settles);
}
