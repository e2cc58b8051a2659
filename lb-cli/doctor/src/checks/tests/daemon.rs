use lb_base::receiver_socket::{Answer, Condition};
use lb_maps::Component;
use spillway_proto::v1::ConditionReason::{
    self, CertificateExpires, File, HostAddress, Interface, NarrowPath, PacketPath, Region,
    SourceAddress,
};

use super::{
    RESTART, Row,
    fixture::{backend, balancer, configuration},
    run_all,
};
use crate::{
    facts::{Condition as DaemonCondition, DaemonState, Facts, ReceiverState, Unit},
    finding::Level::{Problem, Warning},
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        dead,
        "daemon",
        Problem,
        "balancer",
        "setsid -f spillwayd balancer --interface eth0 --region eu",
    ),
    (balancer, dead_service, "daemon", Problem, "balancer", "systemctl start spillway-balancer"),
    (
        balancer,
        failed_service,
        "daemon",
        Problem,
        "balancer",
        "systemctl start spillway-balancer  # after fixing that; its settings: /etc/b.toml",
    ),
    (
        balancer,
        |f| service(f, Some("in use by another spillwayd")),
        "daemon",
        Warning,
        "spillway-balancer",
        "kill 7; tail --pid=7 -f /dev/null; systemctl restart spillway-balancer",
    ),
    (
        balancer,
        never_started,
        "daemon",
        Problem,
        "balancer",
        "systemctl start spillway-balancer  # after fixing that; its settings: /etc/b.toml",
    ),
    (
        balancer,
        |f| f.daemon = Some(DaemonState::Silent("no answer".into())),
        "daemon",
        Problem,
        "balancer",
        RESTART,
    ),
    (
        balancer,
        |f| answers(f, env!("CARGO_PKG_VERSION"), 3, "map X: full"),
        "daemon",
        Problem,
        "balancer",
        RESTART,
    ),
    (balancer, |f| answers(f, "0.0.1", 3, ""), "daemon", Warning, "balancer", RESTART),
    (
        balancer,
        |f| answers(f, env!("CARGO_PKG_VERSION"), 0, ""),
        "daemon",
        Warning,
        "balancer",
        "spillway apply -f FILE",
    ),
    (balancer, condition, "daemon", Warning, "/etc/web.toml", "kill -HUP 7  # after correcting it"),
    (
        balancer,
        |f| has_condition(f, HostAddress, "source 10.0.0.9"),
        "daemon",
        Warning,
        "source 10.0.0.9",
        "",
    ),
    (
        balancer,
        |f| has_condition(f, SourceAddress, "IPv6 source address"),
        "daemon",
        Problem,
        "IPv6 source address",
        "ip address add ADDRESS/BITS dev INTERFACE",
    ),
    // Of an interface that is no longer pinned; of others `mode` says more.
    (
        balancer,
        |f| has_condition(f, Interface, "interface eth7"),
        "daemon",
        Problem,
        "interface eth7",
        "ip -details link show  # what is there; the daemon attaches its program by itself",
    ),
    (
        balancer,
        narrow,
        "daemon",
        Warning,
        "pool web",
        "spillway status --output json  # `mtu` of each backend: the smallest of configuration, route and interface",
    ),
    (balancer, |f| expiring(f, "TLS certificate"), "daemon", Warning, "TLS certificate", RENEW),
    (balancer, |f| expiring(f, "HTTP certificate"), "daemon", Warning, "HTTP certificate", RENEW),
    (backend, receiver_expiring, "daemon", Warning, "HTTP certificate", RENEW),
    (balancer, unknown_region, "daemon", Warning, "region mars", "spillway region create mars"),
    (
        backend,
        |f| f.components[0].owner = None,
        "daemon",
        Warning,
        "receiver",
        "setsid -f spillwayd receiver --interface eth0 --allow-source 10.0.0.2/32 \
         --vip 203.0.113.1",
    ),
    (balancer, balancer_waits, "daemon", Warning, "balancer", RESTART),
    (backend, receiver_waits, "daemon", Warning, "receiver", RECEIVER_RESTART),
    (
        backend,
        receiver_refused,
        "daemon",
        Warning,
        "settings",
        "kill -HUP 7  # after correcting it",
    ),
    (
        backend,
        |f| f.receiver_state = Some(ReceiverState::Silent("no such socket".into(), "look".into())),
        "daemon",
        Warning,
        "receiver",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver  # look",
    ),
];

const RENEW: &str = "openssl x509 -enddate -subject -noout -in FILE  # after renewing it; the daemon reads it again by itself";

