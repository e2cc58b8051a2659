//! The daemons: there, of this version, and not behind.

use lb_daemon::dataplane::Role;

use super::{Facts, Finding, commands};
use crate::verbs::doctor::facts::{Daemon, Holder};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for installed in &facts.roles {
        findings.extend(match installed.role {
            Role::Balancer => {
                let daemon = facts.daemon.as_ref();
                let own = daemon.map(|daemon| balancer(facts, daemon));
                own.into_iter().chain(daemon.into_iter().flat_map(|d| troubles(facts, d))).collect()
            }
            Role::Receiver => vec![match &installed.holder {
                Some(holder) => {
                    Finding::ok("daemon", "receiver", format!("runs (process {})", holder.pid))
                }
                None => Finding::warning("daemon", "receiver", "does not run")
                    .why("packets are taken out of tunnels as before, but nobody sees when they no longer are")
                    .mend(commands::start(facts, Role::Receiver, None)),
            }],
        });
    }
    findings
}

fn balancer(facts: &Facts, daemon: &Daemon) -> Finding {
    let start = || commands::start(facts, Role::Balancer, None);
    let holder = facts.role(Role::Balancer).and_then(|installed| installed.holder.as_ref());
    match daemon {
        Daemon::Silent(why) => match holder {
            None => Finding::problem("daemon", "balancer", "does not run")
                .why("packets go on, but no health check, neighbour or limit changes any more")
                .mend(start()),
            Some(holder) => {
                let found = format!("runs (process {}) but does not answer", holder.pid);
                Finding::problem("daemon", "balancer", found).why(why.clone()).mend(start())
            }
        },
        Daemon::Answers { behind, generation, .. } if !behind.is_empty() => {
            let found = format!("the packet path is behind generation {generation}");
            Finding::problem("daemon", "balancer", found).why(behind.clone()).mend(start())
        }
        Daemon::Answers { version, .. } if version != env!("CARGO_PKG_VERSION") => {
            let own = env!("CARGO_PKG_VERSION");
            let found = format!("is version {version}, and this is {own}");
            Finding::warning("daemon", "balancer", found)
                .why("a new version takes the place of the old one without a gap")
                .mend(start())
        }
        Daemon::Answers { generation: 0, .. } => {
            Finding::warning("daemon", "balancer", "was told no configuration yet")
                .why("without services no packet is balanced")
                .mend("spillway apply -f FILE")
        }
        Daemon::Answers { generation, .. } => {
            let found = format!("answers; the packet path is at generation {generation}");
            Finding::ok("daemon", "balancer", found)
        }
    }
}

/// What it could not take at its start, or at a reload.
fn troubles(facts: &Facts, daemon: &Daemon) -> Vec<Finding> {
    let Daemon::Answers { troubles, .. } = daemon else { return Vec::new() };
    let holder = facts.role(Role::Balancer).and_then(|installed| installed.holder.as_ref());
    let reload = match holder {
        Some(Holder { unit: Some(unit), .. }) => format!("systemctl reload {unit}"),
        Some(holder) => format!("kill -HUP {}", holder.pid),
        None => "systemctl reload UNIT".into(),
    };
    let of = |(subject, cause): &(String, String)| {
        Finding::warning("daemon", subject, "was not taken, and what was in force stays")
            .why(cause.clone())
            .mend(format!("{reload}  # once it is corrected"))
    };
    troubles.iter().map(of).collect()
}
