//! The daemons: running, of this version, and with the packet path up to date.

use lb_base::{
    conditions::{FLEET_CERTIFICATE, HTTP_CERTIFICATE},
    receiver_socket,
};
use lb_maps::Component;
use spillway_proto::v1::ConditionReason;

use crate::{
    facts::{Condition, DaemonState, Facts, PinOwner, ReceiverState, Unit},
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
                        .chain(conditions(facts, daemon))
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
            let reload = reload_command(Some(owner));
            let judge =
                |it: &receiver_socket::Condition| match it.subject == HTTP_CERTIFICATE.text() {
                    true => expires(&it.subject, &it.cause),
                    false => refused(&it.subject, &it.cause, &reload),
                };
            let conditions = answer.conditions.iter().map(judge);
            let first = Finding::ok("daemon", "receiver", runs);
            let waits = pending_settings(facts, Component::Receiver, &answer.waiting_settings);
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

/// Something that the daemon refused on a reload or at its start.
fn refused(subject: &str, cause: &str, reload: &str) -> Finding {
    let why = match subject {
        "settings" => "the daemon keeps what was in force before, but its next start would fail",
        _ => "the daemon keeps what was in force before",
    };
    let finding = Finding::warning("daemon", subject, cause).why(why);
    finding.mend(format!("{reload}  # after correcting it"))
}

/// A certificate that expires. Nothing was refused: the daemon goes on with it.
fn expires(subject: &str, cause: &str) -> Finding {
    let why = match subject {
        _ if subject == HTTP_CERTIFICATE.text() => "metrics and status page cannot be read then",
        _ if subject == FLEET_CERTIFICATE.text() => {
            "the fleet takes no changes here then, and capacities are shared without this balancer"
        }
        _ => "the API is then reached through the unix socket only",
    };
    Finding::warning("daemon", subject, cause).why(why).mend(
        "openssl x509 -enddate -subject -noout -in FILE  # after renewing it; the daemon reads it again by itself",
    )
}

/// The command that reloads the daemon that holds the pins.
fn reload_command(owner: Option<&PinOwner>) -> String {
    match owner {
        Some(PinOwner { unit: Some(unit), .. }) => format!("systemctl reload {unit}"),
        Some(owner) => format!("kill -HUP {}", owner.pid),
        None => "systemctl reload UNIT".into(),
    }
}

/// The daemon's own region is not in the configuration.
fn unknown_region(facts: &Facts, daemon: &DaemonState) -> Option<Finding> {
    let DaemonState::Answers { configuration, .. } = daemon else { return None };
    let region = configuration.unknown_region.as_ref()?;
    let other = start_command(facts, Component::Balancer, Some(("region", "REGION")));
    let finding = Finding::warning("daemon", region_subject(region), "is not in the configuration")
        .why("it is this balancer's own region, so no region comes first here")
        .mend(format!("spillway region create {region}"));
    Some(finding.or(other))
}

/// The subject that the daemon uses for a region.
fn region_subject(region: &str) -> String {
    format!("region {region}")
}

fn conditions(facts: &Facts, daemon: &DaemonState) -> Vec<Finding> {
    let DaemonState::Answers { conditions, configuration, .. } = daemon else { return Vec::new() };
    let region = configuration.unknown_region.as_deref().map(region_subject);
    let owner = facts.component(Component::Balancer).and_then(|installed| installed.owner.as_ref());
    let reload = reload_command(owner);
    let judge = |Condition { reason, subject, cause }: &Condition| {
        if *reason == ConditionReason::StoredConfiguration {
            return Finding::problem("daemon", subject, cause)
                .why("backends are not checked, and no change reaches the packet path")
                .mend("spillway export > stored.toml; $EDITOR stored.toml; spillway apply -f stored.toml");
        }
        // No file is wrong.
        if *reason == ConditionReason::NarrowPath {
            return Finding::warning("daemon", subject, cause)
                .why("clients cannot make their packets small enough")
                .mend("spillway status --output json  # `mtu` of each backend: the smallest of configuration, route and interface");
        }
        let expiring = [ConditionReason::CertificateExpires, ConditionReason::AuthoritiesExpire];
        if expiring.contains(reason) {
            return expires(subject, cause);
        }
        refused(subject, cause, &reload)
    };
    let is_reported = |it: &&Condition| {
        Some(&it.subject) == region.as_ref() || it.reason == ConditionReason::PacketPath
    };
    conditions.iter().filter(|it| !is_reported(it)).map(judge).collect()
}
