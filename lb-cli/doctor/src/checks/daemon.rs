//! The daemons: running, of this version, and with the packet path up to date.

use lb_maps::Component;

use super::conditions;
use crate::{
    facts::{DaemonState, Facts, PinOwner, ReceiverState, Unit},
    finding::Finding,
    start_command::start_command,
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for installed in &facts.components {
        findings.extend(match installed.component {
            Component::Balancer => {
                let daemon = facts.daemon.as_ref();
                let own = daemon.map(|daemon| balancer(facts, daemon));
                let more = daemon.into_iter().flat_map(|daemon| {
                    let region = unknown_region(facts, daemon).into_iter();
                    region
                        .chain(conditions::of_balancer(facts, daemon))
                        .chain(balancer_pending_settings(facts, daemon))
                });
                own.into_iter().chain(more).collect()
            }
            // Unused pins are the finding of another check.
            Component::Receiver if installed.links.is_empty() && installed.owner.is_none() => {
                Vec::new()
            }
            Component::Receiver => match &installed.owner {
                Some(owner) => receiver(facts, owner),
                None => {
                    let why = "packets are still decapsulated, but a failure would go unnoticed";
                    vec![
                        Finding::warning("daemon", "receiver", "does not run")
                            .why(with_unit_error(facts, Component::Receiver, why))
                            .mend(start_command(facts, Component::Receiver, None)),
                    ]
                }
            },
        });
    }
    findings.extend(facts.units.iter().filter_map(|unit| failed_unit(facts, unit)));
    findings
}

/// Adds the last error of a failed unit to the reason.
fn with_unit_error(facts: &Facts, component: Component, why: &str) -> String {
    match facts.unit(component).and_then(|unit| Some((&unit.name, unit.failed.as_ref()?))) {
        Some((name, error)) => format!("{name} failed: {error}; {why}"),
        None => why.into(),
    }
}

/// A failed unit without pins, or beside a daemon that was started by hand.
fn failed_unit(facts: &Facts, unit: &Unit) -> Option<Finding> {
    let error = unit.failed.clone()?;
    let finding = match facts.component(unit.component).map(|installed| &installed.owner) {
        None => {
            Finding::problem("daemon", unit.component.name(), "does not run, and nothing is pinned")
                .why(format!("{} failed: {error}", unit.name))
        }
        Some(Some(owner)) if owner.unit.is_none() => {
            let found =
                format!("fails while process {} runs, which was started by hand", owner.pid);
            Finding::warning("daemon", &unit.name, found).why(error)
        }
        // The finding about the component has it.
        Some(_) => return None,
    };
    Some(finding.mend(start_command(facts, unit.component, None)))
}

fn balancer(facts: &Facts, daemon: &DaemonState) -> Finding {
    let start = || start_command(facts, Component::Balancer, None);
    let owner = facts.component(Component::Balancer).and_then(|installed| installed.owner.as_ref());
    match daemon {
        DaemonState::Silent(why) => match owner {
            None => Finding::problem("daemon", "balancer", "does not run")
                .why(with_unit_error(
                    facts,
                    Component::Balancer,
                    "packets are still balanced, but health, neighbours and limits are no longer updated",
                ))
                .mend(start()),
            Some(owner) => {
                let found = format!("runs (process {}) but does not answer", owner.pid);
                Finding::problem("daemon", "balancer", found).why(why.clone()).mend(start())
            }
        },
        DaemonState::Answers { behind, generation, .. } if !behind.is_empty() => {
            let found = format!("the packet path has not reached generation {generation}");
            Finding::problem("daemon", "balancer", found).why(behind.clone()).mend(start())
        }
        DaemonState::Answers { version, .. } if version != env!("CARGO_PKG_VERSION") => {
            let own = env!("CARGO_PKG_VERSION");
            let found = format!("is version {version}, but this program is {own}");
            Finding::warning("daemon", "balancer", found)
                .why("a restart replaces the old version without a gap")
                .mend(start())
        }
        DaemonState::Answers { generation: 0, .. } => {
            Finding::warning("daemon", "balancer", "has no configuration yet")
                .why("without services no packet is balanced")
                .mend("spillway apply -f FILE")
        }
        DaemonState::Answers { generation, .. } => {
            let found = format!("answers; the packet path is at generation {generation}");
            Finding::ok("daemon", "balancer", found)
        }
    }
}

/// A running receiver, and the state of its settings.
fn receiver(facts: &Facts, owner: &PinOwner) -> Vec<Finding> {
    let runs = format!("runs (process {})", owner.pid);
    match &facts.receiver_state {
        Some(ReceiverState::Silent(why, what_to_do)) => {
            let found = format!("{runs}, but does not answer");
            let finding = Finding::warning("daemon", "receiver", found).why(why.clone());
            vec![finding.mend(format!(
                "{}  # {what_to_do}",
                start_command(facts, Component::Receiver, None)
            ))]
        }
        Some(ReceiverState::Answers(answer)) => {
            let first = Finding::ok("daemon", "receiver", runs);
            let waits = pending_settings(facts, Component::Receiver, &answer.waiting_settings);
            let conditions = conditions::of_receiver(facts, owner, &answer.conditions);
            std::iter::once(first).chain(conditions).chain(waits).collect()
        }
        None => vec![Finding::ok("daemon", "receiver", runs)],
    }
}

fn balancer_pending_settings(facts: &Facts, daemon: &DaemonState) -> Option<Finding> {
    let DaemonState::Answers { configuration, .. } = daemon else { return None };
    pending_settings(facts, Component::Balancer, &configuration.waiting_settings)
}

fn pending_settings(facts: &Facts, component: Component, names: &[String]) -> Option<Finding> {
    if names.is_empty() {
        return None;
    }
    let found = format!("changed settings need a restart: {}", names.join(", "));
    let finding = Finding::warning("daemon", component.name(), found)
        .why("a reload does not apply them; packets are still balanced during a restart");
    Some(finding.mend(start_command(facts, component, None)))
}

/// The daemon's own region is not in the configuration.
fn unknown_region(facts: &Facts, daemon: &DaemonState) -> Option<Finding> {
    let DaemonState::Answers { configuration, .. } = daemon else { return None };
    let region = configuration.unknown_region.as_ref()?;
    let other = start_command(facts, Component::Balancer, Some(("region", "REGION")));
    let subject = conditions::region_subject(region);
    let finding = Finding::warning("daemon", subject, "is not in the configuration")
        .why("it is this balancer's own region, so no region comes first here")
        .mend(format!("spillway region create {region}"));
    Some(finding.or(other))
}
