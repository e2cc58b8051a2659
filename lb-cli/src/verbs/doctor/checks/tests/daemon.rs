use super::{
    RESTART, Row,
    scene::{backend, balancer},
};
use crate::verbs::doctor::{
    facts::{Daemon, Facts},
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
        backend,
        |f| f.roles[0].holder = None,
        "daemon",
        Warning,
        "receiver",
        "setsid -f spillwayd receiver --interface eth0 --allow-source 10.0.0.2/32 \
         --vip 203.0.113.1",
    ),
];

fn answers(facts: &mut Facts, version: &str, generation: u64, behind: &str) {
    let (version, behind) = (version.into(), behind.into());
    facts.daemon = Some(Daemon::Answers { version, generation, behind, troubles: Vec::new() });
}

fn dead(facts: &mut Facts) {
    facts.roles[0].holder = None;
    facts.daemon = Some(Daemon::Silent("nothing listens there".into()));
}

fn trouble(facts: &mut Facts) {
    let Some(Daemon::Answers { troubles, .. }) = &mut facts.daemon else { panic!("it answers") };
    troubles.push(("/etc/web.toml".into(), "line 3: unknown field".into()));
}
