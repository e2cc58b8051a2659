use lb_daemon::net::{Unresolved, survey};

use super::{
    Row, judge,
    scene::{self, LO, balancer, eth0, ip, told},
};
use crate::verbs::doctor::{
    facts::{Backend, Daemon, Facts, Idle, Outcome, Tunnels, Way},
    finding::{
        Finding,
        Level::{Ok, Problem, Warning},
    },
};

const SILENT: Outcome = Outcome::Silent { is_there: true, by_tcp: true };
const NARROW: Outcome = Outcome::Narrow { fits: Some(1_380) };
const DOCTOR: &str = "ssh 10.1.0.11 spillway doctor  # it says what is missing";
const SAY_1400: &str = "spillway backend update 10.1.0.11 --mtu 1400";

const PING: &str = "ping -c 3 10.1.0.11  # is the host up, and the way to it?";
const FORBIDDEN: &str =
    "echo requests cannot be sent: Permission denied (net.ipv4.ping_group_range)";
const ALLOW: &str = "sysctl -w net.ipv4.ping_group_range='0 2147483647'";

pub(super) const ROWS: &[Row] = &[
    (balancer, |f| set(f, SILENT), "tunnels", Problem, "203.0.113.1", DOCTOR),
    (
        balancer,
        |f| set(f, Outcome::Silent { is_there: true, by_tcp: false }),
        "tunnels",
        Warning,
        "203.0.113.1",
        DOCTOR,
    ),
    (
        balancer,
        // Without a tunnel there is no receiver, and who does not keep silent takes the VIP from the balancer.
        |f| direct(f, SILENT),
        "tunnels",
        Problem,
        "203.0.113.1",
        "ssh 10.1.0.11 'sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 && ip address \
         add 203.0.113.1/32 dev lo'",
    ),
    (
        balancer,
        // Of IPv6 addresses on lo no neighbour is told.
        |f| *ways(f) = vec![Way { overhead: 0, ..way(f, "10.1.0.11", "2001:db8:f::1", SILENT) }],
        "tunnels",
        Problem,
        "2001:db8:f::1",
        "ssh 10.1.0.11 ip address add 2001:db8:f::1/128 dev lo",
    ),
    (balancer, |f| set(f, NARROW), "tunnels", Warning, "10.1.0.11", SAY_1400),
    // More was said than comes there, and this host's interface takes more.
    (balancer, |f| said(f, 1500), "tunnels", Warning, "10.1.0.11", SAY_1400),
    (balancer, narrow_everywhere, "tunnels", Warning, "10.1.0.11", SAY_1400),
    (
        balancer,
        |f| set(f, Outcome::Narrow { fits: None }),
        "tunnels",
        Warning,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu BYTES",
    ),
    // Less than anybody can say that a way takes.
    (
        balancer,
        |f| set(f, Outcome::Narrow { fits: Some(1_000) }),
        "tunnels",
        Warning,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu BYTES",
    ),
    // A host that is away is as bad as what the daemon makes of it.
    (balancer, |f| away(f, None), "tunnels", Problem, "10.1.0.11", PING),
    (balancer, |f| away(f, Some(Idle::Drained)), "nothing", Ok, "", ""),
    // May the daemon send no echo requests, large packets are not tried.
    (
        balancer,
        |f| set(f, Outcome::Unsized(FORBIDDEN.into())),
        "tunnels",
        Warning,
        "10.1.0.11",
        ALLOW,
    ),
    (
        balancer,
        |f| set(f, Outcome::Barred(FORBIDDEN.into())),
        "tunnels",
        Warning,
        "203.0.113.1",
        ALLOW,
    ),
    // What cannot be told is no fault.
    (balancer, |f| set(f, Outcome::Barred("it is our own".into())), "nothing", Ok, "", ""),
    (balancer, |f| set(f, Outcome::Unsized("no echo".into())), "nothing", Ok, "", ""),
    (balancer, |f| f.tunnels = Some(Tunnels::Untried("no".into())), "nothing", Ok, "", ""),
    (balancer, |f| f.tunnels = None, "nothing", Ok, "", ""),
    (balancer, |f| said(f, 1400), "nothing", Ok, "", ""),
    (balancer, |f| said(f, 1300), "nothing", Ok, "", ""),
    // Nobody looked: what is said is believed.
    (balancer, unmeasured, "nothing", Ok, "", ""),
    // No answer comes past the reverse path filter, or another is let in.
    (balancer, |f| unheard(f, 1, NOWHERE), "nothing", Ok, "", ""),
    (balancer, |f| unheard(f, 2, NOWHERE), "nothing", Ok, "", ""),
    (balancer, |f| unheard(f, 0, NOWHERE), "tunnels", Problem, "203.0.113.1", DOCTOR),
    (balancer, |f| unheard(f, 1, elsewhere()), "nothing", Ok, "", ""),
    (balancer, |f| unheard(f, 2, elsewhere()), "tunnels", Problem, "203.0.113.1", DOCTOR),
    (
        balancer,
        |f| unheard(f, 1, scene::way("10.0.0.9")),
        "tunnels",
        Problem,
        "203.0.113.1",
        DOCTOR,
    ),
    (balancer, unheard_v6, "tunnels", Problem, "2001:db8:f::1", DOCTOR),
];

