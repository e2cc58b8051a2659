use lb_net::{Unresolved, survey};

use super::{
    Row,
    fixture::{self, LO, balancer, configuration, eth0, ip},
    run_all,
};
use crate::{
    facts::{DaemonState, Facts, IdleReason, PinnedBackend, VipProbe, VipProbeResult, VipProbes},
    finding::{
        Finding,
        Level::{Ok, Problem, Warning},
    },
};

const SILENT: VipProbeResult = VipProbeResult::Silent { is_host_up: true, by_tcp: true };
const NARROW: VipProbeResult = VipProbeResult::Narrow { fits: Some(1_380) };
const DOCTOR: &str = "ssh 10.1.0.11 spillway doctor  # shows what is missing";
const SAY_1400: &str = "spillway backend update 10.1.0.11 --mtu 1400";

const PING: &str = "ping -c 3 10.1.0.11  # are the host and the path to it up?";
const FORBIDDEN: &str =
    "echo requests cannot be sent: Permission denied (net.ipv4.ping_group_range)";
const ALLOW: &str = "sysctl -w net.ipv4.ping_group_range='0 2147483647'";

pub(super) const ROWS: &[Row] = &[
    (balancer, |f| set(f, SILENT), "tunnels", Problem, "203.0.113.1", DOCTOR),
    (
        balancer,
        |f| set(f, VipProbeResult::Silent { is_host_up: true, by_tcp: false }),
        "tunnels",
        Warning,
        "203.0.113.1",
        DOCTOR,
    ),
    (
        balancer,
        // Without a tunnel there is no receiver, and a backend that answers ARP takes the VIP from the balancer.
        |f| direct(f, SILENT),
        "tunnels",
        Problem,
        "203.0.113.1",
        "ssh 10.1.0.11 'sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 && ip address \
         add 203.0.113.1/32 dev lo'",
    ),
    (
        balancer,
        // IPv6 addresses on lo are not announced to neighbours.
        |f| {
            *probes(f) =
                vec![VipProbe { overhead: 0, ..probe(f, "10.1.0.11", "2001:db8:f::1", SILENT) }]
        },
        "tunnels",
        Problem,
        "2001:db8:f::1",
        "ssh 10.1.0.11 ip address add 2001:db8:f::1/128 dev lo",
    ),
    (balancer, |f| set(f, NARROW), "tunnels", Warning, "10.1.0.11", SAY_1400),
    // The configured MTU is larger than the path MTU.
    (balancer, |f| configured_mtu(f, 1500), "tunnels", Warning, "10.1.0.11", SAY_1400),
    (balancer, narrow_everywhere, "tunnels", Warning, "10.1.0.11", SAY_1400),
    (
        balancer,
        |f| set(f, VipProbeResult::Narrow { fits: None }),
        "tunnels",
        Warning,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu BYTES",
    ),
    // Less than the smallest MTU that can be configured.
    (
        balancer,
        |f| set(f, VipProbeResult::Narrow { fits: Some(1_000) }),
        "tunnels",
        Warning,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu BYTES",
    ),
    // The level of a host that is down depends on the daemon's view.
    (balancer, |f| host_down(f, None), "tunnels", Problem, "10.1.0.11", PING),
    (balancer, |f| host_down(f, Some(IdleReason::Drained)), "nothing", Ok, "", ""),
    // Without echo requests large packets are not tried.
    (
        balancer,
        |f| set(f, VipProbeResult::Unsized(FORBIDDEN.into())),
        "tunnels",
        Warning,
        "10.1.0.11",
        ALLOW,
    ),
    (
        balancer,
        |f| set(f, VipProbeResult::NotProbed(FORBIDDEN.into())),
        "tunnels",
        Warning,
        "203.0.113.1",
        ALLOW,
    ),
    // An unknown state is not a fault.
    (
        balancer,
        |f| set(f, VipProbeResult::NotProbed("it is our own".into())),
        "nothing",
        Ok,
        "",
        "",
    ),
    (balancer, |f| set(f, VipProbeResult::Unsized("no echo".into())), "nothing", Ok, "", ""),
    (balancer, |f| f.vip_probes = Some(VipProbes::NotRun("no".into())), "nothing", Ok, "", ""),
    (balancer, |f| f.vip_probes = None, "nothing", Ok, "", ""),
    (balancer, |f| configured_mtu(f, 1400), "nothing", Ok, "", ""),
    (balancer, |f| configured_mtu(f, 1300), "nothing", Ok, "", ""),
    // Not measured: the configured MTU is believed.
    (balancer, unmeasured, "nothing", Ok, "", ""),
    // With and without a reverse path filter that would drop the answer.
    (balancer, |f| set_rp_filter(f, 1, NOWHERE), "nothing", Ok, "", ""),
    (balancer, |f| set_rp_filter(f, 2, NOWHERE), "nothing", Ok, "", ""),
    (balancer, |f| set_rp_filter(f, 0, NOWHERE), "tunnels", Problem, "203.0.113.1", DOCTOR),
    (balancer, |f| set_rp_filter(f, 1, elsewhere()), "nothing", Ok, "", ""),
    (balancer, |f| set_rp_filter(f, 2, elsewhere()), "tunnels", Problem, "203.0.113.1", DOCTOR),
    (
        balancer,
        |f| set_rp_filter(f, 1, fixture::route("10.0.0.9")),
        "tunnels",
        Problem,
        "203.0.113.1",
        DOCTOR,
    ),
    (balancer, rp_filter_v6, "tunnels", Problem, "2001:db8:f::1", DOCTOR),
];

