//! The daemons: there, of this version, and not behind.

use lb_daemon::{
    dataplane::Role,
    troubles::{PACKET_PATH, STORED},
};

use super::{Facts, Finding, commands};
use crate::verbs::doctor::facts::{Control, Daemon, Holder, Unit};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for installed in &facts.roles {
        findings.extend(match installed.role {
            Role::Balancer => {
                let daemon = facts.daemon.as_ref();
                let own = daemon.map(|daemon| balancer(facts, daemon));
                let more = daemon.into_iter().flat_map(|daemon| {
                    let region = strange_region(facts, daemon).into_iter();
                    region.chain(troubles(facts, daemon)).chain(balancer_waits(facts, daemon))
                });
                own.into_iter().chain(more).collect()
            }
            // Pins that are of no use are another check's.
            Role::Receiver if installed.links.is_empty() && installed.holder.is_none() => Vec::new(),
            Role::Receiver => match &installed.holder {
                Some(holder) => receiver(facts, holder),
                None => {
                    let why = "packets are taken out of tunnels as before, but nobody sees when they no longer are";
                    vec![
                        Finding::warning("daemon", "receiver", "does not run")
                            .why(because(facts, Role::Receiver, why))
                            .mend(commands::start(facts, Role::Receiver, None)),
                    ]
                }
            },
        });
    }
    findings.extend(facts.units.iter().filter_map(|unit| unit_alone(facts, unit)));
    findings
}

/// Why it matters that a daemon does not run, and what its unit said last, if it is to run.
fn because(facts: &Facts, role: Role, why: &str) -> String {
    match facts.unit(role).and_then(|unit| Some((&unit.name, unit.failed.as_ref()?))) {
        Some((name, said)) => format!("{name} ended: {said}; {why}"),
        None => why.into(),
    }
}

/// A unit that fails where nothing is pinned, or beside a daemon that was started by hand.
fn unit_alone(facts: &Facts, unit: &Unit) -> Option<Finding> {
    let said = unit.failed.clone()?;
    let finding = match facts.role(unit.role).map(|installed| &installed.holder) {
        None => Finding::problem("daemon", unit.role.name(), "does not run, and nothing is pinned")
            .why(format!("{} ended: {said}", unit.name)),
        Some(Some(holder)) if holder.unit.is_none() => {
            let beside = format!("fails beside process {}, which was started by hand", holder.pid);
            Finding::warning("daemon", &unit.name, beside).why(said)
        }
        // It is said of the role.
        Some(_) => return None,
    };
    Some(finding.mend(commands::start(facts, unit.role, None)))
}

fn balancer(facts: &Facts, daemon: &Daemon) -> Finding {
    let start = || commands::start(facts, Role::Balancer, None);
    let holder = facts.role(Role::Balancer).and_then(|installed| installed.holder.as_ref());
    match daemon {
        Daemon::Silent(why) => match holder {
            None => Finding::problem("daemon", "balancer", "does not run")
                .why(because(
                    facts,
                    Role::Balancer,
                    "packets go on, but no health check, neighbour or limit changes any more",
                ))
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

/// A receiver that runs, and what it says of its settings.
fn receiver(facts: &Facts, holder: &Holder) -> Vec<Finding> {
    let runs = format!("runs (process {})", holder.pid);
    match &facts.control {
        Some(Control::Silent(why, what_to_do)) => {
            let found = format!("{runs}, but cannot be asked about its settings");
            let finding = Finding::warning("daemon", "receiver", found).why(why.clone());
            vec![
                finding.mend(format!(
                    "{}  # {what_to_do}",
                    commands::start(facts, Role::Receiver, None)
                )),
            ]
        }
        Some(Control::Answers(answer)) => {
            let reload = reload(Some(holder));
            let troubles =
                answer.troubles.iter().map(|it| refused(&it.subject, &it.cause, &reload));
            let first = Finding::ok("daemon", "receiver", runs);
            let waits = waits(facts, Role::Receiver, &answer.waiting_settings);
            std::iter::once(first).chain(troubles).chain(waits).collect()
        }
        None => vec![Finding::ok("daemon", "receiver", runs)],
    }
}

fn balancer_waits(facts: &Facts, daemon: &Daemon) -> Option<Finding> {
    let Daemon::Answers { told, .. } = daemon else { return None };
    waits(facts, Role::Balancer, &told.waiting_settings)
}

/// Changed settings that are not in force yet.
fn waits(facts: &Facts, role: Role, names: &[String]) -> Option<Finding> {
    if names.is_empty() {
        return None;
    }
    let found = format!("changed settings wait for the next start: {}", names.join(", "));
    let finding = Finding::warning("daemon", role.name(), found)
        .why("a reload does not take them; packets go on over a restart");
    Some(finding.mend(commands::start(facts, role, None)))
}

/// What was refused at a reload, or at the start.
fn refused(subject: &str, cause: &str, reload: &str) -> Finding {
    let why = match subject {
        "settings" => "it goes on with what was in force before; its next start would fail",
        _ => "it goes on with what was in force before",
    };
    let finding = Finding::warning("daemon", subject, cause).why(why);
    finding.mend(format!("{reload}  # once it is corrected"))
}

/// How the daemon that holds the pins is told to read its settings again.
fn reload(holder: Option<&Holder>) -> String {
    match holder {
        Some(Holder { unit: Some(unit), .. }) => format!("systemctl reload {unit}"),
        Some(holder) => format!("kill -HUP {}", holder.pid),
        None => "systemctl reload UNIT".into(),
    }
}

/// It is told to stand in a region that nobody has heard of.
fn strange_region(facts: &Facts, daemon: &Daemon) -> Option<Finding> {
    let Daemon::Answers { told, .. } = daemon else { return None };
    let region = told.strange_region.as_ref()?;
    let other = commands::start(facts, Role::Balancer, Some(("region", "REGION")));
    let finding = Finding::warning("daemon", named(region), "is in no configuration")
        .why("it is this balancer's own: the backends of no region come first here")
        .mend(format!("spillway region create {region}"));
    Some(finding.or(other))
}

/// As the daemon calls it among its troubles.
fn named(region: &str) -> String {
    format!("region {region}")
}

/// What it could not take at its start, or at a reload.
fn troubles(facts: &Facts, daemon: &Daemon) -> Vec<Finding> {
    let Daemon::Answers { troubles, told, .. } = daemon else { return Vec::new() };
    let region = told.strange_region.as_deref().map(named);
    let holder = facts.role(Role::Balancer).and_then(|installed| installed.holder.as_ref());
    let reload = reload(holder);
    let of = |(subject, cause): &(String, String)| {
        if subject == STORED {
            return Finding::problem("daemon", subject, cause)
                .why("backends are not checked, and no change reaches the packets")
                .mend("spillway export > stored.toml; $EDITOR stored.toml; spillway apply -f stored.toml");
        }
        // Of a pool the ways to its backends are narrow, which no file says.
        if subject.starts_with("pool ") {
            return Finding::warning("daemon", subject, cause)
                .why("clients cannot send packets that are small enough")
                .mend(
                    "spillway status --output json  # `mtu` of each backend: what its way carries",
                );
        }
        refused(subject, cause, &reload)
    };
    let found = |subject: &String| Some(subject) == region.as_ref() || subject == PACKET_PATH;
    troubles.iter().filter(|(subject, _)| !found(subject)).map(of).collect()
}
