use std::{collections::BTreeSet, net::Ipv4Addr, time::Duration};

use super::*;
use crate::tunnel::VipTunnel;
use lb_model::{CheckKind, Encapsulation, HealthCheck, Via};

fn check(port: u16) -> HealthCheck {
    HealthCheck {
        kind: CheckKind::Tcp,
        tls: None,
        via: Via::Address,
        port,
        interval: Duration::from_secs(1),
        fast_interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        rise: 2,
        fall: 3,
        jitter_percent: 0,
        host_probe: lb_model::HostProbe::Auto,
        host_probe_port: HealthCheck::DEFAULT_HOST_PROBE_PORT,
    }
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

/// `pool` has the backend with that last byte, checked on these ports; a check is named by its port.
fn target(pool: &str, last: u8, ports: &[u16]) -> Target {
    let name = |port: &u16| Name::new(&format!("on-{port}")).unwrap();
    Target {
        pool: Name::new(pool).unwrap(),
        address: address(last),
        checks: ports.iter().map(|port| (name(port), check(*port))).collect(),
        vips: BTreeSet::new(),
        encapsulation: Encapsulation::IpInIp,
        urgent: false,
        is_up: false,
    }
}

fn probed(last: u8, port: u16) -> ProbeKey {
    ProbeKey { address: address(last), check: check(port), tunnel: None }
}

/// `web .1 up: reason`, with `first` where it is; a silent host's is `gone`.
fn lines(changes: Vec<HealthChange>) -> Vec<String> {
    let line = |change: HealthChange| {
        let state = match change.health {
            Health::Passing => "up",
            Health::Failing => "down",
            Health::Silent => "gone",
        };
        let first = if change.first { " first" } else { "" };
        format!("{} {}{first} {state}: {}", change.pool, change.address, change.reason.text)
    };
    changes.into_iter().map(line).collect()
}

fn judgement(health: Health, why: &str) -> Judgement {
    Judgement {
        health,
        undecided: None,
        why: why.to_owned(),
        silent: false,
        report: AgentReport::default(),
    }
}

fn passes() -> Judgement {
    judgement(Health::Passing, "")
}

fn failed(why: &str) -> Judgement {
    judgement(Health::Failing, why)
}

fn silent() -> Judgement {
    judgement(Health::Silent, "silent")
}

/// Takes targets, and gives what is to start, to stop and to be told.
fn configure(
    registry: &mut TargetRegistry,
    targets: &[Target],
) -> (Vec<ProbeKey>, Vec<ProbeKey>, Vec<String>) {
    let configured = registry.configure(targets);
    let start = configured.start.iter().map(|start| (*start.probed).clone()).collect();
    let stop = configured.stop.iter().map(|probed| (**probed).clone()).collect();
    (start, stop, lines(registry.report_all(targets)))
}

#[test]
fn pools_share_a_probe_by_address_and_definition() {
    let mut registry = TargetRegistry::default();
    let targets = [
        target("a", 1, &[80]),
        target("b", 1, &[80]),
        target("c", 1, &[81]),
        target("d", 2, &[80]),
    ];
    let (start, ..) = configure(&mut registry, &targets);
    assert_eq!(start, [probed(1, 80), probed(1, 81), probed(2, 80)]);
    assert_eq!(
        lines(registry.record(&probed(1, 80), passes())),
        ["a 192.0.2.1 first up: all checks pass", "b 192.0.2.1 first up: all checks pass"]
    );
}

#[test]
fn one_failing_check_decides_and_health_waits_for_all() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("web", 1, &[80, 81])]);
    assert_eq!(lines(registry.record(&probed(1, 80), passes())), [""; 0]);
    assert_eq!(
        lines(registry.record(&probed(1, 81), failed("connection refused"))),
        ["web 192.0.2.1 first down: check on-81: connection refused"]
    );
    assert_eq!(
        lines(registry.record(&probed(1, 80), failed("no answer"))),
        ["web 192.0.2.1 down: check on-80: no answer"],
        "the first in the order given is named"
    );
    assert_eq!(lines(registry.record(&probed(1, 81), passes())), [""; 0]);
    assert_eq!(
        lines(registry.record(&probed(1, 80), passes())),
        ["web 192.0.2.1 up: all checks pass"]
    );
}