fn ways(facts: &mut Facts) -> &mut Vec<Way> {
    match &mut facts.tunnels {
        Some(Tunnels::Tried { ways, .. }) => ways,
        other => panic!("{other:?}"),
    }
}

fn way(facts: &mut Facts, backend: &str, vip: &str, outcome: Outcome) -> Way {
    let one = ways(facts)[0].clone();
    Way { backend: ip(backend), vip: ip(vip), outcome, ..one }
}

fn set(facts: &mut Facts, outcome: Outcome) {
    ways(facts)[0].outcome = outcome;
}

/// Without a tunnel.
fn direct(facts: &mut Facts, outcome: Outcome) {
    *ways(facts) = vec![Way { overhead: 0, ..way(facts, "10.1.0.11", "203.0.113.1", outcome) }];
}

/// 1400 bytes come there, and somebody has said what does.
fn said(facts: &mut Facts, mtu: u32) {
    set(facts, NARROW);
    facts.balancer.as_mut().unwrap().backends[0].mtu = mtu;
    let Some(Daemon::Answers { told, .. }) = &mut facts.daemon else { panic!("it answers") };
    told.sized.insert(ip("10.1.0.11"));
}

fn unmeasured(facts: &mut Facts) {
    said(facts, 1500);
    set(facts, Outcome::Narrow { fits: None });
}

/// This host's interface is narrow, and a switch after it more so: to widen the interface would be wrong.
fn narrow_everywhere(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    set(facts, NARROW);
}

const NOWHERE: Result<survey::Way, Unresolved> = Err(Unresolved::NoRoute);

fn elsewhere() -> Result<survey::Way, Unresolved> {
    scene::way("10.0.0.1").map(|way| survey::Way { interface: LO, ..way })
}

/// Silence, where the reverse path filter is this, and so the route to the VIP.
fn unheard(facts: &mut Facts, filter: i64, route: Result<survey::Way, Unresolved>) {
    set(facts, SILENT);
    scene::set(facts, "net.ipv4.conf.all.rp_filter", 0);
    scene::set(facts, "net.ipv4.conf.eth0.rp_filter", filter);
    facts.network.survey.ways.insert(ip("203.0.113.1"), route);
}

/// The filter is IPv4's.
fn unheard_v6(facts: &mut Facts) {
    unheard(facts, 1, NOWHERE);
    *ways(facts) = vec![way(facts, "10.1.0.11", "2001:db8:f::1", SILENT)];
    facts.network.survey.ways.insert(ip("2001:db8:f::1"), NOWHERE);
}

fn found(facts: &Facts) -> Vec<Finding> {
    judge(facts).into_iter().filter(|finding| finding.check == "tunnels").collect()
}

fn lines(facts: &Facts) -> Vec<String> {
    found(facts).iter().map(|f| format!("{} {}: {}", f.level.word(), f.subject, f.found)).collect()
}

/// Where this host's own interface is what is narrow, that is said once.
#[test]
fn what_is_narrow_here_is_another_checks() {
    let mut facts = balancer();
    eth0(&mut facts).interface.mtu = 1500;
    set(&mut facts, Outcome::Narrow { fits: Some(1_480) });
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!((wrong[0].check, wrong[0].subject.as_str()), ("mtu", "eth0"));
    let said = "ok 1 backend: small packets come through the tunnel; what fits is said under `mtu`";
    assert_eq!(lines(&facts), [said]);
}

