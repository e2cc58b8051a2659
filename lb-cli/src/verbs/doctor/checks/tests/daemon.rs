use lb_daemon::{
    control::{Answer, Trouble},
    dataplane::Role,
};

use super::{
    RESTART, Row,
    scene::{backend, balancer, told},
};
use crate::verbs::doctor::{
    facts::{Control, Daemon, Facts, Unit},
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
        "systemctl start spillway-balancer  # once that is mended; its settings: /etc/b.toml",
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
        "systemctl start spillway-balancer  # once that is mended; its settings: /etc/b.toml",
    ),
    (
        balancer,
        |f| f.daemon = Some(Daemon::Silent("no answer".into())),
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
    (balancer, trouble, "daemon", Warning, "/etc/web.toml", "kill -HUP 7  # once it is corrected"),
    (
        balancer,
        narrow,
        "daemon",
        Warning,
        "pool web",
        "spillway status --output json  # `mtu` of each backend: what its way carries",
    ),
    (balancer, strange_region, "daemon", Warning, "region mars", "spillway region create mars"),
    (
        backend,
        |f| f.roles[0].holder = None,
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
        "kill -HUP 7  # once it is corrected",
    ),
    (
        backend,
        |f| f.control = Some(Control::Silent("no such socket".into(), "look".into())),
        "daemon",
        Warning,
        "receiver",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver  # look",
    ),
];

const RECEIVER_RESTART: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver";

fn balancer_waits(facts: &mut Facts) {
    let Some(Daemon::Answers { told, .. }) = &mut facts.daemon else { panic!("it answers") };
    told.waiting_settings = vec!["region".into()];
}

fn receiver_waits(facts: &mut Facts) {
    let waiting_settings = vec!["hook".into()];
    facts.control = Some(Control::Answers(Answer { waiting_settings, ..Answer::default() }));
}

fn receiver_refused(facts: &mut Facts) {
    let (subject, cause) = ("settings".into(), "/etc/r.toml: vip is not set".into());
    let troubles = vec![Trouble { subject, cause }];
    facts.control = Some(Control::Answers(Answer { troubles, ..Answer::default() }));
}

fn answers(facts: &mut Facts, version: &str, generation: u64, behind: &str) {
    let (version, behind): (String, String) = (version.into(), behind.into());
    // The daemon has it among its troubles as well.
    let trouble = |why: &String| ("packet path".to_owned(), format!("is not there yet: {why}"));
    let troubles = Some(&behind).filter(|why| !why.is_empty()).map(trouble).into_iter().collect();
    let told = Box::new(std::mem::take(told(facts)));
    facts.daemon = Some(Daemon::Answers { version, generation, behind, troubles, told });
}

fn dead(facts: &mut Facts) {
    facts.roles[0].holder = None;
    facts.daemon = Some(Daemon::Silent("nothing listens there".into()));
}

fn service(facts: &mut Facts, failed: Option<&str>) {
    facts.units.push(Unit {
        role: Role::Balancer,
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
    (facts.roles, facts.balancer, facts.daemon) = (Vec::new(), None, None);
}

fn trouble(facts: &mut Facts) {
    let Some(Daemon::Answers { troubles, .. }) = &mut facts.daemon else { panic!("it answers") };
    troubles.push(("/etc/web.toml".into(), "line 3: unknown field".into()));
}

fn narrow(facts: &mut Facts) {
    let Some(Daemon::Answers { troubles, .. }) = &mut facts.daemon else { panic!("it answers") };
    troubles.push(("pool web".into(), "the way to 10.1.0.11 carries 1270 bytes".into()));
}

/// The daemon has it among its troubles as well.
fn strange_region(facts: &mut Facts) {
    let Some(Daemon::Answers { troubles, told, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    troubles.push(("region mars".into(), "is not in the configuration".into()));
    told.strange_region = Some("mars".into());
}