#[test]
fn a_target_without_checks_is_healthy_at_once() {
    let mut registry = TargetRegistry::default();
    let (.., told) = configure(&mut registry, &[target("web", 1, &[])]);
    assert_eq!(told, ["web 192.0.2.1 first up: no checks"]);
}

#[test]
fn what_stays_keeps_its_probe_and_what_was_told() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("a", 1, &[80]), target("a", 2, &[80])]);
    registry.record(&probed(1, 80), passes());
    registry.record(&probed(2, 80), passes());

    let (start, stop, told) =
        configure(&mut registry, &[target("a", 1, &[80]), target("b", 1, &[80])]);
    assert_eq!((start, stop), (Vec::new(), vec![probed(2, 80)]));
    assert_eq!(told, ["a 192.0.2.1 up: all checks pass", "b 192.0.2.1 first up: all checks pass"]);
    assert_eq!(lines(registry.record(&probed(2, 80), failed("late"))), [""; 0]);

    let (start, ..) = configure(&mut registry, &[target("a", 1, &[80]), target("a", 2, &[80])]);
    assert_eq!(start, [probed(2, 80)]);
    assert_eq!(
        lines(registry.record(&probed(2, 80), passes())),
        ["a 192.0.2.2 first up: all checks pass"]
    );
}

#[test]
fn another_definition_says_nothing_until_its_first_result() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("web", 1, &[80])]);
    registry.record(&probed(1, 80), passes());
    for (port, says, told) in [
        (81, passes(), vec!["web 192.0.2.1 up: all checks pass"]),
        (82, failed("refused"), vec!["web 192.0.2.1 down: check on-82: refused"]),
        (83, passes(), vec!["web 192.0.2.1 up: all checks pass"]),
    ] {
        let (.., told_again) = configure(&mut registry, &[target("web", 1, &[port])]);
        assert_eq!(told_again, [""; 0]);
        assert_eq!(lines(registry.record(&probed(1, port), says)), told, "port {port}");
    }
}

#[test]
fn a_target_that_came_back_unseen_is_told_again() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("web", 1, &[80])]);
    registry.record(&probed(1, 80), passes());
    // Between these two it was not there, but nobody looked.
    let (start, stop, told) = configure(&mut registry, &[target("web", 1, &[80])]);
    assert_eq!((start, stop), (Vec::new(), Vec::new()));
    assert_eq!(told, ["web 192.0.2.1 up: all checks pass"]);
    assert_eq!(lines(registry.record(&probed(1, 80), passes())), [""; 0]);
}

#[test]
fn dropping_the_failing_check_brings_a_target_up_at_once() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("web", 1, &[80, 81])]);
    registry.record(&probed(1, 80), passes());
    registry.record(&probed(1, 81), failed("refused"));
    let (.., told) = configure(&mut registry, &[target("web", 1, &[80])]);
    assert_eq!(told, ["web 192.0.2.1 up: all checks pass"]);
}

#[test]
fn a_host_is_silent_when_all_its_checks_say_so_and_no_sooner() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("web", 1, &[80, 81]), target("api", 1, &[80])]);
    registry.record(&probed(1, 80), passes());
    registry.record(&probed(1, 81), passes());
    assert_eq!(
        lines(registry.record(&probed(1, 80), silent())),
        ["web 192.0.2.1 down: check on-80: silent", "api 192.0.2.1 gone: check on-80: silent"],
        "the other check passes"
    );
    assert_eq!(lines(registry.record(&probed(1, 81), failed("refused"))), [""; 0]);
    assert_eq!(
        lines(registry.record(&probed(1, 81), silent())),
        ["web 192.0.2.1 gone: check on-80: silent"]
    );
    assert_eq!(
        lines(registry.record(&probed(1, 81), passes())),
        ["web 192.0.2.1 down: check on-80: silent"],
        "one that passes proves that it lives"
    );
}