fn probes(facts: &mut Facts) -> &mut Vec<VipProbe> {
    match &mut facts.vip_probes {
        Some(VipProbes::Done { probes, .. }) => probes,
        other => panic!("{other:?}"),
    }
}

fn probe(facts: &mut Facts, backend: &str, vip: &str, result: VipProbeResult) -> VipProbe {
    let one = probes(facts)[0].clone();
    VipProbe { backend: ip(backend), vip: ip(vip), result, ..one }
}

fn set(facts: &mut Facts, result: VipProbeResult) {
    probes(facts)[0].result = result;
}

/// Without a tunnel.
fn direct(facts: &mut Facts, result: VipProbeResult) {
    *probes(facts) =
        vec![VipProbe { overhead: 0, ..probe(facts, "10.1.0.11", "203.0.113.1", result) }];
}

/// The path MTU is 1400, and an MTU is configured.
fn configured_mtu(facts: &mut Facts, mtu: u32) {
    set(facts, NARROW);
    facts.balancer.as_mut().unwrap().backends[0].mtu = mtu;
    let Some(DaemonState::Answers { configuration, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    configuration.with_mtu.insert(ip("10.1.0.11"));
}

fn unmeasured(facts: &mut Facts) {
    configured_mtu(facts, 1500);
    set(facts, VipProbeResult::Narrow { fits: None });
}

/// This host's interface is narrow and a switch after it even more: raising the interface's MTU would be wrong.
fn narrow_everywhere(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    set(facts, NARROW);
}

const NOWHERE: Result<survey::RouteInfo, Unresolved> = Err(Unresolved::NoRoute);

fn elsewhere() -> Result<survey::RouteInfo, Unresolved> {
    fixture::route("10.0.0.1").map(|way| survey::RouteInfo { interface: LO, ..way })
}

/// The VIP does not answer, with this reverse path filter and this route to the VIP.
fn set_rp_filter(facts: &mut Facts, filter: i64, route: Result<survey::RouteInfo, Unresolved>) {
    set(facts, SILENT);
    fixture::set(facts, "net.ipv4.conf.all.rp_filter", 0);
    fixture::set(facts, "net.ipv4.conf.eth0.rp_filter", filter);
    facts.network.survey.routes.insert(ip("203.0.113.1"), route);
}

/// IPv6 has no reverse path filter.
fn rp_filter_v6(facts: &mut Facts) {
    set_rp_filter(facts, 1, NOWHERE);
    *probes(facts) = vec![probe(facts, "10.1.0.11", "2001:db8:f::1", SILENT)];
    facts.network.survey.routes.insert(ip("2001:db8:f::1"), NOWHERE);
}

fn found(facts: &Facts) -> Vec<Finding> {
    run_all(facts).into_iter().filter(|finding| finding.check == "tunnels").collect()
}

fn lines(facts: &Facts) -> Vec<String> {
    found(facts).iter().map(|f| format!("{} {}: {}", f.level.word(), f.subject, f.found)).collect()
}

/// A narrow interface of this host is reported once.
#[test]
fn a_narrow_interface_is_the_finding_of_another_check() {
    let mut facts = balancer();
    eth0(&mut facts).interface.mtu = 1500;
    set(&mut facts, VipProbeResult::Narrow { fits: Some(1_480) });
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!((wrong[0].check, wrong[0].subject.as_str()), ("mtu", "eth0"));
    let expected =
        "ok 1 backend: small packets arrive through the tunnel; see `mtu` for large ones";
    assert_eq!(lines(&facts), [expected]);
}

#[test]
fn no_more_is_advised_than_was_measured() {
    let mut facts = balancer();
    narrow_everywhere(&mut facts);
    let route = fixture::route("10.0.0.1").map(|way| survey::RouteInfo { mtu: Some(1_400), ..way });
    facts.network.survey.routes.insert(ip("10.1.0.11"), route);
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!((wrong[0].check, wrong[0].subject.as_str()), ("mtu", "eth0"));
    assert_eq!(wrong[0].or, Some(format!("{SAY_1400}  # or: the MTU of the path")));
}

#[test]
fn each_backend_is_in_one_finding() {
    let mut facts = balancer();
    let backends = &mut facts.balancer.as_mut().unwrap().backends;
    let one = backends[0].clone();
    for last in 12..=16 {
        let address = ip(&format!("10.1.0.{last}"));
        backends.push(PinnedBackend { address, ..one.clone() });
        let there = facts.network.survey.routes[&ip("10.1.0.11")].clone();
        facts.network.survey.routes.insert(address, there);
    }
    let probe_of = |facts: &mut Facts, last: u8, vip: &str, result| {
        let probe = probe(facts, &format!("10.1.0.{last}"), vip, result);
        probes(facts).push(probe);
    };
    let (a, b) = ("203.0.113.1", "203.0.113.2");
    probe_of(&mut facts, 11, b, VipProbeResult::Works);
    for last in [12, 13] {
        probe_of(&mut facts, last, a, VipProbeResult::Works);
        probe_of(&mut facts, last, b, SILENT);
    }
    for vip in [a, b] {
        probe_of(&mut facts, 14, vip, SILENT);
        probe_of(&mut facts, 15, vip, VipProbeResult::Silent { is_host_up: false, by_tcp: true });
    }
    probe_of(&mut facts, 16, a, NARROW);
    probe_of(&mut facts, 16, b, VipProbeResult::Narrow { fits: Some(1_300) });
    if let Some(VipProbes::Done { left_out, .. }) = &mut facts.vip_probes {
        *left_out = 7;
    }
    assert_eq!(
        lines(&facts),
        [
            "problem 203.0.113.1 and 1 more: no answer through the tunnel from 10.1.0.14, but the host is up",
            "problem 203.0.113.2: no answer through the tunnel from 10.1.0.12 and 1 more, but the host is up",
            "warning 10.1.0.15: the host does not answer, in or outside the tunnel",
            "warning 10.1.0.16: packets of 1500 bytes do not arrive through the tunnel, small ones do (path MTU \
             1320 with the tunnel)",
            "ok 1 backend: VIPs answer through the tunnel, also to packets of 1500 bytes",
            "ok 7 more probes: not made, because there are too many",
        ]
    );
    let found = found(&facts);
    assert_eq!(
        found[0].mend,
        [
            "ssh 10.1.0.14 spillway doctor  # shows what is missing",
            "ssh 10.1.0.14 'ip address add 203.0.113.1/32 dev lo; ip address add 203.0.113.2/32 dev lo'",
        ]
    );
    let receiver = "ssh 10.1.0.14 setsid -f spillwayd receiver --interface INTERFACE --allow-source 10.0.0.2 \
                    --vip 203.0.113.1,203.0.113.2  # if none is running";
    assert_eq!(found[0].or.as_deref(), Some(receiver));
    assert!(found[0].why.contains("does not allow this balancer (10.0.0.2)"), "{found:#?}");
    assert_eq!(
        found[1].mend,
        [
            "ssh 10.1.0.12 spillway doctor  # and likewise on the others; shows what is missing",
            "ssh 10.1.0.12 ip address add 203.0.113.2/32 dev lo  # and likewise on the others",
        ]
    );
}

/// The host of the first backend does not answer.
fn host_down(facts: &mut Facts, idle: Option<IdleReason>) {
    configuration(facts).served[0].backends[0].idle = idle;
    set(facts, VipProbeResult::Silent { is_host_up: false, by_tcp: true });
}

/// It is reported for the service and for the probe.
#[test]
fn a_host_that_is_down_is_as_bad_as_its_service() {
    let mut facts = balancer();
    host_down(&mut facts, Some(IdleReason::Unreachable("check web: the host is silent".into())));
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    let found: Vec<_> = wrong.iter().map(|f| (f.check, f.level, f.subject.as_str())).collect();
    assert_eq!(found, [("services", Warning, "web"), ("tunnels", Warning, "10.1.0.11")]);
    assert_eq!(wrong[1].mend, [PING]);
    let two = IdleReason::Unreachable("check web: the host is silent".into());
    configuration(&mut facts).served[0].backends[1].idle = Some(two);
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level == Problem).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].found, "none of 2 backends is up");
}