/// What this host's interface takes is not what comes there.
#[test]
fn no_more_is_advised_than_was_measured() {
    let mut facts = balancer();
    narrow_everywhere(&mut facts);
    let route = scene::way("10.0.0.1").map(|way| survey::Way { mtu: Some(1_400), ..way });
    facts.network.survey.ways.insert(ip("10.1.0.11"), route);
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!((wrong[0].check, wrong[0].subject.as_str()), ("mtu", "eth0"));
    assert_eq!(wrong[0].or, Some(format!("{SAY_1400}  # else: what the path takes")));
}

#[test]
fn each_backend_is_told_once() {
    let mut facts = balancer();
    let backends = &mut facts.balancer.as_mut().unwrap().backends;
    let one = backends[0].clone();
    for last in 12..=16 {
        let address = ip(&format!("10.1.0.{last}"));
        backends.push(Backend { address, ..one.clone() });
        let there = facts.network.survey.ways[&ip("10.1.0.11")].clone();
        facts.network.survey.ways.insert(address, there);
    }
    let way = |facts: &mut Facts, last: u8, vip: &str, outcome| {
        let way = way(facts, &format!("10.1.0.{last}"), vip, outcome);
        ways(facts).push(way);
    };
    let (a, b) = ("203.0.113.1", "203.0.113.2");
    way(&mut facts, 11, b, Outcome::Well);
    for last in [12, 13] {
        way(&mut facts, last, a, Outcome::Well);
        way(&mut facts, last, b, SILENT);
    }
    for vip in [a, b] {
        way(&mut facts, 14, vip, SILENT);
        way(&mut facts, 15, vip, Outcome::Silent { is_there: false, by_tcp: true });
    }
    way(&mut facts, 16, a, NARROW);
    way(&mut facts, 16, b, Outcome::Narrow { fits: Some(1_300) });
    if let Some(Tunnels::Tried { left_out, .. }) = &mut facts.tunnels {
        *left_out = 7;
    }
    assert_eq!(
        lines(&facts),
        [
            "problem 203.0.113.1 and 1 more: no answer through the tunnel from 10.1.0.14, though the host is there",
            "problem 203.0.113.2: no answer through the tunnel from 10.1.0.12 and 1 more, though the host is there",
            "warning 10.1.0.15: no sign of the host, in the tunnel or outside",
            "warning 10.1.0.16: packets of 1500 bytes do not come through the tunnel, small ones do (the way takes \
             1320 with the tunnel)",
            "ok 1 backend: VIPs answer through the tunnel, packets of 1500 bytes come too",
            "ok 7 ways more: were not probed, for there are so many",
        ]
    );
    let found = found(&facts);
    assert_eq!(
        found[0].mend,
        [
            "ssh 10.1.0.14 spillway doctor  # it says what is missing",
            "ssh 10.1.0.14 'ip address add 203.0.113.1/32 dev lo; ip address add 203.0.113.2/32 dev lo'",
        ]
    );
    let receiver = "ssh 10.1.0.14 setsid -f spillwayd receiver --interface INTERFACE --allow-source 10.0.0.2 \
                    --vip 203.0.113.1,203.0.113.2  # where none runs";
    assert_eq!(found[0].or.as_deref(), Some(receiver));
    assert!(found[0].why.contains("does not let this balancer (10.0.0.2) in"), "{found:#?}");
    assert_eq!(
        found[1].mend,
        [
            "ssh 10.1.0.12 spillway doctor  # and so on the others; it says what is missing",
            "ssh 10.1.0.12 ip address add 203.0.113.2/32 dev lo  # and so on the others",
        ]
    );
}

/// The host of the first backend shows no sign of itself.
fn away(facts: &mut Facts, idle: Option<Idle>) {
    told(facts).served[0].backends[0].idle = idle;
    set(facts, Outcome::Silent { is_there: false, by_tcp: true });
}

/// It is said twice: of the service, and of the way.
#[test]
fn a_host_that_is_away_is_no_more_in_order_than_its_service() {
    let mut facts = balancer();
    away(&mut facts, Some(Idle::Unreachable("check web: the host is silent".into())));
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    let said: Vec<_> = wrong.iter().map(|f| (f.check, f.level, f.subject.as_str())).collect();
    assert_eq!(said, [("services", Warning, "web"), ("tunnels", Warning, "10.1.0.11")]);
    assert_eq!(wrong[1].mend, [PING]);
    let two = Idle::Unreachable("check web: the host is silent".into());
    told(&mut facts).served[0].backends[1].idle = Some(two);
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level == Problem).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].found, "none of 2 backends is up");
}