#[test]
fn a_check_that_has_not_spoken_is_no_proof_of_death() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("web", 1, &[80, 81])]);
    assert_eq!(
        lines(registry.record(&probed(1, 81), silent())),
        ["web 192.0.2.1 first down: check on-81: silent"]
    );
    assert_eq!(
        lines(registry.record(&probed(1, 80), silent())),
        ["web 192.0.2.1 gone: check on-80: silent"]
    );
}

#[test]
fn an_agent_that_nothing_comes_of_does_not_speak_against_silence() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("a", 1, &[80, 90])]);
    let mute = Judgement { silent: true, ..passes() };
    registry.record(&probed(1, 80), silent());
    let changes = registry.record(&probed(1, 90), passes());
    assert!(changes.is_empty(), "the host lives by it: {changes:?}");
    let changes = registry.record(&probed(1, 90), mute);
    assert_eq!(lines(changes), ["a 192.0.2.1 gone: check on-80: silent"]);
}

#[test]
fn what_a_backend_says_is_told_of_all_its_checks_together() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("a", 1, &[80, 90])]);
    let report = |percent| AgentReport { percent: Some(percent), ..AgentReport::default() };
    let says = |percent| Judgement { report: report(percent), ..passes() };
    assert!(registry.record(&probed(1, 80), says(50)).is_empty(), "the other has not spoken");
    assert_eq!(registry.record(&probed(1, 90), passes())[0].report, report(50));
    assert!(registry.record(&probed(1, 90), says(60)).is_empty(), "the least counts");
    assert_eq!(registry.record(&probed(1, 90), says(20))[0].report, report(20));
}

#[test]
fn checks_that_fail_are_known_by_all_their_names() {
    let mut registry = TargetRegistry::default();
    let both = [target("a", 1, &[80, 81]), target("b", 1, &[80]), target("b", 2, &[80])];
    registry.configure(&both);
    let spell = |checks: Vec<Check>| {
        let spell = |(pool, address, check)| format!("{pool} {address} {check}");
        let mut spelt: Vec<_> = checks.into_iter().map(spell).collect();
        spelt.sort();
        spelt.dedup();
        spelt
    };
    assert!(registry.failing().next().is_none(), "nobody has spoken");
    registry.record(&probed(1, 80), failed("refused"));
    registry.record(&probed(1, 81), passes());
    registry.record(&probed(2, 80), passes());
    let failing = ["a 192.0.2.1 on-80", "b 192.0.2.1 on-80"];
    assert_eq!(spell(registry.failing().collect()), failing);
    let known = |registry: &TargetRegistry, port, is| {
        let probed = probed(1, port);
        let of = registry.checks_of(&probed).inspect(|(_, fails)| assert_eq!(*fails, is));
        spell(of.map(|(check, _)| check).collect())
    };
    assert_eq!(known(&registry, 80, true), failing);
    assert_eq!(known(&registry, 81, false), ["a 192.0.2.1 on-81"]);
    registry.configure(&both[1..]);
    assert_eq!(spell(registry.failing().collect()), [failing[1]]);
    registry.record(&probed(1, 80), silent());
    assert_eq!(spell(registry.failing().collect()), [failing[1]]);
    registry.record(&probed(1, 80), passes());
    assert!(registry.failing().next().is_none());
}

/// One of port 80 through the tunnel, to the VIPs with those last bytes.
fn tunnelled(vips: &[u8]) -> Target {
    let mut target = target("a", 1, &[80]);
    target.checks[0].1.via = Via::Tunnel;
    Target { vips: vips.iter().map(|last| address(*last)).collect(), ..target }
}

