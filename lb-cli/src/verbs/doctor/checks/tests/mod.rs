//! Judgements by tables: how a host that is in order changes, and what is found then. One table a check.

mod allow_lists;
mod arp;
mod capabilities;
mod daemon;
mod endpoints;
mod forwarding;
mod kernel;
mod mode;
mod mtu;
mod neighbours;
mod offloads;
mod pins;
mod return_path;
mod rp_filter;
mod scene;
mod served_vips;
mod services;
mod tunnels;
mod vip_routes;

use std::net::IpAddr;

use lb_daemon::dataplane::Role;

use super::judge;
use crate::verbs::doctor::{
    facts::{Backend, Broken, Daemon, Facts, Kind, Unit},
    finding::Level::{self, Ok},
};
use scene::{backend, balancer, silent, way};

/// A host that is in order, what happens to it, and what is found then: check, level, subject, and the
/// first command that mends it.
type Row = (fn() -> Facts, fn(&mut Facts), &'static str, Level, &'static str, &'static str);

/// What starts the daemon of the scene anew.
const RESTART: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer";

const TABLES: &[&[Row]] = &[
    services::ROWS,
    kernel::ROWS,
    capabilities::ROWS,
    pins::ROWS,
    daemon::ROWS,
    mode::ROWS,
    offloads::ROWS,
    vip_routes::ROWS,
    neighbours::ROWS,
    mtu::ROWS,
    tunnels::ROWS,
    forwarding::ROWS,
    allow_lists::ROWS,
    endpoints::ROWS,
    served_vips::ROWS,
    arp::ROWS,
    rp_filter::ROWS,
    return_path::ROWS,
];

#[test]
fn a_host_that_is_in_order_has_no_finding() {
    for facts in [balancer(), backend()] {
        let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
        assert_eq!(wrong, []);
    }
}

/// Each thing that can be wrong is found once, and nothing else with it.
#[test]
fn each_fault_is_found_and_no_other() {
    for (facts, change, check, level, subject, mend) in TABLES.iter().copied().flatten() {
        let mut facts = facts();
        change(&mut facts);
        let mut wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
        if matches!(facts.daemon, Some(Daemon::Silent(_))) {
            services::take_unjudged(&mut wrong);
        }
        if *level == Ok {
            assert_eq!(wrong, []);
            continue;
        }
        assert_eq!(wrong.len(), 1, "{check} {subject}: {wrong:#?}");
        let found = (wrong[0].check, wrong[0].level, wrong[0].subject.as_str());
        assert_eq!(found, (*check, *level, *subject));
        let first = wrong[0].mend.first().map(String::as_str).unwrap_or_default();
        assert_eq!(first, *mend, "{check} {subject}");
        assert!(!wrong[0].why.is_empty(), "{check} {subject}: why?");
    }
}

/// What cannot be read is not judged: the command that mends it would break what is in order.
#[test]
fn without_rights_nothing_is_found_but_that() {
    let mut facts = balancer();
    facts.host.capabilities = 0;
    (facts.daemon, facts.roles[0].links[0].mode) = (Some(Daemon::Silent("denied".into())), None);
    facts.roles[0].broken =
        Some(Broken { kind: Kind::Denied, why: "/p: permission denied".into() });
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].mend, ["sudo spillway doctor"]);
}

#[test]
fn where_no_program_is_pinned_that_is_the_finding() {
    let mut facts = balancer();
    (facts.roles, facts.balancer, facts.daemon) = (Vec::new(), None, None);
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].mend[0], "setsid -f spillwayd balancer --interface INTERFACE");
    assert_eq!(wrong[0].mend.len(), 1);
    assert_eq!(
        wrong[0].or.as_deref(),
        Some(
            "setsid -f spillwayd receiver --interface INTERFACE --allow-source BALANCER_ADDRESS --vip VIP"
        )
    );

    // As the package leaves a host.
    facts.units = Role::ALL
        .map(|role| Unit {
            role,
            name: format!("spillway-{role}"),
            settings: Some(format!("/etc/spillway/{role}.toml").into()),
            failed: None,
        })
        .into();
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    let begin = |role: &str| {
        format!(
            "systemctl enable --now spillway-{role}  # once /etc/spillway/{role}.toml is filled in"
        )
    };
    assert_eq!(wrong[0].mend, [begin("balancer")]);
    assert_eq!(wrong[0].or, Some(begin("receiver")));
}

/// A unit that does not come up says why, as its daemon said it.
#[test]
fn what_a_unit_said_last_is_the_reason() {
    let mut facts = balancer();
    (facts.roles[0].holder, facts.daemon) = (None, Some(Daemon::Silent("nobody".into())));
    facts.units = vec![Unit {
        role: Role::Balancer,
        name: "spillway-balancer".into(),
        settings: None,
        failed: Some("eth7: no such interface (name one with --interface)".into()),
    }];
    let mut wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    services::take_unjudged(&mut wrong);
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    let said =
        "spillway-balancer ended: eth7: no such interface (name one with --interface); packets";
    assert!(wrong[0].why.starts_with(said), "{wrong:#?}");
    assert_eq!(wrong[0].mend, ["systemctl start spillway-balancer"]);
}

/// Backends behind one gateway are one finding.
#[test]
fn a_thousand_backends_behind_one_gateway_are_one_finding() {
    let mut facts = balancer();
    silent(&mut facts);
    let backends = &mut facts.balancer.as_mut().unwrap().backends;
    let one = backends[0].clone();
    for number in 0..999_u32 {
        let address = IpAddr::from((0x0a02_0000 + number).to_be_bytes());
        backends.push(Backend { address, ..one.clone() });
        facts.network.survey.ways.insert(address, way("10.0.0.1"));
    }
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].found, "does not answer (1000 backends behind it)");
}

/// Where the way takes less, what to do instead is said with its number.
#[test]
fn a_narrow_way_may_be_said_instead() {
    let or = |mut facts: Facts| {
        facts.network.survey.devices[1].interface.mtu = 1500;
        let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
        assert!(wrong[0].why.contains("vanishes without a word"), "{wrong:#?}");
        wrong[0].or.clone().unwrap_or_default()
    };
    let said = "spillway backend update 10.1.0.11 --mtu 1500  # else: what the path takes";
    assert_eq!(or(balancer()), said);
    assert!(
        or(backend()).starts_with("spillway backend update ADDRESS --mtu 1500  # else, on the")
    );
}
