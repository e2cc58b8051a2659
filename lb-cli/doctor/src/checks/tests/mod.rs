//! Tables of faults: how a host that is in order changes, and what the checks find. One table per check.

mod daemon;
mod drops;
mod fixture;
mod host;
mod interfaces;
mod mtu;
mod neighbours;
mod pins;
mod receiver;
mod services;
mod source_prefix;
mod tunnels;
mod vips;

use std::net::IpAddr;

use fixture::{backend, balancer, route, silent};
use lb_maps::Component;

use super::run_all;
use crate::{
    facts::{DaemonState, Facts, MapsProblem, MapsProblemKind, PinnedBackend, Unit},
    finding::{Level, Level::Ok},
};

/// A host that is in order, a change of it, and the expected finding: check, level, subject and first command.
type Row = (fn() -> Facts, fn(&mut Facts), &'static str, Level, &'static str, &'static str);

/// The command that restarts the daemon of the fixture.
const RESTART: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer";

const TUNNEL_SOURCES: &[Row] = &[
    (
        balancer,
        |f| f.balancer.as_mut().unwrap().backends[0].source = Some([10, 0, 0, 9].into()),
        "tunnel_sources",
        Level::Warning,
        "10.0.0.9",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --source OWN_ADDRESS",
    ),
    // No interface has it, but a local route.
    (
        balancer,
        |f| {
            f.balancer.as_mut().unwrap().backends[0].source = Some([10, 64, 0, 9].into());
            source_prefix::own(f, &["10.64.0.9"]);
        },
        "tunnel_sources",
        Ok,
        "10.64.0.9",
        "",
    ),
];

const TABLES: &[&[Row]] = &[
    services::ROWS,
    host::KERNEL,
    host::CAPABILITIES,
    pins::ROWS,
    daemon::ROWS,
    interfaces::MODE,
    interfaces::OFFLOADS,
    vips::ROUTES,
    source_prefix::ROWS,
    TUNNEL_SOURCES,
    neighbours::ROWS,
    mtu::BALANCER,
    drops::ROWS,
    tunnels::ROWS,
    host::FORWARDING,
    receiver::ALLOW_LISTS,
    receiver::ENDPOINTS,
    vips::SERVED,
    receiver::ARP,
    receiver::RP_FILTER,
    mtu::BACKEND,
];

#[test]
fn a_host_that_is_in_order_has_no_finding() {
    for facts in [balancer(), backend()] {
        let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
        assert_eq!(wrong, []);
    }
}

/// Each fault is found once, and nothing else.
#[test]
fn each_fault_is_found_and_no_other() {
    for (facts, change, check, level, subject, mend) in TABLES.iter().copied().flatten() {
        let mut facts = facts();
        change(&mut facts);
        let mut wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
        if matches!(facts.daemon, Some(DaemonState::Silent(_))) {
            services::remove_unknown_services(&mut wrong);
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

/// What cannot be read is not judged: commands to fix it would break what is in order.
#[test]
fn missing_capabilities_are_the_only_finding() {
    let mut facts = balancer();
    facts.host.capabilities = 0;
    (facts.daemon, facts.components[0].links[0].mode) =
        (Some(DaemonState::Silent("denied".into())), None);
    facts.components[0].maps_problem =
        Some(MapsProblem { kind: MapsProblemKind::Denied, why: "/p: permission denied".into() });
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].mend, ["sudo spillway doctor"]);
}

#[test]
fn missing_pins_are_the_only_finding() {
    let mut facts = balancer();
    (facts.components, facts.balancer, facts.daemon) = (Vec::new(), None, None);
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].mend[0], "setsid -f spillwayd balancer --interface INTERFACE");
    assert_eq!(wrong[0].mend.len(), 1);
    assert_eq!(
        wrong[0].or.as_deref(),
        Some(
            "setsid -f spillwayd receiver --interface INTERFACE --allow-source BALANCER_ADDRESS --vip VIP"
        )
    );

    // After installing the package.
    facts.units = Component::ALL
        .map(|component| Unit {
            component,
            name: format!("spillway-{component}"),
            settings: Some(format!("/etc/spillway/{component}.toml").into()),
            failed: None,
        })
        .into();
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    let begin = |component: &str| {
        format!(
            "systemctl enable --now spillway-{component}  # after filling in /etc/spillway/{component}.toml"
        )
    };
    assert_eq!(wrong[0].mend, [begin("balancer")]);
    assert_eq!(wrong[0].or, Some(begin("receiver")));
}

#[test]
fn the_last_error_of_a_unit_is_the_reason() {
    let mut facts = balancer();
    (facts.components[0].owner, facts.daemon) =
        (None, Some(DaemonState::Silent("no answer".into())));
    facts.units = vec![Unit {
        component: Component::Balancer,
        name: "spillway-balancer".into(),
        settings: None,
        failed: Some("eth7: no such interface (name one with --interface)".into()),
    }];
    let mut wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    services::remove_unknown_services(&mut wrong);
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    let start =
        "spillway-balancer failed: eth7: no such interface (name one with --interface); packets";
    assert!(wrong[0].why.starts_with(start), "{wrong:#?}");
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
        backends.push(PinnedBackend { address, ..one.clone() });
        facts.network.survey.routes.insert(address, route("10.0.0.1"));
    }
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].found, "does not answer (1000 backends behind it)");
}

/// The alternative command has the MTU of the path.
#[test]
fn the_mtu_of_a_path_may_be_configured_instead() {
    let or = |mut facts: Facts| {
        facts.network.survey.devices[1].interface.mtu = 1500;
        let wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
        assert!(wrong[0].why.contains("would be lost silently"), "{wrong:#?}");
        wrong[0].or.clone().unwrap_or_default()
    };
    let expected = "spillway backend update 10.1.0.11 --mtu 1500  # or: the MTU of the path";
    assert_eq!(or(balancer()), expected);
    assert!(or(backend()).starts_with("spillway backend update ADDRESS --mtu 1500  # or, on the"));
}