const RECEIVER_RESTART: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver";

fn balancer_waits(facts: &mut Facts) {
    let Some(DaemonState::Answers { configuration, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    configuration.waiting_settings = vec!["region".into()];
}

fn receiver_waits(facts: &mut Facts) {
    let waiting_settings = vec!["hook".into()];
    facts.receiver_state =
        Some(ReceiverState::Answers(Answer { waiting_settings, ..Answer::default() }));
}

fn receiver_refused(facts: &mut Facts) {
    let (subject, cause) = ("settings".into(), "/etc/r.toml: vip is not set".into());
    let conditions = vec![Condition { subject, cause }];
    facts.receiver_state = Some(ReceiverState::Answers(Answer { conditions, ..Answer::default() }));
}

fn daemon_condition(reason: ConditionReason, subject: &str, cause: &str) -> DaemonCondition {
    DaemonCondition { reason, subject: subject.into(), cause: cause.into() }
}

fn answers(facts: &mut Facts, version: &str, generation: u64, behind: &str) {
    let (version, behind): (String, String) = (version.into(), behind.into());
    // The daemon reports it among its conditions too.
    let condition = |why: &String| {
        daemon_condition(PacketPath, "packet path", &format!("is not there yet: {why}"))
    };
    let conditions =
        Some(&behind).filter(|why| !why.is_empty()).map(condition).into_iter().collect();
    let configuration = Box::new(std::mem::take(configuration(facts)));
    facts.daemon =
        Some(DaemonState::Answers { version, generation, behind, conditions, configuration });
}

fn dead(facts: &mut Facts) {
    facts.components[0].owner = None;
    facts.daemon = Some(DaemonState::Silent("nothing listens there".into()));
}

fn service(facts: &mut Facts, failed: Option<&str>) {
    facts.units.push(Unit {
        component: Component::Balancer,
        name: "spillway-balancer".into(),
        settings: Some("/etc/b.toml".into()),
        failed: failed.map(str::to_owned),
    });
}

fn dead_service(facts: &mut Facts) {
    service(facts, None);
    dead(facts);
}

fn failed_service(facts: &mut Facts) {
    service(facts, Some("eth7: no such interface"));
    dead(facts);
}

fn never_started(facts: &mut Facts) {
    service(facts, Some("/etc/b.toml: interface is not set"));
    (facts.components, facts.balancer, facts.daemon) = (Vec::new(), None, None);
}

fn condition(facts: &mut Facts) {
    has_condition(facts, File, "/etc/web.toml");
}

fn has_condition(facts: &mut Facts, reason: ConditionReason, subject: &str) {
    let Some(DaemonState::Answers { conditions, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    conditions.push(daemon_condition(reason, subject, "why"));
}

fn narrow(facts: &mut Facts) {
    let Some(DaemonState::Answers { conditions, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    let cause = "the way to 10.1.0.11 carries 1270 bytes";
    conditions.push(daemon_condition(NarrowPath, "pool web", cause));
}

fn receiver_expiring(facts: &mut Facts) {
    let subject = "HTTP certificate".into();
    let conditions = vec![Condition { subject, cause: "/x.pem: expires soon".into() }];
    facts.receiver_state = Some(ReceiverState::Answers(Answer { conditions, ..Answer::default() }));
}

/// What an expired certificate costs depends on its listener.
#[test]
fn a_certificate_is_missed_by_those_who_were_shown_it() {
    for (subject, why) in [
        ("TLS certificate", "the API is then reached through the unix socket only"),
        ("HTTP certificate", "metrics and status page cannot be read then"),
        (
            "fleet certificate",
            "the fleet takes no changes here then, and capacities are shared without this balancer",
        ),
    ] {
        let mut facts = balancer();
        expiring(&mut facts, subject);
        let all = run_all(&facts);
        let found = all.iter().find(|it| it.subject == subject).unwrap();
        assert_eq!(found.why, why, "{subject}");
    }
}

fn expiring(facts: &mut Facts, subject: &str) {
    let Some(DaemonState::Answers { conditions, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    let cause = "/etc/spillway/tls/balancer.pem: expires at 2030-01-31T00:00:00Z";
    conditions.push(daemon_condition(CertificateExpires, subject, cause));
}

/// The daemon reports it among its conditions too.
fn unknown_region(facts: &mut Facts) {
    let Some(DaemonState::Answers { conditions, configuration, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    conditions.push(daemon_condition(Region, "region mars", "is not in the configuration"));
    configuration.unknown_region = Some("mars".into());
}
