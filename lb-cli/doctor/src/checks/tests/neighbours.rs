use lb_net::{Unresolved, survey::Device};
use spillway_proto::v1::ConditionReason;

use super::{
    RESTART, Row,
    fixture::{ETH0, balancer, configuration, device, eth0, ip, silent},
    run_all,
};
use crate::{
    facts::{Condition, DaemonState, Facts, IdleReason},
    finding::Level::{Ok, Problem},
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| away(f, Unresolved::NoRoute),
        "neighbours",
        Problem,
        "10.1.0.11",
        "ip route replace 10.1.0.11/32 via GATEWAY",
    ),
    (
        balancer,
        |f| away(f, Unresolved::Own(ip("10.1.0.11"))),
        "neighbours",
        Problem,
        "10.1.0.11",
        "spillway backend delete 10.1.0.11",
    ),
    (
        balancer,
        silent,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip neighbour flush to 10.0.0.1 dev eth0; ping -c 3 -I eth0 10.0.0.1",
    ),
    // The kernel still has its MAC, and so has the packet path, but the neighbour does not answer.
    (
        balancer,
        |f| {
            f.network.survey.neighbours[0].confirmed = false;
            f.network.answered = [(ip("10.0.0.1"), false)].into();
        },
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip neighbour flush to 10.0.0.1 dev eth0; ping -c 3 -I eth0 10.0.0.1",
    ),
    (balancer, |f| f.network.answered = [(ip("10.0.0.1"), true)].into(), "neighbours", Ok, "", ""),
    (balancer, noarp, "neighbours", Problem, "10.0.0.1 on eth0", "ip link set dev eth0 arp on"),
    (
        balancer,
        |f| eth0(f).interface.up = false,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip link set dev eth0 up",
    ),
    (
        balancer,
        |f| f.balancer.as_mut().unwrap().backends[0].direct = true,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "spillway pool update POOL --encapsulation ip_in_ip  # or, if 10.1.0.11 is on the link: \
         ip route replace 10.1.0.11/32 dev eth0",
    ),
    (balancer, moved, "neighbours", Problem, "10.0.0.1 on eth0", RESTART),
    // The daemon knows why, but of no backend of a service.
    (
        balancer,
        |f| f.balancer.as_mut().unwrap().backends[0].hop = None,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "spillway status  # why 10.1.0.11 has no next hop",
    ),
    // A route that went with its interface is not the thing to mend.
    (balancer, |f| cut(f, false), "neighbours", Problem, "eth0", "ip link set dev eth0 up"),
    (
        balancer,
        |f| cut(f, true),
        "neighbours",
        Problem,
        "eth0",
        "ip link set dev eth0 up  # and check the cable",
    ),
    (balancer, vlan_down, "neighbours", Problem, "eth0.5", "ip link set dev eth0.5 up"),
    // Unused interfaces are mostly down.
    (
        balancer,
        |f| {
            away(f, Unresolved::NoRoute);
            let mut unused = device(9, "eth9", 1500);
            unused.interface.up = false;
            f.network.survey.devices.push(unused);
        },
        "neighbours",
        Problem,
        "10.1.0.11",
        "ip route replace 10.1.0.11/32 via GATEWAY",
    ),
];

/// The interface is down, or has no carrier, and the kernel dropped the route.
fn cut(facts: &mut Facts, up: bool) {
    away(facts, Unresolved::NoRoute);
    let interface = &mut eth0(facts).interface;
    (interface.up, interface.carrier) = (up, false);
}

fn vlan_down(facts: &mut Facts) {
    away(facts, Unresolved::NoRoute);
    let mut vlan =
        Device { kind: Some("vlan".into()), lower: Some(ETH0), ..device(3, "eth0.5", 1540) };
    vlan.interface.up = false;
    facts.network.survey.devices.push(vlan);
}

/// Both IP versions have their own sources.
#[test]
fn a_next_hop_that_lacks_a_source_is_not_another_mac_address() {
    let why =
        "no source address for the tunnel: this host has no IPv4 address that is not a service's";
    for (version, mend) in [
        ("IPv4", "ip address add ADDRESS/BITS dev eth0"),
        ("IPv6", "spillway status  # why 10.1.0.11 has no next hop"),
    ] {
        let mut facts = balancer();
        facts.balancer.as_mut().unwrap().backends[0].hop = None;
        configuration(&mut facts).served[0].backends[0].idle =
            Some(IdleReason::NoNextHop(why.into()));
        let Some(DaemonState::Answers { conditions, .. }) = &mut facts.daemon else {
            panic!("it answers")
        };
        conditions.push(Condition {
            reason: ConditionReason::SourceAddress,
            subject: format!("{version} source address"),
            cause: "missing".into(),
        });
        let findings = run_all(&facts);
        let found = findings.iter().find(|it| it.check == "neighbours").unwrap();
        assert_eq!((found.level, &*found.subject), (Problem, "10.0.0.1 on eth0"));
        assert_eq!(
            found.found,
            format!("the packet path has no next hop: {why} (1 backend behind it)")
        );
        assert_eq!(found.mend, [mend]);
    }
}

#[test]
fn without_a_daemon_its_start_mends_a_missing_next_hop() {
    let mut facts = balancer();
    facts.balancer.as_mut().unwrap().backends[0].hop = None;
    facts.daemon = Some(DaemonState::Silent("no answer".into()));
    let findings = run_all(&facts);
    let found = findings.iter().find(|it| it.check == "neighbours").unwrap();
    assert_eq!(found.found, "the packet path has no next hop (1 backend behind it)");
    assert_eq!(found.mend, [RESTART]);
}

fn away(facts: &mut Facts, why: Unresolved) {
    facts.network.survey.routes.insert(ip("10.1.0.11"), Err(why));
}

fn noarp(facts: &mut Facts) {
    facts.balancer.as_mut().unwrap().backends[0].hop = None;
    facts.network.survey.neighbours.clear();
    eth0(facts).interface.noarp = true;
}

/// The gateway has another MAC address than in the packet path.
fn moved(facts: &mut Facts) {
    facts.network.survey.neighbours[0].mac = Some([2, 0, 0, 0, 0, 9]);
}