fn through(vip: u8) -> ProbeKey {
    let check = HealthCheck { via: Via::Tunnel, ..check(80) };
    let through = VipTunnel { vip: address(vip), encapsulation: Encapsulation::IpInIp };
    ProbeKey { address: address(1), check, tunnel: Some(through) }
}

#[test]
fn a_check_through_the_tunnel_passes_when_each_vip_does() {
    let mut registry = TargetRegistry::default();
    let (.., told) = configure(&mut registry, &[tunnelled(&[])]);
    assert_eq!(told, ["a 192.0.2.1 first up: no checks"]);
    let (started, _, told) = configure(&mut registry, &[tunnelled(&[101, 102])]);
    assert_eq!((started, told), (vec![through(101), through(102)], Vec::new()));
    assert_eq!(
        lines(registry.record(&through(101), passes())),
        [""; 0],
        "the other has not spoken"
    );
    let why = "a 192.0.2.1 down: check on-80 of 192.0.2.102: refused";
    assert_eq!(lines(registry.record(&through(102), failed("refused"))), [why]);
    // It fails for as long as one of its VIPs does.
    let fails = |registry: &TargetRegistry, vip| {
        let probed = through(vip);
        registry.checks_of(&probed).map(|(_, fails)| fails).collect::<Vec<_>>()
    };
    assert_eq!([fails(&registry, 101), fails(&registry, 102)], [[true], [true]]);
    assert_eq!(
        lines(registry.record(&through(102), passes())),
        ["a 192.0.2.1 up: all checks pass"]
    );
    assert_eq!([fails(&registry, 101), fails(&registry, 102)], [[false], [false]]);

    // A VIP more is a probe more, and the others go on.
    let (start, stop, _) = configure(&mut registry, &[tunnelled(&[101, 103])]);
    assert_eq!((start, stop), (vec![through(103)], vec![through(102)]));
}

/// A check with another interval than that of its port.
fn slower(port: u16) -> HealthCheck {
    HealthCheck { interval: Duration::from_secs(5), fall: 9, ..check(port) }
}

/// `target` with its checks replaced, each by its name.
fn with_checks(pool: &str, last: u8, checks: &[(&str, HealthCheck)]) -> Target {
    let name = |text: &str| Name::new(text).unwrap();
    let checks = checks.iter().map(|(text, check)| (name(text), check.clone())).collect();
    Target { checks, ..target(pool, last, &[]) }
}

#[test]
fn what_asks_the_same_goes_on_from_what_asked_before_and_all_else_begins_anew() {
    let slower_probe = |port| ProbeKey { check: slower(port), ..probed(1, port) };
    let before = [target("a", 1, &[80, 81]), target("b", 1, &[80])];
    let after = |targets: &[Target]| {
        let mut registry = TargetRegistry::default();
        registry.configure(&before);
        let start = registry.configure(targets).start;
        let of = |start: Start| ((*start.probed).clone(), start.after.map(|it| (*it).clone()));
        start.into_iter().map(of).collect::<Vec<_>>()
    };
    let same = [(slower_probe(80), Some(probed(1, 80)))];
    // The edit of one of two pools, of both, under another name, and of a pool that is new as well.
    assert_eq!(after(&[before[0].clone(), with_checks("b", 1, &[("on-80", slower(80))])]), same);
    let both = [("on-80", slower(80)), ("on-81", check(81))];
    let both = [with_checks("a", 1, &both), with_checks("b", 1, &both[..1])];
    assert_eq!(after(&both), same);
    assert_eq!(after(&[with_checks("b", 1, &[("other", slower(80))])]), same);
    let new = with_checks("c", 1, &[("on-80", slower(80))]);
    assert_eq!(after(&[new.clone(), with_checks("b", 1, &[("on-80", slower(80))])]), same);
    // Another port, another backend, and a pool that has asked nothing.
    let another = |last, port| {
        let probed = ProbeKey { check: slower(port), ..probed(last, port) };
        (with_checks("b", last, &[("on-80", slower(port))]), [(probed, None)])
    };
    for (target, expected) in [another(1, 82), another(2, 80)] {
        assert_eq!(after(&[target]), expected);
    }
    assert_eq!(after(&[new]), [(slower_probe(80), None)]);
    // Of two that ask the same, the one of the same name.
    let mut registry = TargetRegistry::default();
    let quick = HealthCheck { fall: 1, ..check(80) };
    registry.configure(&[with_checks("a", 1, &[("quick", quick.clone()), ("firm", check(80))])]);
    let start =
        registry.configure(&[with_checks("a", 1, &[("quick", quick), ("firm", slower(80))])]);
    assert_eq!(start.start[0].after.as_deref(), Some(&probed(1, 80)));
}