#[test]
fn an_unknown_state_has_its_reason() {
    let of = |result| {
        let mut facts = balancer();
        set(&mut facts, result);
        lines(&facts)
    };
    let own = "203.0.113.1 is an address of this host";
    assert_eq!(
        of(VipProbeResult::NotProbed(own.into())),
        [format!("ok 203.0.113.1: 10.1.0.11 cannot be probed for it: {own}")]
    );
    assert_eq!(
        of(VipProbeResult::Unsized("echo requests are not answered".into())),
        [
            "ok 10.1.0.11: VIPs answer through the tunnel, but large packets could not be tested: echo \
             requests are not answered"
        ]
    );
    let dropped = |filter, route, why: &str| {
        let mut facts = balancer();
        set_rp_filter(&mut facts, filter, route);
        let why = format!(
            "this host would drop its answer: its reverse path filter (rp_filter={filter} on eth0) needs {why}"
        );
        assert_eq!(
            lines(&facts),
            [format!("ok 203.0.113.1: 10.1.0.11 cannot be probed for it: {why}")]
        );
    };
    let blackhole = Err(Unresolved::Refused("blackhole"));
    dropped(2, blackhole, "a route to the VIP, but there is no route: blackhole");
    dropped(1, elsewhere(), "the route to the VIP on that interface, but it is on lo");
    let mut facts = balancer();
    facts.vip_probes = Some(VipProbes::NotRun("x: is viewer, but the call needs operator".into()));
    assert_eq!(
        lines(&facts),
        ["ok backends: not probed: x: is viewer, but the call needs operator"]
    );
}

