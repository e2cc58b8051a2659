use std::num::NonZeroU32;

use super::*;
use crate::{
    AgentCheck, CheckTls, Encapsulation, GroupSettings, GrpcCheck, HostProbe, HttpCheck, Isolation,
    PortList, Rate, Scaler, Trust, UdpCheck, Via,
};

#[test]
fn every_field_is_told_with_both_values() {
    let changes = changed(|new| {
        new.regions.get_mut(&name("eu")).unwrap().overflow_to = vec![name("us")];
        let check = new.health_checks.get_mut(&name("tcp")).unwrap();
        *check = HealthCheck {
            kind: CheckKind::Http(request("/", None, 200, 299)),
            tls: Some(CheckTls { server_name: None, trust: Trust::Anybody }),
            via: Via::Tunnel,
            port: 81,
            interval: Duration::from_millis(1500),
            fast_interval: Duration::from_millis(50),
            timeout: Duration::from_secs(1),
            rise: 1,
            fall: 2,
            jitter_percent: 0,
            host_probe: HostProbe::Tcp,
            host_probe_port: 9,
        };
        let pool = web(new);
        pool.health_checks.clear();
        pool.isolation = Isolation::OnFailure;
        pool.preferred_regions = vec![name("us"), name("eu")];
        pool.panic_threshold_percent = 40;
        pool.settle_time = Duration::from_secs(90);
        pool.slow_start = Duration::from_secs(30);
        pool.hold_down = Duration::ZERO;
        pool.max_hold_down = Duration::from_secs(60);
        pool.encapsulation = Encapsulation::Gue(6080);
        let group =
            GroupSettings { capacity: Rate::new(10.0), scaler: Scaler::NONE, drained: true };
        pool.groups = [(name("us"), group)].into();
        let service = new.services.get_mut(&name("web")).unwrap();
        service.address = [192, 0, 2, 2].into();
        service.ports = Ports::Listed(PortList::new([(443, 443), (8000, 8099)]).unwrap());
        service.protocol = Protocol::Udp;
        service.affinity = Affinity::Client;
        service.when_full = WhenFull::Reject;
        service.idle_timeout = Some(Duration::from_secs(90));
        service.fragments = Fragments::Served;
        new.hash_key = Some([1, 2]);
        new.balancers = NonZeroU32::new(3).unwrap();
        new.vips.insert("203.0.113.0/24".parse().unwrap(), Unserved::Drop);
    });
    assert_eq!(
        changes,
        [
            entry(Kind::Changed, "region eu", &["overflow_to: none -> us"], 0),
            entry(
                Kind::Changed,
                "health check tcp",
                &[
                    "kind: tcp -> http",
                    "tls: off -> on",
                    "via: address -> tunnel",
                    "port: 80 -> 81",
                    "interval: 1s -> 1.5s",
                    "fast_interval: 1s -> 50ms",
                    "timeout: 500ms -> 1s",
                    "rise: 2 -> 1",
                    "fall: 3 -> 2",
                    "jitter_percent: 10 -> 0",
                    "host_probe: auto -> tcp",
                    "host_probe_port: 1 -> 9",
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
                    "hold_down: 10s -> 0ns",
                    "max_hold_down: 300s -> 60s",
                    "encapsulation: ip_in_ip -> gue to port 6080",
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
                    "ports: 80 -> 443,8000-8099",
                    "protocol: tcp -> udp",
                    "affinity: connection -> client",
                    "when_full: nearest -> reject",
                    "udp: stateless -> tracked",
                    "idle_timeout: unset -> 90s",
                    "fragments: dropped -> served",
                ],
                0,
            ),
            entry(Kind::Added, "vip 203.0.113.0/24", &[], 0),
            entry(
                Kind::Changed,
                "hash key",
                &["hash_key: the daemon's own -> the configuration's"],
                0
            ),
            entry(Kind::Changed, "balancers", &["balancers: 1 -> 3"], 0),
        ]
    );
}

#[test]
fn a_range_of_vips_is_called_by_its_prefix() {
    let configuration = |unserved: Option<Unserved>| Configuration {
        vips: unserved.map(|it| ("203.0.113.7".parse().unwrap(), it)).into_iter().collect(),
        ..Configuration::EMPTY
    };
    let changes = |old, new| between(&configuration(old), &configuration(new));
    let (drop, pass) = (Some(Unserved::Drop), Some(Unserved::Pass));
    let vip = "vip 203.0.113.7/32";
    let changed = entry(Kind::Changed, vip, &["unserved: drop -> pass"], 0);
    assert_eq!(changes(drop, pass), [changed]);
    assert_eq!(changes(drop, None), [entry(Kind::Removed, vip, &[], 0)]);
    assert_eq!(changes(drop, drop), []);
}

fn request(path: &str, host: Option<&str>, min: u16, max: u16) -> HttpCheck {
    HttpCheck {
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
    let of = |probe: &CheckKind, tls: Option<CheckTls>| {
        let mut configuration = configuration();
        let check = configuration.health_checks.get_mut(&name("tcp")).unwrap();
        (check.kind, check.tls) = (probe.clone(), tls);
        configuration
    };
    let http = CheckKind::Http(request("/", None, 200, 299));
    let posted = CheckKind::Http(HttpCheck {
        method: "POST".into(),
        body_contains: Some("\"ok\"".into()),
        agent_header: Some("x-load".into()),
        ..request("/a", Some("b"), 201, 202)
    });
    let grpc = |service: &str, authority: Option<&str>| {
        let (service, authority) = (service.into(), authority.map(Into::into));
        CheckKind::Grpc(GrpcCheck { service, authority })
    };
    let udp = |request: &[u8], prefix: &[u8], contains: &[u8]| {
        let (answer_prefix, answer_contains) = (prefix.into(), contains.into());
        CheckKind::Udp(UdpCheck { request: request.into(), answer_prefix, answer_contains })
    };
    let agent = |send: &[u8]| CheckKind::Agent(AgentCheck { send: send.into() });
    let tls =
        |name: Option<&str>, trust| Some(CheckTls { server_name: name.map(Into::into), trust });
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
        assert_eq!(between(&old, &new), [expected]);
    }
}