#[test]
fn only_a_target_that_waits_for_a_first_result_is_asked_at_once() {
    let urgent = |is| Target { urgent: is, ..target("a", 1, &[80]) };
    let of = |registry: &mut TargetRegistry, targets: &[Target]| {
        registry.configure(targets).start.iter().map(|start| start.urgent).collect::<Vec<_>>()
    };
    for is in [true, false] {
        assert_eq!(of(&mut TargetRegistry::default(), &[urgent(is)]), [is]);
    }
    // One of two pools that share the probe waits.
    let mut registry = TargetRegistry::default();
    assert_eq!(of(&mut registry, &[target("b", 1, &[80]), urgent(true)]), [true]);
    // It was asked already, if at other times.
    let edited = Target { urgent: true, ..with_checks("a", 1, &[("on-80", slower(80))]) };
    assert_eq!(of(&mut registry, &[edited]), [false]);
}

#[test]
fn what_is_carried_over_is_told_again_with_the_configuration() {
    let mut registry = TargetRegistry::default();
    let edited = with_checks("a", 1, &[("on-80", slower(80))]);
    registry.configure(&[target("a", 1, &[80])]);
    registry.record(&probed(1, 80), passes());
    let start = registry.configure(std::slice::from_ref(&edited)).start;
    // The probe's report of this did not come before the edit.
    registry.carry_over(&start[0].probed, failed("refused"));
    let told = registry.report_all(std::slice::from_ref(&edited));
    assert_eq!(lines(told), ["a 192.0.2.1 down: check on-80: refused"]);
    assert_eq!(lines(registry.record(&start[0].probed, failed("refused"))), [""; 0]);
}

#[test]
fn a_row_that_has_only_begun_is_told_as_such_and_fails_no_check() {
    let mut registry = TargetRegistry::default();
    registry.configure(&[target("a", 1, &[80, 81])]);
    let row = |failed| Some(Row { failed, fall: 3 });
    let begun = |number| Judgement { undecided: row(number), ..failed("refused") };
    let mut say = |port, says| {
        let changes = registry.record(&probed(1, port), says);
        assert_eq!(registry.failing().count(), 0, "it is no failing check yet");
        changes.into_iter().map(|it| (it.health, it.undecided, it.reason.text)).collect::<Vec<_>>()
    };
    let refused = |port| format!("check on-{port}: refused");
    assert_eq!(say(80, begun(1)), [(Health::Failing, row(1), refused(80))]);
    assert_eq!(say(80, begun(2)), [(Health::Failing, row(2), refused(80))]);
    assert_eq!(say(80, passes()), [], "the other has not spoken");
    assert_eq!(say(81, begun(1)), [(Health::Failing, row(1), refused(81))]);
    assert_eq!(say(81, passes()), [(Health::Passing, None, "all checks pass".to_owned())]);
    // One that fails decides, whatever comes before it.
    say(80, begun(1));
    let changes = registry.record(&probed(1, 81), failed("refused"));
    assert_eq!(lines(changes), ["a 192.0.2.1 down: check on-81: refused"]);
    assert_eq!(registry.record(&probed(1, 80), begun(2)).len(), 0);
}