#[test]
fn without_a_tunnel_no_finding_mentions_one() {
    let of = |result| {
        let mut facts = balancer();
        direct(&mut facts, result);
        for finding in found(&facts) {
            let words = format!("{finding:?}").replace("\"tunnels\"", "");
            assert!(!words.contains("tunnel"), "{words}");
        }
        lines(&facts)
    };
    assert_eq!(of(SILENT), ["problem 203.0.113.1: no answer from 10.1.0.11, but the host is up"]);
    let fit = "packets of 1500 bytes do not arrive, small ones do (path MTU 1380)";
    assert_eq!(of(NARROW), [format!("warning 10.1.0.11: {fit}")]);
    assert_eq!(
        of(VipProbeResult::Works),
        ["ok 1 backend: VIPs answer, also to packets of 1500 bytes"]
    );
    let unsized_ = "ok 10.1.0.11: VIPs answer, but large packets could not be tested: x";
    assert_eq!(of(VipProbeResult::Unsized("x".into())), [unsized_]);
    assert_eq!(
        of(VipProbeResult::Silent { is_host_up: false, by_tcp: true }),
        ["problem 10.1.0.11: the host does not answer, but it gets new connections"]
    );
    let mut facts = balancer();
    configured_mtu(&mut facts, 1380);
    direct(&mut facts, NARROW);
    let expected = "ok 1 backend: small packets arrive; see `mtu` for large ones";
    assert_eq!(lines(&facts), [expected]);
}

/// The receiver allows the balancer's address of the tunnel's IP version, and needs the GUE port.
#[test]
fn a_receiver_is_started_for_its_tunnels() {
    let mut facts = balancer();
    let backends = &mut facts.balancer.as_mut().unwrap().backends;
    let second = PinnedBackend {
        address: ip("fd00:1::11"),
        source: Some(ip("fd00::2")),
        ..backends[0].clone()
    };
    backends.push(second);
    let v4 = VipProbe { overhead: 32, ..probe(&mut facts, "10.1.0.11", "203.0.113.1", SILENT) };
    let v6 = VipProbe { overhead: 40, ..probe(&mut facts, "fd00:1::11", "203.0.113.1", SILENT) };
    // IP in IP works there, GUE does not.
    let ip_in_ip = probe(&mut facts, "10.1.0.11", "203.0.113.2", VipProbeResult::Works);
    *probes(&mut facts) = vec![v4, v6, ip_in_ip];
    let mut commands: Vec<_> = found(&facts).into_iter().filter_map(|found| found.or).collect();
    commands.sort();
    let start = "setsid -f spillwayd receiver --interface INTERFACE --allow-source";
    assert_eq!(
        commands,
        [
            format!(
                "ssh 10.1.0.11 {start} 10.0.0.2 --vip 203.0.113.1 --gue-port PORT  # if none is running; the \
                     pool's port, or 6080"
            ),
            format!("ssh fd00:1::11 {start} fd00::2 --vip 203.0.113.1  # if none is running"),
        ]
    );
}