#[test]
fn what_cannot_be_told_is_said_in_words() {
    let of = |outcome| {
        let mut facts = balancer();
        set(&mut facts, outcome);
        lines(&facts)
    };
    let own = "203.0.113.1 is an address of this host";
    assert_eq!(
        of(Outcome::Barred(own.into())),
        [format!("ok 203.0.113.1: 10.1.0.11 cannot be probed for it: {own}")]
    );
    assert_eq!(
        of(Outcome::Unsized("echo requests are not answered".into())),
        [
            "ok 10.1.0.11: VIPs answer through the tunnel; whether large packets do is not known: echo requests \
          are not answered"
        ]
    );
    let unheard = |filter, route, why: &str| {
        let mut facts = balancer();
        unheard(&mut facts, filter, route);
        let filter =
            format!("its reverse path filter (rp_filter={filter} on eth0) asks for a route");
        let why = format!("this host takes no answer from it: {filter} to the VIP{why}");
        assert_eq!(
            lines(&facts),
            [format!("ok 203.0.113.1: 10.1.0.11 cannot be probed for it: {why}")]
        );
    };
    let blackhole = Err(Unresolved::Refused("blackhole"));
    unheard(2, blackhole, ", and finds no route: blackhole");
    unheard(1, elsewhere(), " there, and it leaves by lo");
    let mut facts = balancer();
    facts.tunnels = Some(Tunnels::Untried("x: is viewer, and the call takes operator".into()));
    assert_eq!(
        lines(&facts),
        ["ok backends: were not probed: x: is viewer, and the call takes operator"]
    );
}

#[test]
fn without_a_tunnel_none_is_spoken_of() {
    let of = |outcome| {
        let mut facts = balancer();
        direct(&mut facts, outcome);
        for finding in found(&facts) {
            let words = format!("{finding:?}").replace("\"tunnels\"", "");
            assert!(!words.contains("tunnel"), "{words}");
        }
        lines(&facts)
    };
    assert_eq!(
        of(SILENT),
        ["problem 203.0.113.1: no answer from 10.1.0.11, though the host is there"]
    );
    let fit = "packets of 1500 bytes do not get there, small ones do (the way takes 1380)";
    assert_eq!(of(NARROW), [format!("warning 10.1.0.11: {fit}")]);
    assert_eq!(of(Outcome::Well), ["ok 1 backend: VIPs answer, packets of 1500 bytes come too"]);
    let unsized_ = "ok 10.1.0.11: VIPs answer; whether large packets do is not known: x";
    assert_eq!(of(Outcome::Unsized("x".into())), [unsized_]);
    assert_eq!(
        of(Outcome::Silent { is_there: false, by_tcp: true }),
        ["problem 10.1.0.11: no sign of the host, though it is given new connections"]
    );
    let mut facts = balancer();
    said(&mut facts, 1380);
    direct(&mut facts, NARROW);
    let said = "ok 1 backend: small packets get there; what fits is said under `mtu`";
    assert_eq!(lines(&facts), [said]);
}

/// The receiver lets in the balancer's address of the tunnel's version, and has to know GUE's port.
#[test]
fn a_receiver_is_started_for_its_tunnels() {
    let mut facts = balancer();
    facts.balancer.as_mut().unwrap().sources.insert(ip("fd00::2"));
    let v4 = Way { overhead: 32, ..way(&mut facts, "10.1.0.11", "203.0.113.1", SILENT) };
    let v6 = Way { overhead: 40, ..way(&mut facts, "fd00:1::11", "203.0.113.1", SILENT) };
    // IP in IP comes out of its tunnels there, and GUE does not.
    let ip_in_ip = way(&mut facts, "10.1.0.11", "203.0.113.2", Outcome::Well);
    *ways(&mut facts) = vec![v4, v6, ip_in_ip];
    let mut commands: Vec<_> = found(&facts).into_iter().filter_map(|found| found.or).collect();
    commands.sort();
    let start = "setsid -f spillwayd receiver --interface INTERFACE --allow-source";
    assert_eq!(
        commands,
        [
            format!(
                "ssh 10.1.0.11 {start} 10.0.0.2 --vip 203.0.113.1 --gue-port PORT  # where none runs; the \
                     pool's port, or 6080"
            ),
            format!("ssh fd00:1::11 {start} fd00::2 --vip 203.0.113.1  # where none runs"),
        ]
    );
}
