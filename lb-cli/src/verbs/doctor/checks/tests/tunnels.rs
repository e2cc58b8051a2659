use lb_daemon::net::Unresolved;

use super::{
    Row, judge,
    scene::{balancer, eth0, ip},
};
use crate::verbs::doctor::{
    facts::{Backend, Daemon, Facts, Outcome, Tunnels, Way},
    finding::{
        Finding,
        Level::{Ok, Problem, Warning},
    },
};

const SILENT: Outcome = Outcome::Silent { is_there: true, by_tcp: true };
const NARROW: Outcome = Outcome::Narrow { fits: Some(1_380) };
const DOCTOR: &str = "spillway doctor  # on 10.1.0.11: it says what is missing";

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
        // Without a tunnel there is no receiver.
        |f| *ways(f) = vec![Way { overhead: 0, ..way(f, "10.1.0.11", "203.0.113.1", SILENT) }],
        "tunnels",
        Problem,
        "203.0.113.1",
        "ip address add 203.0.113.1/32 dev lo  # on 10.1.0.11",
    ),
    (
        balancer,
        |f| set(f, NARROW),
        "tunnels",
        Problem,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu 1400",
    ),
    (
        balancer,
        |f| set(f, Outcome::Narrow { fits: None }),
        "tunnels",
        Problem,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu BYTES",
    ),
    // Less than anybody can say that a way takes.
    (
        balancer,
        |f| set(f, Outcome::Narrow { fits: Some(1_000) }),
        "tunnels",
        Problem,
        "10.1.0.11",
        "spillway backend update 10.1.0.11 --mtu BYTES",
    ),
    // Of hosts that are away health checks tell, and what cannot be told is no fault.
    (
        balancer,
        |f| set(f, Outcome::Silent { is_there: false, by_tcp: true }),
        "nothing",
        Ok,
        "",
        "",
    ),
    (balancer, |f| set(f, Outcome::Barred("it is our own".into())), "nothing", Ok, "", ""),
    (balancer, |f| set(f, Outcome::Unsized("no echo".into())), "nothing", Ok, "", ""),
    (balancer, |f| f.tunnels = Some(Tunnels::Untried("no".into())), "nothing", Ok, "", ""),
    (balancer, |f| f.tunnels = None, "nothing", Ok, "", ""),
    (balancer, said, "nothing", Ok, "", ""),
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

/// Somebody has said what the way takes.
fn said(facts: &mut Facts) {
    set(facts, NARROW);
    facts.balancer.as_mut().unwrap().backends[0].mtu = 1400;
    let Some(Daemon::Answers { told, .. }) = &mut facts.daemon else { panic!("it answers") };
    told.sized.insert(ip("10.1.0.11"));
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
    set(&mut facts, NARROW);
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!((wrong[0].check, wrong[0].subject.as_str()), ("mtu", "eth0"));
    let said = "ok 1 backend: small packets come through the tunnel; what fits is said under `mtu`";
    assert_eq!(lines(&facts), [said]);
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
            "problem 10.1.0.16: packets of 1500 bytes do not come through the tunnel, small ones do (the way takes \
             1320 with the tunnel)",
            "ok 10.1.0.15: no sign of the host, in the tunnel or outside; `spillway status` says since when",
            "ok 1 backend: VIPs answer through the tunnel, packets of 1500 bytes come too",
            "ok 7 ways more: were not probed, for there are so many",
        ]
    );
    let found = found(&facts);
    assert_eq!(
        found[0].mend,
        [
            "spillway doctor  # on 10.1.0.14: it says what is missing",
            "ip address add 203.0.113.1/32 dev lo; ip address add 203.0.113.2/32 dev lo  # on 10.1.0.14",
        ]
    );
    let receiver = "setsid -f spillwayd receiver --interface INTERFACE --allow-source 10.0.0.2 --vip \
                    203.0.113.1,203.0.113.2  # on 10.1.0.14, where none runs";
    assert_eq!(found[0].or.as_deref(), Some(receiver));
    assert!(found[0].why.contains("does not let this balancer (10.0.0.2) in"), "{found:#?}");
    assert_eq!(
        found[1].mend,
        [
            "spillway doctor  # on 10.1.0.12, and so on the others: it says what is missing",
            "ip address add 203.0.113.2/32 dev lo  # on 10.1.0.12, and so on the others",
        ]
    );
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
    let mut facts = balancer();
    set(&mut facts, SILENT);
    let nowhere = Err(Unresolved::Refused("blackhole"));
    facts.network.survey.ways.insert(ip("203.0.113.1"), nowhere);
    let why = "this host takes no answer from it: no route: blackhole";
    assert_eq!(
        lines(&facts),
        [format!("ok 203.0.113.1: 10.1.0.11 cannot be probed for it: {why}")]
    );
    let mut facts = balancer();
    facts.tunnels = Some(Tunnels::Untried("x: is viewer, and the call takes operator".into()));
    assert_eq!(
        lines(&facts),
        ["ok backends: were not probed: x: is viewer, and the call takes operator"]
    );
}
