use lb_model::Ipv4Prefix;
use lb_net::Unresolved;

use super::{
    Row,
    fixture::{self, balancer, ip, route},
    run_all,
};
use crate::{
    facts::{Facts, VipProbe, VipProbeResult, VipProbes},
    finding::Level::{Ok, Problem, Warning},
};

const ADD: &str = "ip route add local 10.64.0.0/24 dev lo";

pub(super) const ROWS: &[Row] = &[
    (with_prefix, |_| {}, "nothing", Ok, "", ""),
    (
        with_prefix,
        |f| drop(f.network.survey.routes.insert(ip("10.64.0.255"), route("10.0.0.1"))),
        "source_prefix",
        Warning,
        "10.64.0.0/24",
        ADD,
    ),
    (
        with_prefix,
        |f| drop(f.network.survey.routes.insert(ip("10.64.0.0"), Err(Unresolved::NoRoute))),
        "source_prefix",
        Warning,
        "10.64.0.0/24",
        ADD,
    ),
    // Whether anything arrives there tells the receiver's list from the path.
    (
        with_prefix,
        |f| {
            *probe(f) = VipProbe {
                result: VipProbeResult::Silent { is_host_up: true, by_tcp: true },
                ..probe(f).clone()
            }
        },
        "tunnels",
        Problem,
        "203.0.113.1",
        "ssh 10.1.0.11 tcpdump -nc 3 src net 10.64.0.0/24  # nothing arrives: the path drops it",
    ),
];

/// A balancer whose prefix is local.
fn with_prefix() -> Facts {
    let mut facts = balancer();
    set(&mut facts, [10, 64, 0, 0], 24);
    own(&mut facts, &["10.64.0.0", "10.64.0.255"]);
    facts
}

pub(super) fn set(facts: &mut Facts, first: [u8; 4], bits: u8) {
    let balancer = facts.balancer.as_mut().unwrap();
    balancer.source_prefix = Ipv4Prefix::new(first.into(), bits);
    balancer.backends[0].source = Some(first.into());
}

pub(super) fn own(facts: &mut Facts, addresses: &[&str]) {
    for address in addresses.iter().map(|address| ip(address)) {
        facts.network.survey.routes.insert(address, Err(Unresolved::Own(address)));
    }
}

fn probe(facts: &mut Facts) -> &mut VipProbe {
    let Some(VipProbes::Done { probes, .. }) = &mut facts.vip_probes else { panic!("they ran") };
    &mut probes[0]
}

/// What the check says besides: `is local to this host` and the like.
fn said(facts: &Facts) -> Vec<String> {
    let found = run_all(facts).into_iter().filter(|found| found.check == "source_prefix");
    found.map(|found| format!("{}: {} {}", found.subject, found.found, found.why)).collect()
}

#[test]
fn packets_of_the_prefix_that_arrive_are_told() {
    let mut facts = with_prefix();
    assert_eq!(
        said(&facts),
        [
            "10.64.0.0/24: is local to this host ",
            "10.64.0.0/24: no reverse path filter drops its packets on the way to 1 backend ",
        ]
    );
    facts.vip_probes = None;
    assert_eq!(said(&facts).len(), 1, "nothing is known of the path");
    assert_eq!(said(&balancer()), [""; 0], "no prefix, no check");
}

/// A host that forwards sends errors back to the router, others drop them.
#[test]
fn errors_loop_on_a_host_that_forwards() {
    let mut facts = with_prefix();
    facts.network.survey.routes.insert(ip("10.64.0.0"), route("10.0.0.1"));
    assert!(said(&facts)[0].contains("drops them"), "{:?}", said(&facts));
    fixture::set(&mut facts, "net.ipv4.ip_forward", 1);
    assert!(said(&facts)[0].contains("loop until"), "{:?}", said(&facts));
}

/// Receivers have to allow the prefix, not one address.
#[test]
fn a_backend_that_does_not_answer_is_told_the_prefix() {
    let mut facts = with_prefix();
    probe(&mut facts).result = VipProbeResult::Silent { is_host_up: true, by_tcp: true };
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|found| found.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert!(wrong[0].why.contains("does not allow this balancer (10.64.0.0/24)"), "{wrong:#?}");
    assert!(wrong[0].why.contains("(uRPF) has no route for it to this host"), "{wrong:#?}");
    let or = wrong[0].or.as_deref().unwrap_or_default();
    assert!(or.contains("--allow-source 10.64.0.0/24 "), "{or}");
}
